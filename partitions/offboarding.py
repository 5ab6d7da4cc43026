"""Let a tenant go: empty its partitions by a rollout of exactly those, retire them, end its roles and tokens.

One step after the other, each asked for by a person, and each safe to ask for again:

1. suspend it (`people.suspension`), so that nobody of it stages anything meanwhile;
2. stage that its ports leave its partitions, and the provider's that they share, and roll out this tenant's changes;
3. once that is proven: retire the partitions, whose P_Keys cool down, and end roles, tokens and webhooks.

What is on the servers' disks, and whether they are clean for the next tenant, is `partitions/cleaning.py`'s business.
"""

from dataclasses import dataclass
from enum import StrEnum

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from deploy.queries import current_revision, running_rollout
from inventory.models import Server, Subnet
from partitions import mirror, refusals, staged_rows
from partitions.doer import Doer, as_actor, as_person
from partitions.errors import MoveRefused, PartitionRefused
from partitions.models import Membership, Partition, StagedChange
from partitions.retirement import retire_partition
from people import suspension
from people.actor import tenant_subject
from people.errors import NoReason, NotOffboarded
from people.models import Tenant, User
from webhooks.models import Endpoint
from webhooks.operations import remove_endpoint


class Step(StrEnum):
    """What is to be done next."""

    SUSPEND = "suspend"
    STAGE = "stage"
    ROLL_OUT = "roll out"
    FINISH = "finish"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Offboarding:
    """How far it has come: the next step, and what is left on the fabric."""

    step: Step
    partitions: int  # in use
    ports: int  # in them, or in the provider's that they share, as the current revision says
    staged: int  # of them, that are staged to leave everything


def standing(tenant: Tenant) -> Offboarding:
    """How far the offboarding of `tenant` has come. Three queries."""
    partitions = Partition.objects.filter(tenant=tenant).in_use().count()
    members = _members(tenant)
    ports = members.values("port").distinct().count()
    leaves = StagedChange.objects.filter(port=OuterRef("port"), partition=OuterRef("partition"), kind_to=None)
    leaving = ports - members.exclude(Exists(leaves)).values("port").distinct().count()
    if tenant.offboarded_at is not None:
        step = Step.OVER
    elif tenant.suspended_at is None:
        step = Step.SUSPEND
    elif not ports:
        step = Step.FINISH
    else:
        step = Step.ROLL_OUT if leaving >= ports else Step.STAGE
    return Offboarding(step, partitions, ports, leaving)


def _members(tenant: Tenant) -> QuerySet[Membership]:
    """What gives `tenant` a way into the fabric: its own partitions, and the provider's, of ports that are or were its.

    A port that left the tenant's partition alone still has the key of the storage it shared.
    """
    shared = Q(partition__tenant=None, port__former_tenant=tenant)
    return Membership.objects.filter(Q(partition__tenant=tenant) | shared)


@transaction.atomic
def stage_everybody_out(*, tenant: Tenant, actor: Doer, reason: str) -> int:
    """Stage that every port of `tenant` leaves its partitions and the provider's; return how many ports.

    Changes that others staged for these ports stand in the way, unless they are of the tenant's own people: those go.
    Raises NoReason, NotOffboarded, MoveRefused; then nothing was changed.
    """
    held = _suspended(tenant, reason)
    person = as_person(actor)
    total = 0
    for subnet in Subnet.objects.filter(partitions__memberships__in=_members(held)).distinct().order_by("pk"):
        total += _stage(held, Subnet.objects.select_for_update(no_key=True).get(pk=subnet.pk), person, reason)
    if total:
        record(
            action=Action.TENANT_EMPTY,
            actor=as_actor(actor),
            subject=tenant_subject(held),
            after={"ports": total},
            reason=reason,
            tenant_key=held.public_id,
        )
    return total


@transaction.atomic
def finish(*, tenant: Tenant, actor: Doer, reason: str) -> tuple[int, int, int]:
    """Retire the empty partitions and end roles, tokens and webhooks; return how many partitions, roles and tokens.

    Raises NoReason, NotOffboarded, PartitionRefused while anything of it is on the fabric.
    """
    held = _suspended(tenant, reason)
    retired = 0
    for partition in Partition.objects.filter(tenant=held).in_use().order_by("pk"):
        mirror.catch_up(partition.subnet)
        if Membership.objects.filter(partition=partition).exists():
            raise PartitionRefused(
                f"{partition.name} still has members. Roll out what is staged for {held}, wait until it is proven, "
                "then finish."
            )
        retire_partition(partition=partition, actor=actor, reason=reason)
        retired += 1
    left = _members(held).select_related("partition", "port").order_by("pk").first()
    if left is not None:
        raise PartitionRefused(
            f"Port {left.port} still is in {left.partition.name}, which it got with {held}. Take everything from "
            f"{held} once more, roll that out, wait until it is proven, then finish."
        )
    for endpoint in Endpoint.objects.filter(tenant=held).order_by("pk"):
        remove_endpoint(endpoint=endpoint, actor=as_actor(actor))
    roles, tokens = suspension.let_go(tenant=held, actor=as_actor(actor), reason=reason)
    return retired, roles, tokens


def _suspended(tenant: Tenant, reason: str) -> Tenant:
    """The tenant, held until the transaction ends, if it may be let go now."""
    if not reason.strip():
        raise NoReason("Say why: it stands in the trail.")
    held = Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)
    if held.offboarded_at is not None:
        raise NotOffboarded(f"{held} was let go at {refusals.moment(held.offboarded_at)} already.")
    if held.suspended_at is None:
        raise NotOffboarded(f"Suspend {held} first, so that its people stage nothing while it is emptied.")
    return held


def _stage(tenant: Tenant, subnet: Subnet, person: User, reason: str) -> int:
    mirror.catch_up(subnet)
    rollout = running_rollout(subnet)
    if rollout is not None and rollout.revision != current_revision(subnet):
        raise MoveRefused(
            f"A rollout that {rollout.started_by_name} started at {refusals.moment(rollout.requested_at)} runs on "
            f"{subnet}. Wait until it has ended, then try again.",
            rule="rolling_out",
        )
    theirs = _members(tenant).filter(partition__subnet=subnet)
    ports = sorted(set(theirs.values_list("port_id", flat=True)))
    servers = Server.objects.filter(hcas__ports__in=ports).order_by("pk").values_list("pk", flat=True)
    list(Server.objects.select_for_update().filter(pk__in=list(servers)).order_by("pk"))
    before = staged_rows.held_of_ports(ports)
    _refuse_others(tenant, before, person)
    joining = StagedChange.objects.filter(partition__tenant=tenant, kind_from=None).exclude(port__in=ports)
    incoming = joining.whole().first()
    if incoming is not None:
        raise MoveRefused(
            f"{incoming.by} has staged port {incoming.port} into {incoming.partition.name}. Discard that change first.",
            rule="another_person",
        )
    rows: list[Membership] = []
    for batch in mirror.batches(ports):
        theirs_or_shared = Q(partition__tenant=tenant) | Q(partition__tenant=None)
        rows += Membership.objects.filter(theirs_or_shared, port__in=batch).select_related("partition")
    StagedChange.objects.filter(pk__in=[row.pk for row in before]).delete()
    at = timezone.now()
    StagedChange.objects.bulk_create(
        [
            StagedChange(
                port_id=row.port_id, partition=row.partition, kind_from=row.kind, kind_to=None, by=person, at=at,
                reason=reason,
            )
            for row in rows
        ],
        batch_size=mirror.BATCH // 10,
    )  # fmt: skip
    notes = staged_rows.Notes()
    notes.add(ports, before, staged_rows.of_ports(ports))
    staged_rows.remember(subnet=subnet, person=person, title=f"everything taken from {tenant}", notes=notes)
    return len(ports)


def _refuse_others(tenant: Tenant, staged: list[StagedChange], person: User) -> None:
    """Nobody's work is thrown away but that of the person who asks, and of people who are shut out."""
    theirs = set(tenant.roles.values_list("user_id", flat=True))
    others = [row.pk for row in staged if row.by_id != person.pk and row.by_id not in theirs]
    if others:
        row = StagedChange.objects.filter(pk__in=others).whole().first()
        if row is not None:
            raise MoveRefused(
                f"{row.by} has staged port {row.port} {refusals.way([row])} at {refusals.moment(row.at)}. Ask "
                f"{row.by}, or discard that change first.",
                rule="another_person",
            )
