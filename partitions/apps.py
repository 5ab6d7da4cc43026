"""Tell Django about the room, and let the mirror follow the trail."""

from django.apps import AppConfig


class PartitionsConfig(AppConfig):
    """The room as Django sees it."""

    name = "partitions"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from audit import follow
        from deploy import whole_looks
        from partitions import link_loss, mirror

        follow.register("partitions.mirror", mirror.FOLLOWED, mirror.follow)
        whole_looks.register("partitions.link_loss", link_loss.notice)
