"""Tell Django about the room."""

from django.apps import AppConfig


class InventoryConfig(AppConfig):
    """The room as Django sees it."""

    name = "inventory"
    default_auto_field = "django.db.models.BigAutoField"
