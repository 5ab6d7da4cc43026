"""Tell Django about the room."""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    """The room as Django sees it."""

    name = "console"
    default_auto_field = "django.db.models.BigAutoField"
