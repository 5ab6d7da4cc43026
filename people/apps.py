"""Tell Django about the room."""

from importlib import import_module

from django.apps import AppConfig
from django.conf import settings
from django.http import HttpRequest


class PeopleConfig(AppConfig):
    """The room as Django sees it."""

    name = "people"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Listen for people who sign in and out."""
        import_module("people.logins")
        import_module("people.sessions")
        import_module("people.checks")

    def page_context(self, request: HttpRequest) -> dict[str, object]:
        """Whether pages must say that no second factor is asked for, and the name of the provider, if there is one."""
        return {
            "without_second_factor": settings.MFA == "off",
            "sso_name": settings.OIDC_NAME if settings.OIDC_ISSUER else "",
        }
