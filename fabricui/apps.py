"""Tell Django about the wiring, and every process about the Celery app."""

from django.apps import AppConfig


class FabricUIConfig(AppConfig):
    """The wiring as Django sees it."""

    name = "fabricui"

    def ready(self) -> None:
        """Make our Celery app the current one: without it `.delay()` would look for a broker elsewhere."""
        from fabricui import celery

        celery.app.set_default()
