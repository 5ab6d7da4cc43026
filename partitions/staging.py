"""Stage, add and discard: what a person wants next, port by port, as rows. Nothing here reaches the fabric."""

from collections import defaultdict
from collections.abc import Collection, Iterable

from django.db import transaction

from audit.actions import Action
from audit.record import Draft, record_all
from audit.values import Subject
from inventory.models import Server, Subnet
from partitions import mirror, refusals, staged_rows, wishes
from partitions.doer import Doer, as_actor, as_person
from partitions.errors import MoveRefused
from partitions.models import Partition, StagedChange
from partitions.staged_rows import Notes, remember
from partitions.subjects import place_subject, tenant_key
from partitions.wishes import Wish
from people.models import Tenant
from people.permissions import is_operator
from subnet.pkey import Membership


def stage_move(
    *,
    server: Server,
    source: Partition | None,
    target: Partition | None,
    actor: Doer,
    membership: Membership = Membership.FULL,
    reason: str = "",
    for_tenant: Tenant | None = None,
) -> tuple[StagedChange, ...]:
    """Want all InfiniBand ports of `server` out of `source` and in `target`; None is Unassigned.

    From a tenant's partition into one of the provider's nothing is left: the server joins what tenants share, as a
    limited member. To another tenant it goes in two revisions, see `partitions/handover.py`. Staging back is undoing:
    a row that would say what is current already vanishes. Returns the server's staged changes as they stand
    afterwards. `for_tenant` are whose people stage it for themselves. Raises MoveRefused.
    """
    return _stage(move(server, source, target, membership), actor, reason, for_tenant)


def move(
    server: Server, source: Partition | None, target: Partition | None, membership: Membership = Membership.FULL
) -> Wish:
    """The wish of a move; see `stage_move`."""
    shares = source is not None and source.tenant is not None and target is not None and target.tenant is None
    return Wish(server, source, target, membership, adds=shares)


def stage_add(
    *, server: Server, target: Partition, actor: Doer, membership: Membership = Membership.FULL, reason: str = ""
) -> tuple[StagedChange, ...]:
    """Want all InfiniBand ports of `server` in `target` too, wherever else they are.

    For a server that is in `target` already this stages another membership. Returns and raises as `stage_move`,
    also when the server is there already just so.
    """
    return _stage(Wish(server, None, target, membership, adds=True), actor, reason)


def stage_membership(
    *, server: Server, partition: Partition, membership: Membership, actor: Doer, reason: str = ""
) -> tuple[StagedChange, ...]:
    """Want all ports of `server` to be full (or limited) members of `partition`, which it is in already.

    Returns and raises as `stage_move`, also when a tenant's server would be full in a partition of the provider's.
    """
    return _stage(Wish(server, partition, partition, membership, adds=True), actor, reason)


@transaction.atomic
def _stage(wish: Wish, actor: Doer, reason: str, for_tenant: Tenant | None = None) -> tuple[StagedChange, ...]:
    (refusal,) = wishes.stage(wishes=[wish], actor=actor, reason=reason, for_tenant=for_tenant)
    if refusal is not None:
        raise refusal
    return tuple(StagedChange.objects.of_server(wish.server).whole().order_by("partition__name", "port__guid"))


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
    drafts = [
        Draft(
            action=Action.MEMBER_DISCARD,
            actor=as_actor(actor),
            subject=subject,
            before={"staged": refusals.way(discarded), "by": sorted({str(row.by) for row in discarded})},
            after={"ports": len({row.port_id for row in discarded}), "changes": len(discarded)},
            tenant_key=tenant_key(row.partition for row in discarded),
        )
        for subject, discarded in sorted(by_place.items(), key=lambda item: item[0].label)
    ]
    record_all(drafts)
    return len(rows)


def _counted(servers: Collection[object]) -> str:
    return f"{len(servers)} server{'' if len(servers) == 1 else 's'}"
