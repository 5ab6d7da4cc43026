"""Tell Django about the room."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """The room as Django sees it."""

    name = "audit"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks of what production needs."""
        from audit import production  # noqa: F401  the import registers them
