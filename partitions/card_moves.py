"""A card that has moved to another server: what becomes of its memberships when an operator decides so.

`inventory.operations.move_card` makes the card the other server's. By then that machine holds the card's P_Keys on the
fabric already: the rows only learn it. They stay members where the new server's own partitions allow it. Where that
server is another tenant's, or would be, it is staged at once that they leave.
"""

from collections import defaultdict

from django.db import transaction
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from inventory import operations as inventory
from inventory.models import Port, PortConflict
from inventory.subjects import server_subject
from partitions import mirror, quotas, refusals
from partitions.doer import Doer, as_actor, as_person
from partitions.errors import MoveRefused
from partitions.models import Membership, Partition, StagedChange
from partitions.standing import Standing, in_words
from partitions.subjects import tenant_key
from people.permissions import is_operator


@transaction.atomic
def move_card(*, conflict: PortConflict, actor: Doer, reason: str = "") -> tuple[Port, ...]:
    """Decide that the card of `conflict` is in the claimant now; give its ports.

    What was staged on them meant the former server, and is discarded. Raises MoveRefused while a rollout changes one of
    them and when a tenant would have more servers by it than it may, and what `inventory.operations.move_card` raises.
    """
    person = as_person(actor)
    if not is_operator(person):
        raise MoveRefused("Only an operator may decide a conflict.", rule="not_yours")
    claimant, card = conflict.claimed_by, conflict.port.hca
    its = Partition.objects.filter(memberships__port__hca=card) if card is not None else Partition.objects.none()
    rooms = quotas.Rooms.held_for(its.select_related("tenant").distinct())  # tenants before subnets
    mirror.catch_up(claimant.subnet)
    had = {pk: quotas.servers_wanted(tenant) for pk, tenant in rooms.tenants.items()}
    named = {str(port.guid): claimant.hostname for port in Port.objects.filter(hca=card)} if card is not None else {}
    refusals.refuse_rolling_out(claimant.subnet, named)
    before = Standing.of(claimant)
    ports = inventory.move_card(conflict=conflict, actor=as_actor(actor), reason=reason)
    ids = [port.pk for port in ports]
    discarded = StagedChange.objects.filter(port__in=ids).delete()[0]
    memberships = list(Membership.objects.filter(port__in=ids).select_related("partition__tenant", "port"))
    leaving = [row for row in memberships if not _may_stay(row.partition, before)]
    now = timezone.now()
    StagedChange.objects.bulk_create(
        StagedChange(
            port=row.port, partition=row.partition, kind_from=row.kind, kind_to=None, by=person, at=now,
            reason=reason or f"the card moved to {claimant}",
        )
        for row in leaving
    )  # fmt: skip
    for pk, tenant in rooms.tenants.items():
        quotas.refuse_newcomer(tenant, claimant, had=had[pk])
    if discarded or leaving:
        stays: dict[bool, set[Partition]] = defaultdict(set)
        for row in memberships:
            stays[row not in leaving].add(row.partition)
        record(
            action=Action.MEMBER_STAGE,
            actor=as_actor(actor),
            subject=server_subject(claimant),
            before={"discarded": discarded, "partitions": in_words(stays[True] | stays[False])},
            after={"ports": len(ports), "leave": in_words(stays[False]), "stay": in_words(stays[True])},
            reason=reason,
            tenant_key=tenant_key(row.partition for row in memberships),
        )
    return ports


def _may_stay(partition: Partition, there: Standing) -> bool:
    """Whether the card may stay in `partition` beside what its new server is, was or will be in."""
    bound = there.tenants_now() | {p.tenant for p in there.partitions_wanted() if p.tenant is not None}
    if partition.tenant is None:
        return not bound or partition in there.partitions_wanted()
    return bound <= {partition.tenant}
