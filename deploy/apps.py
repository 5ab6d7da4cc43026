"""Tell Django about the room."""

from django.apps import AppConfig


class DeployConfig(AppConfig):
    """The room as Django sees it."""

    name = "deploy"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks."""
        from deploy import checks  # noqa: F401  importing registers them
