"""May anything be placed on this subnet at all? Asked at the button, and by the worker again before it stages."""

from deploy.errors import NotWritable, SubnetFrozen
from deploy.qualification import why_not
from inventory.models import Subnet


def require_leave(subnet: Subnet) -> None:
    """Raise NotWritable unless the subnet is in mode write and qualified, SubnetFrozen while rollouts are stopped."""
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


def withdrawn(subnet_id: int) -> str:
    """Why nothing may be placed any more, read anew: a freeze may have come while the rollout was queued. "" if not."""
    try:
        require_leave(Subnet.objects.get(pk=subnet_id))
    except (NotWritable, SubnetFrozen) as refusal:
        return str(refusal)
    return ""
