"""Tell Django about the room."""

from django.apps import AppConfig


class PeopleConfig(AppConfig):
    """The room as Django sees it."""

    name = "people"
    default_auto_field = "django.db.models.BigAutoField"
