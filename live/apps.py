"""Tell Django about the room, let it follow the trail, and tell every page where its hints come from."""

from django.apps import AppConfig
from django.http import HttpRequest


class LiveConfig(AppConfig):
    """The room as Django sees it."""

    name = "live"

    def ready(self) -> None:
        from audit import follow
        from live import following
        from live.hints import FOLLOWED

        follow.register_many("live.hints", FOLLOWED, following.follow)

    def page_context(self, request: HttpRequest) -> dict[str, object]:
        """The address of the stream, for those who have one; see `fabricui.page`. No query."""
        from django.conf import settings
        from django.urls import reverse

        from people.permissions import may_review

        is_there = bool(settings.REDIS_URL) and may_review(getattr(request, "user", None))
        return {"live_address": reverse("live:stream") if is_there else ""}
