"""Tell Django about the room."""

from django.apps import AppConfig


class DeployConfig(AppConfig):
    """The room as Django sees it."""

    name = "deploy"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks, and have a subnet watched as soon as one of its rollouts has ended."""
        from audit import follow
        from deploy import checks, drift_follower  # noqa: F401  importing registers the checks

        follow.register("deploy.drift", drift_follower.FOLLOWED, drift_follower.follow)
