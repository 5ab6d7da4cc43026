"""Tell Django about the room, the console what stands above it, and the trail who follows it."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy


class PortalConfig(AppConfig):
    """The room as Django sees it."""

    name = "portal"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from audit import follow
        from console import from_above
        from portal import finishing, requests_waiting
        from portal.evidence import history

        from_above.register_page(gettext_lazy("Requests"), "portal:operator_requests", "list-check", "q")
        from_above.register_needs("portal", requests_waiting.needs)
        follow.register("portal.requests", finishing.FOLLOWED, finishing.follow)
        follow.register("portal.requests_of_the_gone", finishing.LET_GO, finishing.close_of_gone)
        follow.register("portal.evidence", history.FOLLOWED, history.follow)
