"""May a manager host be taken out now? The inventory asks before it retires one."""

from deploy import queries
from deploy.models import RUNNING
from inventory.models import ManagerHost


def why_not(host: ManagerHost) -> str:
    """Why `host` may not be retired at this moment, in a sentence; "" when it may.

    A rollout that runs works with the hosts it began with. One that only waits (unproven, degraded, stuck) may be
    waiting for just this host, so it stops nothing.
    """
    rollout = queries.running_rollout(host.subnet)
    if rollout is not None and rollout.state in RUNNING:
        return (
            f"The rollout of {rollout.revision} is {rollout.get_state_display()} and works with manager host "
            f"{host.name}. Wait until it has ended, then retire the host."
        )
    return ""
