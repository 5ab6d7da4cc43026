"""Undo: what a person has staged or discarded is taken back, the last action first, until a rollout makes it true.

The former rows come back exactly as they were, and only while the rows still are as the action left them and the rules
would still let them be staged.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from audit.actions import Action
from audit.record import Draft, record_all
from inventory.models import Port, Server, Subnet
from partitions import mirror, refusals, staged_rows, wishes
from partitions.doer import Doer, as_actor, as_person
from partitions.errors import MoveRefused
from partitions.models import Membership, Partition, StagedChange, StagingAction
from partitions.staged_rows import Row
from partitions.standing import Standing
from partitions.subjects import place_subject, tenant_key


@dataclass(frozen=True, slots=True)
class Undone:
    """What was taken back: the action in words, and how many servers it concerned."""

    title: str
    servers: int


@transaction.atomic
def undo(*, subnet: Subnet, actor: Doer) -> Undone:
    """Take back the last action of this person on `subnet`. Raises MoveRefused, and then nothing is changed."""
    person = as_person(actor)
    mirror.catch_up(subnet)
    action = StagingAction.objects.filter(subnet=subnet, by=person).order_by("-pk").first()
    if action is None:
        raise MoveRefused(
            "There is nothing to undo: what you staged has gone out, or was taken back.", rule="nothing_to_undo"
        )
    partitions = {row.pk: row for row in Partition.objects.filter(pk__in={row[1] for row in action.before})}
    wishes.hold(partitions.values())
    ports = _ports(action)
    _refuse_unless_as_left(action)
    _refuse_by_rule(action, ports, partitions, subnet)
    for batch in mirror.batches(action.ports):
        StagedChange.objects.filter(port__in=batch).delete()
    back = [_change(row) for row in action.before]
    StagedChange.objects.bulk_create(back, batch_size=mirror.BATCH // 10)
    StagingAction.objects.filter(pk=action.pk).delete()
    return Undone(title=action.title, servers=_record(action, ports, partitions, actor))


def _ports(action: StagingAction) -> dict[int, Port]:
    """The ports with their servers, whose rows are held until the transaction ends, in the order of all stagings."""
    found: dict[int, Port] = {}
    for batch in mirror.batches(action.ports):
        found |= {port.pk: port for port in Port.objects.filter(pk__in=batch).select_related("hca__server__subnet")}
    servers = sorted({port.hca.server_id for port in found.values() if port.hca is not None})
    for batch in mirror.batches(servers):
        list(Server.objects.select_for_update().filter(pk__in=batch).order_by("pk"))
    return found


def _refuse_unless_as_left(action: StagingAction) -> None:
    now = [staged_rows.as_row(change) for change in staged_rows.held_of_ports(action.ports)]
    if sorted(row[:5] for row in now) != sorted(row[:5] for row in action.after):
        raise MoveRefused(
            f"“{action.title}” cannot be undone: what is staged for these servers was changed since. Move them as you "
            "want them.",
            rule="not_as_left",
        )


def _refuse_by_rule(
    action: StagingAction, ports: dict[int, Port], partitions: dict[int, Partition], subnet: Subnet
) -> None:
    """What comes back must be what one could stage now: the world may have moved on since."""
    places = {ports[pk].guid: place_subject(ports[pk]).label for pk in action.ports}
    refusals.refuse_rolling_out(subnet, places)
    current: dict[tuple[int, int], str] = {}
    for batch in mirror.batches(action.ports):
        rows = Membership.objects.filter(port__in=batch).values_list("port_id", "partition_id", "kind")
        current |= {(port, partition): kind for port, partition, kind in rows}
    joining: set[int] = set()
    for port, partition, kind_from, kind_to, *_ in action.before:
        if current.get((port, partition)) != kind_from:
            raise MoveRefused(
                f"“{action.title}” cannot be undone: {places[ports[port].guid]} was rolled out since. Move it as you "
                "want it.",
                rule="not_as_left",
            )
        if kind_to is not None:
            refusals.refuse_retired(partitions[partition])
            joining |= {port} if kind_from is None else set()
    for standing in Standing.of_all(_servers(ports[pk] for pk in joining)).values():
        refusals.refuse_unfit_ports(standing)


def _servers(ports: Iterable[Port]) -> list[Server]:
    servers = {port.hca.server for port in ports if port.hca is not None}
    return sorted(servers, key=lambda server: server.pk)


def _change(row: Row) -> StagedChange:
    port, partition, kind_from, kind_to, by, at, reason = row
    return StagedChange(
        port_id=port, partition_id=partition, kind_from=kind_from, kind_to=kind_to, by_id=by,
        at=datetime.fromisoformat(at), reason=reason,
    )  # fmt: skip


def _record(action: StagingAction, ports: dict[int, Port], partitions: dict[int, Partition], actor: Doer) -> int:
    """One event a server, which says what is staged for it again. Returns how many there were."""
    by_label: dict[str, list[Port]] = defaultdict(list)
    before: dict[int, list[Row]] = defaultdict(list)
    for port in ports.values():
        by_label[place_subject(port).label].append(port)
    for row in action.before:
        before[row[0]].append(row)
    after = Counter(row[0] for row in action.after)
    drafts = []
    for _, its in sorted(by_label.items()):
        back = [row for port in its for row in before[port.pk]]
        drafts.append(
            Draft(
                action=Action.MEMBER_UNDO,
                actor=as_actor(actor),
                subject=place_subject(its[0]),
                before={"action": action.title, "changes": sum(after[port.pk] for port in its)},
                after={"staged": _way(back, partitions), "changes": len(back), "ports": len(its)},
                tenant_key=tenant_key(partitions[row[1]] for row in back),
            )
        )
    record_all(drafts)
    return len(by_label)


def _way(rows: Collection[Row], partitions: dict[int, Partition]) -> str:
    """As `refusals.way`; “nothing” when nothing is staged any more."""
    changes = []
    for row in rows:
        change = _change(row)
        change.partition = partitions[row[1]]
        changes.append(change)
    return refusals.way(changes) or "nothing"
