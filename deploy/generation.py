"""Tell a restored, older database which fencing generation the manager hosts have seen, so that it may place again.

Nothing is placed here. A person has made sure by then that no other FabricUI places files on these hosts.
"""

from django.db import transaction

from audit.actions import Action
from audit.record import record
from audit.values import Actor, Subject
from deploy.errors import ReasonNeeded, StaleRevision, SubnetBusy
from deploy.models import Fence
from inventory.models import Subnet


@transaction.atomic
def raise_generation(*, subnet: Subnet, generation: int, actor: Actor, reason: str) -> Fence:
    """Let the next rollout of `subnet` take a generation above `generation`, the newest that any host has seen.

    Raises ReasonNeeded, SubnetBusy while a rollout holds the subnet, StaleRevision when there is nothing to raise.
    """
    if not reason.strip():
        raise ReasonNeeded("Say what became of the newer database, so that the next person can read it in the trail.")
    fence = Fence.objects.select_for_update().filter(subnet=subnet).first()
    if fence is None:
        raise StaleRevision(f"Subnet {subnet} has no first revision: there is nothing to raise.")
    if fence.rollout_id is not None:
        raise SubnetBusy(f"A rollout holds subnet {subnet}. Wait until it has ended, or let go of it.")
    if generation <= fence.generation:
        raise StaleRevision(f"Subnet {subnet} is at generation {fence.generation} already: no host may have seen more.")
    was, fence.generation = fence.generation, generation
    fence.save(update_fields=["generation"])
    record(
        action=Action.GENERATION_RAISE,
        actor=actor,
        subject=Subject(kind="subnet", key=subnet.public_id, label=subnet.name),
        before={"generation": was},
        after={"generation": generation},
        reason=reason,
    )
    return fence
