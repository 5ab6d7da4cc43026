"""Stage, add and discard: what a person wants next, port by port, as rows. Nothing here reaches the fabric."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from django.db import transaction
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import Subject
from inventory.models import Server
from partitions import mirror, refusals
from partitions.doer import Doer, as_actor, as_person
from partitions.errors import MoveRefused
from partitions.models import MembershipKind, Partition, StagedChange
from partitions.standing import Place, Standing
from people.models import User
from people.permissions import is_operator
from subnet.pkey import Membership


@transaction.atomic
def stage_move(
    *,
    server: Server,
    source: Partition | None,
    target: Partition | None,
    actor: Doer,
    membership: Membership = Membership.FULL,
    reason: str = "",
) -> tuple[StagedChange, ...]:
    """Want all InfiniBand ports of `server` out of `source` and in `target`; None is Unassigned.

    Staging back is undoing: a row that would say what is current already vanishes. Returns the server's staged
    changes as they stand afterwards. Raises MoveRefused.
    """
    refusals.refuse_target(server, target, source)
    return _stage(server=server, source=source, target=target, actor=actor, membership=membership, reason=reason)


@transaction.atomic
def stage_add(
    *, server: Server, target: Partition, actor: Doer, membership: Membership = Membership.FULL, reason: str = ""
) -> tuple[StagedChange, ...]:
    """Want all InfiniBand ports of `server` in `target` too, wherever else they are.

    For a server that is in `target` already this stages another membership. Returns and raises as `stage_move`,
    also when the server is there already just so.
    """
    refusals.refuse_target(server, target, None)
    return _stage(
        server=server, source=None, target=target, actor=actor, membership=membership, reason=reason, adds=True
    )


@transaction.atomic
def discard(*, changes: Iterable[StagedChange], actor: Doer) -> int:
    """Take these staged changes back; one event a server says which. Returns how many there still were.

    Own changes, or another's when the actor is an operator. Raises MoveRefused, and then discards none.
    """
    person = as_person(actor)
    rows: list[StagedChange] = []
    for batch in mirror.batches([change.pk for change in changes]):
        rows += StagedChange.objects.select_for_update(of=("self",)).filter(pk__in=batch).whole()
    others = [row for row in rows if row.by_id != person.pk]
    if others and not is_operator(person):
        raise MoveRefused(
            f"{others[0].by} staged this change of port {others[0].port}. "
            f"Ask {others[0].by} or an operator to discard it.",
            rule="not_yours",
        )
    by_server: dict[Server, list[StagedChange]] = defaultdict(list)
    for row in rows:
        assert row.port.hca is not None  # noqa: S101  only ports of servers are ever staged
        by_server[row.port.hca.server].append(row)
    for subnet in {server.subnet_id for server in by_server}:
        there = [server for server in by_server if server.subnet_id == subnet]
        refusals.refuse_rolling_out(there, [row.port.guid for server in there for row in by_server[server]])
    for batch in mirror.batches([row.pk for row in rows]):
        StagedChange.objects.filter(pk__in=batch).delete()
    for server, discarded in sorted(by_server.items(), key=lambda item: item[0].hostname):
        record(
            action=Action.MEMBER_DISCARD,
            actor=as_actor(actor),
            subject=_subject(server),
            before={"staged": refusals.way(discarded), "by": sorted({str(row.by) for row in discarded})},
            after={"ports": len({row.port_id for row in discarded}), "changes": len(discarded)},
            tenant_key=_tenant_key(row.partition for row in discarded),
        )
    return len(rows)


def _stage(
    *,
    server: Server,
    source: Partition | None,
    target: Partition | None,
    actor: Doer,
    membership: Membership,
    reason: str,
    adds: bool = False,
) -> tuple[StagedChange, ...]:
    person = as_person(actor)
    mirror.catch_up(server.subnet)
    standing = Standing.of(server)
    refusals.refuse_unfit_ports(standing)
    refusals.refuse_rolling_out([server], [port.guid for port in standing.ports])
    refusals.refuse_anothers_change(standing, person)
    if not adds:
        refusals.refuse_lost_source(standing, source)

    before = standing.partitions_wanted()
    after = {partition for partition in before if partition != source or adds}
    edits: dict[Place, MembershipKind | None] = {}
    if source is not None:
        edits |= {(port.pk, source.pk): None for port in standing.ports}
    if target is not None:
        refusals.refuse_between_tenants(standing, target, after | {target})
        refusals.refuse_full_in_shared(standing, target, after - {target})
        edits |= _joining(standing, target, after, MembershipKind(membership.value), adds=adds)
        if adds and all(standing.wanted(place) == kind for place, kind in edits.items()):
            raise MoveRefused(
                f"{server} is in {target.name} already, with this membership. There is nothing to add.",
                rule="same_partition",
            )

    partitions = {partition.pk: partition for partition in (source, target) if partition is not None}
    _write(standing=standing, edits=edits, partitions=partitions, person=person, reason=reason)
    staged = tuple(StagedChange.objects.of_server(server).whole().order_by("partition__name", "port__guid"))
    wanted = sorted(after | ({target} if target is not None else set()), key=lambda partition: partition.name)
    record(
        action=Action.MEMBER_STAGE,
        actor=as_actor(actor),
        subject=_subject(server),
        before={"partitions": [_label(partition) for partition in before]},
        after={
            "server": server.hostname,
            "partitions": [_label(partition) for partition in wanted],
            "ports": len(standing.ports),
            "staged_changes": len(staged),
        },
        reason=reason,
        tenant_key=_tenant_key([*partitions.values()]),
    )
    return staged


def _joining(
    standing: Standing, target: Partition, after: set[Partition], asked: MembershipKind, *, adds: bool
) -> dict[Place, MembershipKind | None]:
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


def _write(
    *,
    standing: Standing,
    edits: Mapping[Place, MembershipKind | None],
    partitions: Mapping[int, Partition],
    person: User,
    reason: str,
) -> None:
    """Make the rows say `edits`: one row for each difference from the current revision, none where there is none."""
    at = timezone.now()
    undone: list[int] = []
    rows: list[StagedChange] = []
    for place, kind in edits.items():
        current = standing.current(place)
        staged = standing.staged.get(place)
        if kind == current:
            if staged is not None:
                undone.append(staged.pk)
            continue
        port, partition = place
        rows.append(
            StagedChange(
                port_id=port,
                partition=partitions[partition],
                kind_from=current,
                kind_to=kind,
                by=person,
                at=at,
                reason=reason,
            )
        )
    StagedChange.objects.filter(pk__in=undone).delete()
    StagedChange.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["port", "partition"],
        update_fields=["kind_from", "kind_to", "by", "at", "reason"],
    )


def _subject(server: Server) -> Subject:
    return Subject(kind="server", key=server.public_id, label=server.hostname)


def _label(partition: Partition) -> str:
    return f"{partition.name} (0x{partition.pkey:04x})"


def _tenant_key(partitions: Iterable[Partition]) -> str:
    """The tenant whose partitions these are, when it is exactly one."""
    keys = {partition.tenant.public_id for partition in partitions if partition.tenant is not None}
    return keys.pop() if len(keys) == 1 else ""
