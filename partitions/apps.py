"""Tell Django about the room."""

from django.apps import AppConfig


class PartitionsConfig(AppConfig):
    """The room as Django sees it."""

    name = "partitions"
    default_auto_field = "django.db.models.BigAutoField"
