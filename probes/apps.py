"""Tell Django about the room, and let it follow rollouts."""

from django.apps import AppConfig
from django.http import HttpRequest


class ProbesConfig(AppConfig):
    """The room as Django sees it."""

    name = "probes"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Follow the rollouts that may have changed what a pair can do."""
        from audit import follow
        from probes import around_rollouts, isolation

        follow.register("probes.around-rollouts", around_rollouts.FOLLOWED, around_rollouts.follow)
        follow.register("probes.isolation", isolation.FOLLOWED, isolation.follow)

    def page_context(self, request: HttpRequest) -> dict[str, object]:
        """The leaks that nobody has acknowledged, for the top of every page of a reviewer; see `fabricui.page`."""
        from django.utils.functional import SimpleLazyObject

        from probes.alarms import open_leaks

        return {"open_leaks": SimpleLazyObject(lambda: open_leaks(request))}
