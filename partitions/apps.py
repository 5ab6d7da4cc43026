"""Tell Django about the room, and let the mirror follow the trail."""

from django.apps import AppConfig


class PartitionsConfig(AppConfig):
    """The room as Django sees it."""

    name = "partitions"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from audit import follow
        from deploy import whole_looks
        from inventory import sight as inventory_sight
        from partitions import cleaned_door, link_loss, mirror, sight
        from people import scopes
        from people.permissions import is_operator

        follow.register("partitions.mirror", mirror.FOLLOWED, mirror.follow)
        scopes.register(cleaned_door.SCOPE, "say that nothing of a tenant is left on a server", is_operator)
        whole_looks.register("partitions.link_loss", link_loss.notice)
        inventory_sight.register("partitions", servers=sight.servers_of, ports=sight.ports_of)
