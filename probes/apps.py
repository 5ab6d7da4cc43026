"""Tell Django about the room, and let it follow rollouts."""

from django.apps import AppConfig


class ProbesConfig(AppConfig):
    """The room as Django sees it."""

    name = "probes"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Follow the rollouts that may have changed what a pair can do."""
        from audit import follow
        from probes import around_rollouts, checks, isolation  # noqa: F401  the import registers the checks

        follow.register("probes.around-rollouts", around_rollouts.FOLLOWED, around_rollouts.follow)
        follow.register("probes.isolation", isolation.FOLLOWED, isolation.follow)
