"""Create a partition: a name OpenSM reads as one name, and a P_Key that nobody on the subnet ever had."""

import secrets

from django.db import transaction

from audit.actions import Action
from audit.record import record
from audit.values import Subject
from deploy.queries import current_revision
from inventory.models import Subnet
from partitions.doer import Doer, as_actor
from partitions.errors import PartitionRefused
from partitions.models import Partition
from people.models import Tenant
from subnet.pkey import FIRST_USABLE, LAST_USABLE, PKey
from subnet.table import partition_name


@transaction.atomic
def create_partition(
    *, subnet: Subnet, tenant: Tenant | None, name: str, actor: Doer, pkey: PKey | int | None = None
) -> Partition:
    """Create an empty partition of `tenant` (None: the provider's); it changes no port until a server joins it.

    Without `pkey` one is drawn at random among those never used on the subnet, retired partitions' included: a
    guessable or re-used key would let a forgotten configuration on a host meet the new members.
    Raises InvalidName, InvalidPKey or PartitionRefused.
    """
    partition_name(name)
    Subnet.objects.select_for_update().get(pk=subnet.pk)  # two people never draw the same key
    namesake = Partition.objects.filter(subnet=subnet, name__iexact=name).first()
    if namesake is not None:
        retired = " (retired, but its name stays in old files)" if namesake.retired_at else ""
        raise PartitionRefused(
            f"Subnet {subnet} already has a partition {namesake.name}{retired}. Choose another name."
        )
    used = _used(subnet)
    number = _draw(used, subnet) if pkey is None else _checked(PKey.for_partition(pkey), used, subnet)
    partition = Partition.objects.create(subnet=subnet, tenant=tenant, name=name, pkey=number)
    record(
        action=Action.PARTITION_CREATE,
        actor=as_actor(actor),
        subject=Subject(kind="partition", key=partition.public_id, label=partition.name),
        after={
            "pkey": str(PKey(number)),
            "subnet": subnet.name,
            "tenant": None if tenant is None else tenant.name,
            "drawn": pkey is None,
        },
        tenant_key="" if tenant is None else tenant.public_id,
    )
    return partition


def _used(subnet: Subnet) -> set[int]:
    """Every P_Key that a partition of the subnet has or had, or that stands in the current revision."""
    used = set(Partition.objects.filter(subnet=subnet).values_list("pkey", flat=True))
    current = current_revision(subnet)
    if current is not None:
        used |= {int(partition.pkey) for partition in current.partition_table().partitions}
    return used


def _draw(used: set[int], subnet: Subnet) -> int:
    free = [number for number in range(FIRST_USABLE, LAST_USABLE + 1) if number not in used]
    if not free:
        raise PartitionRefused(
            f"Subnet {subnet} has used all {LAST_USABLE} P_Keys. A new partition needs one that was never used; "
            "name one yourself if you know that no host still has it configured."
        )
    return secrets.choice(free)


def _checked(pkey: PKey, used: set[int], subnet: Subnet) -> int:
    owner = Partition.objects.filter(subnet=subnet, pkey=int(pkey)).first()
    if owner is not None:
        state = "was used by" if owner.retired_at else "is used by"
        raise PartitionRefused(f"P_Key {pkey} {state} partition {owner.name}. Choose another, or let one be drawn.")
    return int(pkey)
