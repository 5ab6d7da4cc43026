"""Create a partition: a name OpenSM reads as one name, and a P_Key that no other partition has or had lately."""

from collections.abc import Iterable

from django.db import transaction

from audit.actions import Action
from audit.record import record
from inventory.models import Subnet
from partitions import pkeys
from partitions.doer import Doer, as_actor
from partitions.errors import PartitionRefused
from partitions.models import Partition
from partitions.subjects import partition_subject, tenant_key
from people.models import Tenant
from subnet.default import keywords_to_json, mgid_lines
from subnet.flags import Flags
from subnet.member import KeywordMember, keywords_in_order
from subnet.pkey import PKey
from subnet.table import NO_FLAGS, partition_name


@transaction.atomic
def create_partition(
    *,
    subnet: Subnet,
    tenant: Tenant | None,
    name: str,
    actor: Doer,
    pkey: PKey | int | None = None,
    flags: Flags = NO_FLAGS,
    keywords: Iterable[KeywordMember] = (),
    mgids: tuple[str, ...] = (),
    is_found: bool = False,
    title: str = "",
) -> Partition:
    """Create an empty partition of `tenant` (None: the provider's); it changes no port until a server joins it.

    Without `pkey` one is drawn at random from the pool, see `partitions/pkeys.py`; with `is_found` it is one that a
    file found on the managers already gives to ports. `title` is what its tenant calls it, where `name` was made of
    that (`partitions/titles.py`). Raises InvalidName, InvalidPKey, InvalidTable, InvalidFlag or
    PartitionRefused.
    """
    Subnet.objects.select_for_update(no_key=True).get(pk=subnet.pk)  # two people never draw the same key
    if tenant is not None and Tenant.objects.filter(pk=tenant.pk).exclude(offboarded_at=None).exists():
        raise PartitionRefused(f"{tenant} was let go: it gets no partition any more. Create another tenant.")
    refuse_name(name, subnet)
    if pkey is None:
        number = pkeys.draw(subnet)
    else:
        number = PKey.for_partition(pkey)
        pkeys.check(subnet, number, is_found=is_found)
    partition = Partition.objects.create(
        subnet=subnet,
        tenant=tenant,
        name=name,
        title=title,
        pkey=int(number),
        flags=flags.to_json(),
        keywords=keywords_to_json(keywords_in_order(keywords, name)),
        mgids=list(mgid_lines(mgids, name)),
    )
    record(
        action=Action.PARTITION_CREATE,
        actor=as_actor(actor),
        subject=partition_subject(partition),
        after={
            "pkey": str(number),
            "subnet": subnet.name,
            "tenant": None if tenant is None else tenant.name,
            "drawn": pkey is None,
            "flags": partition.flags,
        },
        tenant_key=tenant_key([partition]),
    )
    return partition


def refuse_name(name: str, subnet: Subnet, *, of: Partition | None = None) -> None:
    """Raise InvalidName or PartitionRefused unless a partition of `subnet` (`of`, or a new one) may be `name`."""
    partition_name(name)
    others = Partition.objects.filter(subnet=subnet, name__iexact=name)
    namesake = (others if of is None else others.exclude(pk=of.pk)).first()
    if namesake is not None:
        retired = " (retired, but its name stays in old files)" if namesake.retired_at else ""
        raise PartitionRefused(
            f"Subnet {subnet} already has a partition {namesake.name}{retired}. Choose another name."
        )
