"""Tell Django about the room, and tell every page what the room adds to it."""

from django.apps import AppConfig
from django.http import HttpRequest


class ConsoleConfig(AppConfig):
    """The room as Django sees it."""

    name = "console"
    default_auto_field = "django.db.models.BigAutoField"

    def page_context(self, request: HttpRequest) -> dict[str, object]:
        """The navigation and the state of the subnet, for those who may see them; see `fabricui.page`."""
        from console.frame import frame

        return frame(request)
