"""Wishes: where servers shall be next, one or many at a time. Each is decided alone, all are written together.

Decided means refused with a sentence, or turned into edits of rows; nothing is written before the last one is. So a
refused wish leaves no trace, and the rows, the memory of undo and the events of many servers cost a few statements.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from django.db import transaction
from django.utils import timezone

from audit.actions import Action
from audit.record import Draft, record_all
from audit.values import Actor
from inventory.models import Server, Subnet
from inventory.subjects import server_subject
from partitions import mirror, quotas, refusals, staged_rows
from partitions.doer import Doer, as_actor, as_person
from partitions.errors import MoveRefused
from partitions.models import MembershipKind, Partition, StagedChange
from partitions.staged_rows import Notes
from partitions.standing import Place, Standing
from partitions.subjects import partition_label, tenant_key
from people.models import Tenant, User
from subnet.pkey import Membership

type Edits = dict[Place, MembershipKind | None]


@dataclass(frozen=True, slots=True)
class Wish:
    """All InfiniBand ports of `server` out of `source` and in `target`; None is Unassigned.

    With `adds` they keep every other place, and what they have in `target` already becomes `membership`.
    """

    server: Server
    source: Partition | None
    target: Partition | None
    membership: Membership = Membership.FULL
    adds: bool = False


class HasEdits(Protocol):
    """What `write` writes: how one server's ports shall differ from what they stand for."""

    @property
    def standing(self) -> Standing: ...
    @property
    def edits(self) -> Mapping[Place, MembershipKind | None]: ...
    @property
    def partitions(self) -> Mapping[int, Partition]: ...  # those that the edits name


@dataclass(frozen=True, slots=True)
class Decided:
    """What a wish that was not refused makes of its server."""

    wish: Wish
    standing: Standing
    edits: Edits
    partitions: Mapping[int, Partition]  # those that the edits name
    before: Sequence[Partition]
    wanted: Sequence[Partition]


@transaction.atomic
def stage(
    *, wishes: Sequence[Wish], actor: Doer, reason: str = "", for_tenant: Tenant | None = None
) -> list[MoveRefused | None]:
    """Stage `wishes`, each as if it were alone; give for each why it was refused, or None when it stands.

    `for_tenant` are whose people stage them for themselves.

    A server that is named twice is staged twice, one after the other. Undo takes all of them back as one action.
    Raises MoveRefused when a target takes no members any more, and then stages none.
    """
    person = as_person(actor)
    rooms = quotas.Rooms.held_for(wish.target for wish in wishes)
    for subnet in {wish.server.subnet for wish in wishes}:
        mirror.catch_up(subnet)
    hold([wish.source for wish in wishes], [wish.target for wish in wishes])
    outcomes: list[MoveRefused | None] = [None] * len(wishes)
    notes = Notes()
    drafts: list[Draft] = []
    staged: list[Wish] = []
    for turn in _turns(wishes):
        decided = _decide({at: wishes[at] for at in turn}, person, outcomes, rooms)
        for one, after in zip(
            decided, write(decided, person=person, reason=reason, for_tenant=for_tenant), strict=True
        ):
            notes.add([port.pk for port in one.standing.ports], one.standing.staged.values(), after)
            drafts.append(_draft(one, len(after), as_actor(actor), reason))
            staged.append(one.wish)
    if staged:
        target = _named(staged[0].target)
        title = f"{staged[0].server} to {target}" if len(staged) == 1 else f"{len(staged)} servers to {target}"
        staged_rows.remember(subnet=staged[0].server.subnet, person=person, title=title, notes=notes)
    record_all(drafts)
    return outcomes


def hold(sources: Iterable[Partition | None], targets: Iterable[Partition | None] = ()) -> None:
    """Hold these partitions' rows until the transaction ends, so that nobody retires a target meanwhile.

    Partitions come before servers, as in `retire_partition`. Raises MoveRefused for a target that is retired.
    """
    joined = {partition.pk for partition in targets if partition is not None}
    ids = joined | {partition.pk for partition in sources if partition is not None}
    for fresh in Partition.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=ids).order_by("pk"):
        if fresh.pk in joined:
            refusals.refuse_retired(fresh)


def _turns(wishes: Sequence[Wish]) -> list[list[int]]:
    """The places of the wishes, so that each server is named once a turn; nearly always there is one turn."""
    turns: list[list[int]] = []
    seen: Counter[int] = Counter()
    for at, wish in enumerate(wishes):
        turn = seen[wish.server.pk]
        seen[wish.server.pk] += 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(at)
    return turns


def _decide(
    turn: Mapping[int, Wish], person: User, outcomes: list[MoveRefused | None], rooms: quotas.Rooms
) -> list[Decided]:
    """What stands of a turn; what does not is told in `outcomes`."""
    standings = Standing.of_all(wish.server for wish in turn.values())
    changing: dict[Subnet, refusals.UnderWay | None] = {}
    for subnet in {wish.server.subnet for wish in turn.values()}:
        its = (standing for standing in standings.values() if standing.server.subnet_id == subnet.pk)
        changing[subnet] = refusals.under_way(subnet, (port.guid for standing in its for port in standing.ports))
    decided: list[Decided] = []
    for at, wish in turn.items():
        try:
            one = decide(wish, standings[wish.server.pk], person, changing[wish.server.subnet])
            rooms.take(wish.server, one.wanted)
            decided.append(one)
        except MoveRefused as refusal:
            outcomes[at] = refusal
    return decided


def decide(wish: Wish, standing: Standing, person: User, changing: refusals.UnderWay | None) -> Decided:
    """The edits of one wish. Raises MoveRefused."""
    server, source, target, adds = wish.server, wish.source, wish.target, wish.adds
    refusals.refuse_target(server, target, None if adds else source)
    refusals.refuse_unfit_ports(standing, joins=target is not None)
    refusals.refuse_changing(changing, {port.guid: server.hostname for port in standing.ports})
    refusals.refuse_anothers_change(standing, person)
    if source is not None or not adds:
        refusals.refuse_lost_source(standing, source)
    if source is not None and source == target:
        refusals.refuse_limited_only(standing, source, wish.membership)

    before = standing.partitions_wanted()
    after = {partition for partition in before if partition != source or adds}
    edits: Edits = {}
    if source is not None and not adds:
        edits |= {(port.pk, source.pk): None for port in standing.ports}
    if target is not None:
        refusals.refuse_two_tenants(standing, target, after | {target})
        refusals.refuse_full_in_shared(standing, target, after - {target})
        edits |= _joining(standing, target, after, MembershipKind(wish.membership.value), adds=adds)
        if adds and all(standing.wanted(place) == kind for place, kind in edits.items()):
            raise MoveRefused(
                f"{server} is in {target.name} already, with this membership. There is nothing to add.",
                rule="same_partition",
            )
        after |= {target}
    named = {partition.pk: partition for partition in (source, target) if partition is not None}
    wanted = sorted(after, key=lambda partition: partition.name)
    return Decided(wish=wish, standing=standing, edits=edits, partitions=named, before=before, wanted=wanted)


def _joining(
    standing: Standing, target: Partition, after: set[Partition], asked: MembershipKind, *, adds: bool
) -> Edits:
    """How each port joins `target`: a tenant's ports join the provider's partitions as limited members, always.

    A move keeps the membership a port has there already, so that moving back is undoing; adding may change it.
    """
    belongs_to_tenant = bool(standing.tenants_now()) or any(partition.tenant is not None for partition in after)
    places = [(port.pk, target.pk) for port in standing.ports]
    if target.tenant is None and belongs_to_tenant:
        return dict.fromkeys(places, MembershipKind.LIMITED)
    if adds:
        return dict.fromkeys(places, asked)
    return {place: standing.wanted(place) or standing.current(place) or asked for place in places}


def write(
    entries: Sequence[HasEdits], *, person: User, reason: str, for_tenant: Tenant | None = None
) -> list[list[StagedChange]]:
    """Make the rows say the edits of all `entries`: one row for each difference from the current revision, none where
    there is none. Give each one's staged changes as they stand then.
    """
    at = timezone.now()
    undone: list[int] = []
    rows: list[StagedChange] = []
    standing_then: list[list[StagedChange]] = []
    for entry in entries:
        staged = dict(entry.standing.staged)
        for place, kind in entry.edits.items():
            current, former = entry.standing.current(place), staged.pop(place, None)
            if kind == current:
                undone += [] if former is None else [former.pk]
                continue
            port, partition = place
            staged[place] = StagedChange(
                port_id=port, partition=entry.partitions[partition], kind_from=current, kind_to=kind, by=person, at=at,
                reason=reason, for_tenant=for_tenant,
            )  # fmt: skip
            rows.append(staged[place])
        standing_then.append(list(staged.values()))
    for batch in mirror.batches(undone):
        StagedChange.objects.filter(pk__in=batch).delete()
    StagedChange.objects.bulk_create(
        rows,
        batch_size=mirror.BATCH,
        update_conflicts=True,
        unique_fields=["port", "partition"],
        update_fields=["kind_from", "kind_to", "by", "at", "reason", "for_tenant"],
    )
    return standing_then


def _draft(one: Decided, staged: int, actor: Actor, reason: str) -> Draft:
    server = one.wish.server
    return Draft(
        action=Action.MEMBER_STAGE,
        actor=actor,
        subject=server_subject(server),
        before={"partitions": [partition_label(partition) for partition in one.before]},
        after={
            "server": server.hostname,
            "partitions": [partition_label(partition) for partition in one.wanted],
            "ports": len(one.standing.ports),
            "staged_changes": staged,
        },
        reason=reason,
        tenant_key=tenant_key(one.partitions.values()),
    )


def _named(target: Partition | None) -> str:
    return "Unassigned" if target is None else target.name
