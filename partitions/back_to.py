"""Back to then: stage what brings every server back to where it was at a moment, and say what cannot be.

Nothing new is allowed because it was once so. A server goes back whole or not at all, each by the rules of a move;
from one tenant to another it goes in two revisions (`partitions/handover.py`), because what is staged here is planned
and rolled out like anything else.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction

from audit.actions import Action
from audit.record import Draft, record, record_all
from deploy.as_of import current_at
from deploy.models import Revision
from deploy.queries import current_revision, latest_observation, observed_fabric
from inventory.models import Port, Server, Subnet
from inventory.subjects import server_subject, subnet_subject
from partitions import handover, mirror, refusals, staged_rows
from partitions.as_of import rows_at
from partitions.default_rule import stage_default
from partitions.desired import sm_ports, wanted_table
from partitions.doer import Doer, as_actor, as_person
from partitions.errors import MoveRefused, NoRevision, PartitionsError
from partitions.models import Membership, MembershipKind, Partition, StagedChange
from partitions.plans import limits
from partitions.standing import Place, Standing
from partitions.subjects import partition_label, tenant_key
from partitions.wishes import write
from people.models import User
from subnet import policy
from subnet.change import difference
from subnet.errors import SubnetError
from subnet.guid import GUID
from subnet.pkey import DEFAULT, PKey
from subnet.table import PartitionTable, safe_label


@dataclass(frozen=True, slots=True)
class ServerBack:
    """One server that can go back: where it is now and where it was; both in order of name."""

    standing: Standing
    now: tuple[Partition, ...]
    then: tuple[Partition, ...]
    edits: Mapping[Place, MembershipKind | None]
    waits: bool  # it was with another tenant: it leaves first, and joins once it is marked clean

    @property
    def server(self) -> Server:
        """Which one."""
        return self.standing.server

    @property
    def partitions(self) -> Mapping[int, Partition]:
        """Those that the edits, or what was staged before, name."""
        staged = (row.partition for row in self.standing.staged.values())
        return {partition.pk: partition for partition in (*self.now, *self.then, *staged)}


@dataclass(frozen=True, slots=True)
class Left:
    """Something that stays as it is, and the sentence that says why."""

    where: str
    sentence: str


@dataclass(frozen=True, slots=True)
class WayBack:
    """What would be staged, what is left and why, and what the plan would refuse."""

    at: datetime
    then: Revision
    now: Revision
    servers: tuple[ServerBack, ...]
    left: tuple[Left, ...]
    default: bool  # whether Default goes back as well
    violations: tuple[policy.Violation, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to stage."""
        return not self.servers and not self.default


@transaction.atomic
def way_back(*, subnet: Subnet, at: datetime, person: User) -> WayBack:
    """Work out what `stage_back` would do; nothing is written. Raises NoRevision, MoveRefused."""
    return _work_out(subnet, at, person)


@transaction.atomic
def stage_back(*, subnet: Subnet, at: datetime, actor: Doer, reason: str) -> WayBack:
    """Stage that everything goes back to how it was at `at`, as far as it can; what is left is in the answer.

    A reason is wanted, because it undoes what others have done since. Raises NoRevision, and MoveRefused without a
    reason, when the stored revision is not what the trail vouches for, and when there is nothing to stage.
    """
    if not reason.strip():
        raise MoveRefused("Say why the fabric goes back: it undoes what others have done since.", rule="reason")
    mirror.catch_up(subnet)
    person = as_person(actor)
    found = _work_out(subnet, at, person)
    if found.is_empty:
        raise MoveRefused(
            f"There is nothing to put back to {refusals.moment(at)}: "
            + (found.left[0].sentence if found.left else "all is as it was."),
            rule="nothing",
        )
    told = f"As at {refusals.moment(at)}: {reason}"
    notes = staged_rows.Notes()
    drafts: list[Draft] = []
    for back, after in zip(found.servers, write(found.servers, person=person, reason=told), strict=True):
        notes.add([port.pk for port in back.standing.ports], back.standing.staged.values(), after)
        drafts.append(_draft(back, len(after), actor, told))
    if found.default:
        default = _table(found.then).default
        stage_default(subnet=subnet, keywords=default.keywords, members=default.members, actor=actor, reason=told)
    else:  # what an undo could not take back whole is not offered to it
        title = f"everything as at {refusals.moment(at)}"
        staged_rows.remember(subnet=subnet, person=person, title=title, notes=notes)
    record_all(drafts)
    record(
        action=Action.BACK_TO_STAGE,
        actor=as_actor(actor),
        subject=subnet_subject(subnet),
        before={"revision": found.now.number},
        after={
            "at": at,
            "revision": found.then.number,
            "servers": len(found.servers),
            "default": found.default,
            "left": [left.sentence for left in found.left][:50],
        },
        reason=reason,
    )
    return found


def _draft(back: ServerBack, staged: int, actor: Doer, reason: str) -> Draft:
    """The event of one server."""
    return Draft(
        action=Action.MEMBER_STAGE,
        actor=as_actor(actor),
        subject=server_subject(back.server),
        before={"partitions": [partition_label(partition) for partition in back.now]},
        after={
            "server": back.server.hostname,
            "partitions": [partition_label(partition) for partition in back.then],
            "ports": len(back.standing.ports),
            "staged_changes": staged,
        },
        reason=reason,
        tenant_key=tenant_key(back.partitions.values()),
    )


def _work_out(subnet: Subnet, at: datetime, person: User) -> WayBack:
    now, then = current_revision(subnet), current_at(subnet, at)
    if now is None or then is None:
        raise NoRevision(f"No revision was current on subnet {subnet} at {refusals.moment(at)}. Choose a later moment.")
    if not then.is_vouched or then.table is None:
        raise MoveRefused(
            f"The stored {then.revision} is not what the audit trail says was made (event {then.event}): its digests "
            "differ. Nothing is put back to it. Find out who changed the database: run the audit verification.",
            rule="not_vouched",
        )
    current, wanted = _table(now), then.table
    rows = rows_at(subnet, at)
    servers, loose = _touched(subnet, current, wanted)
    backs: list[ServerBack] = []
    left: list[Left] = [*_left_ports(subnet, loose, current, wanted)]
    standings = Standing.of_all(servers)
    guids = (port.guid for standing in standings.values() for port in standing.ports)
    changing = refusals.under_way(subnet, guids)
    for server in servers:
        try:
            back = _server(standings[server.pk], wanted, rows, person, changing)
        except MoveRefused as refused:
            left.append(Left(server.hostname, str(refused)))
        else:
            backs += [] if back is None else [back]
    changes = [*_changes(backs, person)]
    going, waiting = handover.split(changes, current)
    waits = {one.server.pk for one in waiting}
    left += _left_rules(current, wanted)
    return WayBack(
        at=at,
        then=then.revision,
        now=now,
        servers=tuple(replace(back, waits=back.server.pk in waits) for back in backs),
        left=tuple(left),
        default=_default_differs(subnet, current, wanted),
        violations=tuple(_violations(subnet, current, going)),
    )


def _touched(subnet: Subnet, current: PartitionTable, wanted: PartitionTable) -> tuple[list[Server], list[GUID]]:
    """The servers whose ports differ between the tables, or have something staged; and ports that have no server."""
    differing = {change.guid for change in difference(current, wanted).changes if change.pkey != DEFAULT}
    staged = StagedChange.objects.of_subnet(subnet).values_list("port__guid", flat=True)
    differing |= {GUID(guid) for guid in staged}
    servers: dict[int, Server] = {}
    known: set[GUID] = set()
    for batch in mirror.batches(sorted(differing)):
        for port in Port.objects.filter(subnet=subnet, guid__in=batch, hca__isnull=False).select_related(
            "hca__server__subnet"
        ):
            known.add(GUID(port.guid))
            assert port.hca is not None  # noqa: S101  the filter says so
            servers[port.hca.server_id] = port.hca.server
    return sorted(servers.values(), key=lambda server: server.hostname), sorted(differing - known)


def _left_ports(subnet: Subnet, guids: list[GUID], current: PartitionTable, wanted: PartitionTable) -> Iterator[Left]:
    """Ports that no server has (any more): nobody can say whose machine would be moved."""
    was, now = wanted.by_port(), current.by_port()
    for guid in guids:
        if was.get(guid) != now.get(guid):
            label = wanted.labels.get(guid)
            whose = f" It was {label}'s then." if label else ""
            yield Left(
                str(guid),
                f"Port {guid} belongs to no server that has reported it, so it stays as it is.{whose} Change it on the "
                "page of its partition, or let its server report again.",
            )


def _server(
    standing: Standing,
    wanted: PartitionTable,
    rows: Mapping[PKey, Partition],
    person: User,
    changing: refusals.UnderWay | None,
) -> ServerBack | None:
    """How one server goes back whole; None when it is wanted there already. Raises MoveRefused."""
    server = standing.server
    edits: dict[Place, MembershipKind | None] = dict.fromkeys({*standing.memberships, *standing.staged})
    then: set[Partition] = set()
    held = wanted.by_port()
    for port in standing.ports:
        for pkey, membership in held.get(GUID(port.guid), {}).items():
            label = wanted.labels.get(GUID(port.guid))
            if label is not None and label != safe_label(server.hostname):
                raise MoveRefused(
                    f"Port {port.guid} was {label}'s then and is {server}'s now: another machine would get its "
                    "place. Move the server that should have it.",
                    rule="another_server",
                )
            partition = _standing_partition(pkey, wanted, rows)
            edits[port.pk, partition.pk] = MembershipKind(membership.value)
            then.add(partition)
    if all(standing.wanted(place) == kind for place, kind in edits.items()):
        return None
    refusals.refuse_unfit_ports(standing)
    refusals.refuse_changing(changing, {port.guid: server.hostname for port in standing.ports})
    refusals.refuse_anothers_change(standing, person)
    for partition in then:
        refusals.refuse_two_tenants(standing, partition, then)
    return ServerBack(
        standing=standing,
        now=tuple(standing.partitions_now()),
        then=tuple(sorted(then, key=lambda partition: partition.name.lower())),
        edits=edits,
        waits=False,
    )


def _standing_partition(pkey: PKey, wanted: PartitionTable, rows: Mapping[PKey, Partition]) -> Partition:
    """The row that had this P_Key then, if it still takes members. Raises MoveRefused."""
    row, known = rows.get(pkey), wanted.partition(pkey)
    name = known.name if known is not None else str(pkey)
    if row is None:
        raise MoveRefused(
            f"{name} ({pkey}) of that time has no row any more, so nothing can join it. Create a partition instead.",
            rule="no_partition",
        )
    if row.retired_at is not None:
        raise MoveRefused(
            f"{name} ({pkey}) was retired at {refusals.moment(row.retired_at)} and takes no members; its P_Key may be "
            "another's by now. Create a partition for these servers and move them there.",
            rule="retired",
        )
    return row


def _changes(backs: list[ServerBack], person: User) -> Iterator[StagedChange]:
    """The rows as they would be staged, not stored: for what the plan would say of them."""
    ids = [port for back in backs for port, _ in back.edits]
    ports: dict[int, Port] = {}
    for batch in mirror.batches(sorted(set(ids))):
        ports |= Port.objects.select_related("hca__server", "former_tenant").in_bulk(batch)
    number = 0
    for back in backs:
        partitions = {partition.pk: partition for partition in (*back.now, *back.then)}
        current = _current_kinds(back)
        for (port, partition), kind in back.edits.items():
            was = current.get((port, partition))
            if kind != was and partition in partitions:
                number -= 1  # no row has it: only told apart by it
                yield StagedChange(
                    pk=number, port=ports[port], partition=partitions[partition], kind_from=was, kind_to=kind, by=person
                )


def _current_kinds(back: ServerBack) -> dict[Place, MembershipKind]:
    rows = Membership.objects.filter(port__in={port for port, _ in back.edits})
    return {(row.port_id, row.partition_id): MembershipKind(row.kind) for row in rows}


def _violations(subnet: Subnet, current: PartitionTable, going: tuple[StagedChange, ...]) -> Iterator[policy.Violation]:
    """What the rules say of the table that would follow, as the plan page will."""
    try:
        table = wanted_table(subnet=subnet, current=current, changes=going)
    except (SubnetError, PartitionsError) as error:
        yield policy.Violation(rule="table", severity="refuse", where=str(subnet), sentence=str(error))
        return
    looked = latest_observation(subnet)
    fabric = None if looked is None else observed_fabric(looked)
    yield from policy.check(table, limits(fabric, table), sm_ports_registered=table.sm_ports, standing=current)


def _left_rules(current: PartitionTable, wanted: PartitionTable) -> Iterator[Left]:
    """Flags, keywords and multicast lines differ: no staged change can say so."""
    found = difference(current, wanted)
    touched: dict[str, set[str]] = defaultdict(set)
    for change in found.keywords:
        if change.pkey != DEFAULT:
            touched[change.partition].add(f"keyword {change.keyword}")
    for flag in found.flags:
        touched[flag.partition].add(f"flag {flag.flag}")
    for mgid in found.mgids:
        touched[mgid.partition].add("multicast groups")
    for name, what in sorted(touched.items()):
        yield Left(name, f"{name} stays as it is in {', '.join(sorted(what))}: FabricUI does not change these.")


def _default_differs(subnet: Subnet, current: PartitionTable, wanted: PartitionTable) -> bool:
    """Whether Default's keywords or exceptions were others; manager hosts of today stay in it in any case."""
    then = replace(current.default, keywords=wanted.default.keywords, members=wanted.default.members)
    try:
        return PartitionTable(sm_ports=sm_ports(subnet), default=then).default != current.default
    except SubnetError:
        return False


def _table(revision: Revision) -> PartitionTable:
    return revision.partition_table()
