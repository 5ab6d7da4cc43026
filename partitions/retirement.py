"""Retire a partition: at once when nobody is in it, else by staging that everybody leaves.

The row stays: its name stands in old files and in the trail, and its P_Key cools down before it is drawn again.
"""

from collections.abc import Collection
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from deploy.models import Revision
from deploy.queries import current_revision, running_rollout
from inventory.models import Server, Subnet
from partitions import mirror, refusals, staged_rows
from partitions.doer import Doer, as_actor, as_person
from partitions.errors import MoveRefused, PartitionRefused
from partitions.models import Membership, Partition, StagedChange
from partitions.subjects import partition_subject, tenant_key
from people.models import User
from subnet.guid import GUID
from subnet.pkey import PKey


@dataclass(frozen=True, slots=True)
class Retirement:
    """What came of it: the partition is retired, or `ports` of `servers` are staged out of it first."""

    partition: Partition
    is_retired: bool
    ports: int = 0
    servers: int = 0


@transaction.atomic
def retire_partition(*, partition: Partition, actor: Doer, reason: str = "") -> Retirement:
    """Retire `partition` when it is empty in the current revision; otherwise stage that all its members leave.

    After that has been rolled out, ask again. Raises PartitionRefused when it cannot be retired, MoveRefused when
    somebody else's change or a running rollout stands in the way; then nothing was changed.
    """
    person = as_person(actor)
    # Not its key: whoever holds the partition and stages into it writes a row that names the subnet.
    subnet = Subnet.objects.select_for_update(no_key=True).get(pk=partition.subnet_id)
    mirror.catch_up(subnet)
    fresh = Partition.objects.select_for_update(of=("self",)).select_related("tenant", "subnet").get(pk=partition.pk)
    if fresh.retired_at is not None:
        raise PartitionRefused(f"{fresh.name} was retired at {refusals.moment(fresh.retired_at)} already.")
    _refuse_joins(fresh)
    _refuse_rollout(fresh)
    members = list(Membership.objects.filter(partition=fresh).select_related("port__hca__server"))
    if _has_keywords(fresh):
        raise PartitionRefused(
            f"{fresh.name} has members by keyword, such as ALL, beside the ports that it names. FabricUI cannot take "
            "those out yet, so it cannot be retired."
        )
    if members:
        return _empty(fresh, members, person, actor, reason)
    fresh.retired_at = timezone.now()
    fresh.save(update_fields=["retired_at"])
    record(
        action=Action.PARTITION_RETIRE,
        actor=as_actor(actor),
        subject=partition_subject(fresh),
        after={"pkey": str(PKey(fresh.pkey)), "retired_at": fresh.retired_at.isoformat()},
        reason=reason,
        tenant_key=tenant_key([fresh]),
    )
    return Retirement(fresh, is_retired=True)


def _empty(partition: Partition, members: Collection[Membership], person: User, actor: Doer, reason: str) -> Retirement:
    servers = sorted({row.port.hca.server for row in members if row.port.hca is not None}, key=lambda row: row.pk)
    list(Server.objects.select_for_update().filter(pk__in=[row.pk for row in servers]).order_by("pk"))
    ports = [row.port_id for row in members]
    for batch in mirror.batches(ports):
        others = StagedChange.objects.filter(port__in=batch).exclude(by=person).whole().first()
        if others is not None:
            raise MoveRefused(
                f"{others.by} has staged {_where(others)} {refusals.way([others])} at {refusals.moment(others.at)}. "
                f"Ask {others.by}, or discard that change first.",
                rule="another_person",
            )
    notes = staged_rows.Notes()
    notes.add(ports, staged_rows.of_ports(ports), ())
    at = timezone.now()
    StagedChange.objects.bulk_create(
        [
            StagedChange(
                port_id=row.port_id, partition=partition, kind_from=row.kind, kind_to=None, by=person, at=at,
                reason=reason,
            )
            for row in members
        ],
        batch_size=mirror.BATCH // 10,
        update_conflicts=True,
        unique_fields=["port", "partition"],
        update_fields=["kind_from", "kind_to", "by", "at", "reason", "for_tenant"],
    )  # fmt: skip
    notes.add((), (), staged_rows.of_ports(ports))
    title = f"everybody out of {partition.name}"
    staged_rows.remember(subnet=partition.subnet, person=person, title=title, notes=notes)
    record(
        action=Action.PARTITION_EMPTY,
        actor=as_actor(actor),
        subject=partition_subject(partition),
        before={"ports": len(ports), "servers": len(servers)},
        after={"ports": 0, "servers": 0},
        reason=reason,
        tenant_key=tenant_key([partition]),
    )
    return Retirement(partition, is_retired=False, ports=len(ports), servers=len(servers))


def _refuse_joins(partition: Partition) -> None:
    """Somebody still wants a server in it."""
    joining = StagedChange.objects.filter(partition=partition, kind_from=None).whole().order_by("-at").first()
    if joining is not None:
        raise PartitionRefused(
            f"{joining.by} has staged {_where(joining)} into {partition.name} at {refusals.moment(joining.at)}. "
            "Discard that change, or move the server elsewhere, then retire the partition."
        )


def _refuse_rollout(partition: Partition) -> None:
    """What a running rollout places may name it."""
    rollout = running_rollout(partition.subnet)
    if rollout is None or rollout.revision == current_revision(partition.subnet):
        return
    if _named(rollout.revision, partition) != _named(rollout.parent, partition):
        raise MoveRefused(
            f"A rollout that {rollout.started_by_name} started at {refusals.moment(rollout.requested_at)} is changing "
            f"{partition.name}. Wait until it has ended, then try again.",
            rule="rolling_out",
        )


def _named(revision: Revision, partition: Partition) -> set[tuple[GUID, str]]:
    """The members of the partition in a revision's stored JSON."""
    key = str(PKey(partition.pkey))
    items = [item for item in revision.table["partitions"] if item["pkey"] == key]
    return {(GUID(guid), kind) for item in items for guid, kind in item["members"]}


def _has_keywords(partition: Partition) -> bool:
    current = current_revision(partition.subnet)
    tables = [] if current is None else current.table["partitions"]
    return any(item["pkey"] == str(PKey(partition.pkey)) and item.get("keywords") for item in tables)


def _where(change: StagedChange) -> str:
    """Whose port it is: the server, or the port's GUID when no server has it."""
    return f"port {change.port}" if change.port.hca is None else str(change.port.hca.server)
