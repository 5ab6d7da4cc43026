"""Rename a partition. A name is for people and for the file: it changes no port, and the next rollout renders it."""

from django.db import transaction

from audit.actions import Action
from audit.record import record
from inventory.models import Subnet
from partitions.creation import refuse_name
from partitions.doer import Doer, as_actor
from partitions.errors import PartitionRefused
from partitions.models import Partition
from partitions.subjects import partition_subject, tenant_key


@transaction.atomic
def rename_partition(
    *, partition: Partition, name: str, actor: Doer, reason: str = "", title: str | None = None
) -> Partition:
    """Call `partition` by another name. Nothing is staged: a new name alone is nothing to roll out.

    OpenSM keeps the first name that it read with a P_Key until that partition empties (ground truth: OpenSM, 1), so
    its log may show the old one for long. `title` is what its tenant calls it from now on; without one that stays.
    Raises InvalidName or PartitionRefused.
    """
    Subnet.objects.select_for_update(no_key=True).get(pk=partition.subnet_id)
    fresh = Partition.objects.select_for_update(of=("self",)).select_related("tenant", "subnet").get(pk=partition.pk)
    if fresh.retired_at is not None:
        raise PartitionRefused(f"{fresh.name} is retired: old files and the trail know it by this name, so it stays.")
    title = fresh.title if title is None else title
    if fresh.name == name and fresh.title == title:
        raise PartitionRefused(f"The partition is called {name} already.")
    refuse_name(name, fresh.subnet, of=fresh)
    before = partition_subject(fresh)
    fresh.name, fresh.title = name, title
    fresh.save(update_fields=["name", "title"])
    record(
        action=Action.PARTITION_RENAME,
        actor=as_actor(actor),
        subject=before,
        before={"name": before.label},
        after={"name": name},
        reason=reason,
        tenant_key=tenant_key([fresh]),
    )
    return fresh
