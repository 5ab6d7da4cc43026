"""What a pair's rollout moves: one server within Acme, and the handover server one step between the tenants."""

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inventory.models import Server
    from lab.faults.scene import Scene


def stage_next(scene: "Scene", *, handover: bool) -> None:
    """Stage the next moves, as the operator."""
    from inventory.models import Port
    from partitions import operations as partitions
    from partitions.errors import MoveRefused

    moving, changing = scene.server(1), scene.server(4)
    here = _where(moving)
    there = "inference" if here == "training" else "training"
    source = None if here is None else scene.partition(here)
    partitions.stage_move(server=moving, source=source, target=scene.partition(there), actor=scene.operator)
    if not handover:
        return
    held = _where(changing)
    with contextlib.suppress(MoveRefused):  # it is not clean yet; the next rollout takes it on
        if held is not None:
            partitions.stage_move(server=changing, source=scene.partition(held), target=None, actor=scene.operator)
            return
        ports = Port.objects.filter(hca__server=changing)
        tenants = set(ports.values_list("former_tenant__slug", flat=True)) - {None}
        if tenants:
            partitions.mark_clean(server=changing, actor=scene.operator, reason="erased by the lab")
        target = "training" if "globex" in tenants else "render"
        partitions.stage_move(server=changing, source=None, target=scene.partition(target), actor=scene.operator)


def _where(server: "Server") -> str | None:
    from partitions.models import Membership

    held = Membership.objects.filter(port__hca__server=server).select_related("partition").first()
    return None if held is None else held.partition.name
