"""Tell Django about the room, and tell every page what the room adds to it."""

from django.apps import AppConfig
from django.http import HttpRequest


class ConsoleConfig(AppConfig):
    """The room as Django sees it."""

    name = "console"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Tell the rooms below where the pages are that they link to."""
        from django.urls import reverse

        from probes import links

        links.register("server", lambda public_id: reverse("console:server", args=[public_id]))
        links.register("rollout", lambda public_id: reverse("console:rollout", args=[public_id]))

    def page_context(self, request: HttpRequest) -> dict[str, object]:
        """The navigation and the state of the subnet, for those who may see them; see `fabricui.page`."""
        from console.frame import frame

        return frame(request)
