"""Tell Django about the room."""

from importlib import import_module

from django.apps import AppConfig


class PeopleConfig(AppConfig):
    """The room as Django sees it."""

    name = "people"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Listen for people who sign in and out."""
        import_module("people.logins")
