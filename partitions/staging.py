"""Stage, add and discard: what a person wants next, port by port, as rows. Nothing here reaches the fabric."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from django.db import transaction
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import Subject
from inventory.models import Server, Subnet
from inventory.subjects import server_subject
from partitions import mirror, refusals, staged_rows
from partitions.doer import Doer, as_actor, as_person
from partitions.errors import MoveRefused
from partitions.models import MembershipKind, Partition, StagedChange
from partitions.staged_rows import Notes, remember
from partitions.standing import Place, Standing
from partitions.subjects import partition_label, place_subject, tenant_key
from people.models import Tenant, User
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
    notes: Notes | None = None,
    for_tenant: Tenant | None = None,
) -> tuple[StagedChange, ...]:
    """Want all InfiniBand ports of `server` out of `source` and in `target`; None is Unassigned.

    From a tenant's partition into one of the provider's nothing is left: the server joins what tenants share, as a
    limited member. To another tenant it goes in two revisions, see `partitions/handover.py`. Staging back is undoing:
    a row that would say what is current already vanishes. Returns the server's staged changes as they stand
    afterwards. With `notes` it is a part of a larger action, which its caller remembers. `for_tenant` are whose people
    stage it for themselves. Raises MoveRefused.
    """
    refusals.refuse_target(server, target, source)
    shares = source is not None and source.tenant is not None and target is not None and target.tenant is None
    return _stage(
        server=server, source=source, target=target, actor=actor, membership=membership, reason=reason, adds=shares,
        notes=notes, for_tenant=for_tenant,
    )  # fmt: skip


@transaction.atomic
def stage_add(
    *,
    server: Server,
    target: Partition,
    actor: Doer,
    membership: Membership = Membership.FULL,
    reason: str = "",
    notes: Notes | None = None,
) -> tuple[StagedChange, ...]:
    """Want all InfiniBand ports of `server` in `target` too, wherever else they are.

    For a server that is in `target` already this stages another membership. Returns and raises as `stage_move`,
    also when the server is there already just so.
    """
    refusals.refuse_target(server, target, None)
    return _stage(
        server=server, source=None, target=target, actor=actor, membership=membership, reason=reason, adds=True,
        notes=notes,
    )  # fmt: skip


@transaction.atomic
def stage_membership(
    *, server: Server, partition: Partition, membership: Membership, actor: Doer, reason: str = ""
) -> tuple[StagedChange, ...]:
    """Want all ports of `server` to be full (or limited) members of `partition`, which it is in already.

    Returns and raises as `stage_move`, also when a tenant's server would be full in a partition of the provider's.
    """
    refusals.refuse_target(server, partition, None)
    return _stage(
        server=server, source=partition, target=partition, actor=actor, membership=membership, reason=reason, adds=True
    )


@transaction.atomic
def discard(*, changes: Iterable[StagedChange], actor: Doer) -> int:
    """Take these staged changes back; one event a server says which. Returns how many there still were.

    Own changes, or another's when the actor is an operator. Raises MoveRefused, and then discards none.
    """
    person = as_person(actor)
    rows: list[StagedChange] = []
    for batch in mirror.batches([change.pk for change in changes]):
        held = StagedChange.objects.select_for_update(of=("self",)).filter(pk__in=batch).order_by("pk")
        rows += held.whole().select_related("partition__subnet")
    others = [row for row in rows if row.by_id != person.pk]
    if others and not is_operator(person):
        raise MoveRefused(
            f"{others[0].by} staged this change of port {others[0].port}. "
            f"Ask {others[0].by} or an operator to discard it.",
            rule="not_yours",
        )
    by_place: dict[Subject, list[StagedChange]] = defaultdict(list)
    by_subnet: dict[Subnet, list[StagedChange]] = defaultdict(list)
    for row in rows:
        by_place[place_subject(row.port)].append(row)
        by_subnet[row.partition.subnet].append(row)
    for subnet, there in by_subnet.items():
        refusals.refuse_rolling_out(subnet, {row.port.guid: place_subject(row.port).label for row in there})
    ports = {row.port_id for row in rows}
    noted = Notes()
    noted.add(ports, staged_rows.of_ports(ports), ())
    for batch in mirror.batches([row.pk for row in rows]):
        StagedChange.objects.filter(pk__in=batch).delete()
    noted.add((), (), staged_rows.of_ports(ports))
    for subnet in by_subnet:
        staged_rows.forget(subnet=subnet, ports=ports, but_by=person)
        if len(by_subnet) == 1:
            remember(subnet=subnet, person=person, title=f"the discarding of {_counted(by_place)}", notes=noted)
    for subject, discarded in sorted(by_place.items(), key=lambda item: item[0].label):
        record(
            action=Action.MEMBER_DISCARD,
            actor=as_actor(actor),
            subject=subject,
            before={"staged": refusals.way(discarded), "by": sorted({str(row.by) for row in discarded})},
            after={"ports": len({row.port_id for row in discarded}), "changes": len(discarded)},
            tenant_key=tenant_key(row.partition for row in discarded),
        )
    return len(rows)


def _counted(servers: Collection[object]) -> str:
    return f"{len(servers)} server{'' if len(servers) == 1 else 's'}"


def _stage(
    *,
    server: Server,
    source: Partition | None,
    target: Partition | None,
    actor: Doer,
    membership: Membership,
    reason: str,
    adds: bool = False,
    notes: Notes | None = None,
    for_tenant: Tenant | None = None,
) -> tuple[StagedChange, ...]:
    person = as_person(actor)
    mirror.catch_up(server.subnet)
    hold([source], target)
    standing = Standing.of(server)
    refusals.refuse_unfit_ports(standing, joins=target is not None)
    refusals.refuse_rolling_out(server.subnet, {port.guid: server.hostname for port in standing.ports})
    refusals.refuse_anothers_change(standing, person)
    if source is not None or not adds:
        refusals.refuse_lost_source(standing, source)
    if source is not None and source == target:
        refusals.refuse_limited_only(standing, source, membership)

    before = standing.partitions_wanted()
    after = {partition for partition in before if partition != source or adds}
    edits: dict[Place, MembershipKind | None] = {}
    if source is not None and not adds:
        edits |= {(port.pk, source.pk): None for port in standing.ports}
    if target is not None:
        refusals.refuse_two_tenants(standing, target, after | {target})
        refusals.refuse_full_in_shared(standing, target, after - {target})
        edits |= _joining(standing, target, after, MembershipKind(membership.value), adds=adds)
        if adds and all(standing.wanted(place) == kind for place, kind in edits.items()):
            raise MoveRefused(
                f"{server} is in {target.name} already, with this membership. There is nothing to add.",
                rule="same_partition",
            )

    partitions = {partition.pk: partition for partition in (source, target) if partition is not None}
    write(standing=standing, edits=edits, partitions=partitions, person=person, reason=reason, for_tenant=for_tenant)
    staged = tuple(StagedChange.objects.of_server(server).whole().order_by("partition__name", "port__guid"))
    noted = Notes() if notes is None else notes
    noted.add([port.pk for port in standing.ports], standing.staged.values(), staged)
    if notes is None:
        where = "Unassigned" if target is None else target.name
        remember(subnet=server.subnet, person=person, title=f"{server} to {where}", notes=noted)
    wanted = sorted(after | ({target} if target is not None else set()), key=lambda partition: partition.name)
    record(
        action=Action.MEMBER_STAGE,
        actor=as_actor(actor),
        subject=server_subject(server),
        before={"partitions": [partition_label(partition) for partition in before]},
        after={
            "server": server.hostname,
            "partitions": [partition_label(partition) for partition in wanted],
            "ports": len(standing.ports),
            "staged_changes": len(staged),
        },
        reason=reason,
        tenant_key=tenant_key([*partitions.values()]),
    )
    return staged


def hold(sources: Iterable[Partition | None], target: Partition | None) -> None:
    """Hold these partitions' rows until the transaction ends, so that nobody retires the target meanwhile.

    Partitions come before servers, as in `retire_partition`.
    """
    ids = {partition.pk for partition in (*sources, target) if partition is not None}
    rows = Partition.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=ids).order_by("pk")
    for fresh in rows:
        if target is not None and fresh.pk == target.pk:
            refusals.refuse_retired(fresh)


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


def write(
    *,
    standing: Standing,
    edits: Mapping[Place, MembershipKind | None],
    partitions: Mapping[int, Partition],
    person: User,
    reason: str,
    for_tenant: Tenant | None = None,
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
                for_tenant=for_tenant,
            )
        )
    StagedChange.objects.filter(pk__in=undone).delete()
    StagedChange.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["port", "partition"],
        update_fields=["kind_from", "kind_to", "by", "at", "reason", "for_tenant"],
    )
