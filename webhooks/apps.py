"""Tell Django about the room, and let it follow the trail."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    """The room as Django sees it."""

    name = "webhooks"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.conf import settings

        from audit import follow
        from webhooks import following
        from webhooks.kinds import FOLLOWED, TOLD_TO_SYSLOG

        follow.register_many("webhooks.deliveries", FOLLOWED, following.queue)
        if settings.SYSLOG:
            follow.register_many("webhooks.syslog", TOLD_TO_SYSLOG, following.tell_syslog)
