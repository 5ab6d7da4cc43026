"""May anything be placed on this subnet at all? Asked at the button, and by the worker again before it stages."""

from deploy import drifting
from deploy.drift_models import Drift
from deploy.errors import FabricAlarm, NotWritable, SubnetFrozen
from deploy.qualification import why_not
from inventory.models import Subnet


def require_leave(subnet: Subnet, *, mends: bool = False) -> None:
    """Raise NotWritable unless the subnet is in mode write and qualified, SubnetFrozen while rollouts are stopped.

    Raises FabricAlarm while isolation is lost or a rogue SM is at work; `mends`: the former is what is to be mended.
    """
    if subnet.mode != Subnet.Mode.WRITE:
        raise NotWritable(
            f"Subnet {subnet} is in mode {subnet.get_mode_display()}: FabricUI may not place files there. "
            "Set the mode to write first; that needs a stored qualification report."
        )
    unqualified = why_not(subnet)
    if unqualified:
        raise NotWritable(unqualified)
    if subnet.frozen_at is not None:
        why = f" ({subnet.frozen_reason})" if subnet.frozen_reason else ""
        raise SubnetFrozen(f"Subnet {subnet} is frozen{why}. Lift the freeze, then start the rollout again.")
    for alarm in drifting.alarms(subnet.pk):
        if not (mends and alarm.kind == Drift.Kind.ISOLATION_LOST):
            raise FabricAlarm(
                f"{alarm.title}: {alarm.details[0]} {alarm.cause} No rollout starts before "
                "that is over; the drift page follows it."
            )


def withdrawn(subnet_id: int, *, mends: bool = False) -> str:
    """Why nothing may be placed any more, read anew, or "": a freeze or an alarm may have come meanwhile."""
    try:
        require_leave(Subnet.objects.get(pk=subnet_id), mends=mends)
    except (NotWritable, SubnetFrozen, FabricAlarm) as refusal:
        return str(refusal)
    return ""
