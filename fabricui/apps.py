"""Tell Django about the wiring, and every process about the Celery app."""

from django.apps import AppConfig


class FabricUIConfig(AppConfig):
    """The wiring as Django sees it."""

    name = "fabricui"

    def ready(self) -> None:
        """Make our Celery app the current one: without it `.delay()` would look for a broker elsewhere."""
        from fabricui import celery, logs  # noqa: F401  the second listens to the tasks' signals

        celery.app.set_default()
