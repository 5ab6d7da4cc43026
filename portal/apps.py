"""Tell Django about the room."""

from django.apps import AppConfig


class PortalConfig(AppConfig):
    """The room as Django sees it."""

    name = "portal"
    default_auto_field = "django.db.models.BigAutoField"
