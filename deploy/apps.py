"""Tell Django about the room."""

from django.apps import AppConfig


class DeployConfig(AppConfig):
    """The room as Django sees it."""

    name = "deploy"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks, what stands against a mode or a retirement, and the watch after a rollout's end."""
        from audit import follow
        from deploy import checks, drift_follower, qualification, retirement  # noqa: F401  registers itself
        from inventory import guards

        guards.before_write(qualification.why_not)
        guards.before_retirement(retirement.why_not)
        follow.register("deploy.drift", drift_follower.FOLLOWED, drift_follower.follow)
