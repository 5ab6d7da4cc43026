"""Tell Django about the room."""

from importlib import import_module

from django.apps import AppConfig
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject


class PeopleConfig(AppConfig):
    """The room as Django sees it."""

    name = "people"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Listen for people who sign in and out."""
        import_module("people.logins")

    def page_context(self, request: HttpRequest) -> dict[str, object]:
        """What reviewers must know of the audit trail, for the top of every page of theirs; see `fabricui.page`."""
        from audit import watch
        from people.permissions import may_review

        def alarms() -> list[str]:
            return watch.alarms(now=timezone.now()) if may_review(getattr(request, "user", None)) else []

        return {"trail_alarms": SimpleLazyObject(alarms)}
