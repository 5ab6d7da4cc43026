"""Tell Django about the room."""

from django.apps import AppConfig


class DeployConfig(AppConfig):
    """The room as Django sees it."""

    name = "deploy"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks, and what stands against a mode or a retirement in the inventory."""
        from deploy import checks, qualification, retirement  # noqa: F401  importing the checks registers them
        from inventory import guards

        guards.before_write(qualification.why_not)
        guards.before_retirement(retirement.why_not)
