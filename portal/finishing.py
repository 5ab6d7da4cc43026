"""A request is done when the fabric has proven what it asked for, and over when its tenant is let go: who notices.

The first hears that the board was brought up to a revision, at least once and maybe late, and looks at what is current
now.
"""

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from audit.actions import Action
from audit.models import Event
from audit.record import Draft, record_all
from audit.values import SYSTEM
from inventory.models import Server
from inventory.subjects import server_subject
from partitions.models import Membership
from portal.asking import hold, subject_of
from portal.models import TenantRequest

FOLLOWED = frozenset({Action.MEMBER_SETTLE})
LET_GO = frozenset({Action.TENANT_OFFBOARD})
NOBODY_ASKS = "The tenant was let go."

Kind, State = TenantRequest.Kind, TenantRequest.State


def follow(event: Event) -> None:
    """Look at every approved request; the follower's function."""
    for request in TenantRequest.objects.filter(state=State.APPROVED).order_by("pk"):
        finish_if_done(request)


@transaction.atomic
def finish_if_done(request: TenantRequest) -> bool:
    """End an approved request whose work the fabric has proven; say whether it did.

    A returned server goes back to the pool with that: no partition holds it, and a label that names the tenant goes.
    """
    if not is_done(request):
        return False
    held = hold(request)
    if held.state != State.APPROVED or not is_done(held):
        return False
    TenantRequest.objects.filter(pk=held.pk).update(state=State.DONE, ended_at=timezone.now())
    request.state = State.DONE
    drafts = [*_unlabelled(held)] if held.kind == Kind.RETURN_SERVERS else []
    drafts.append(
        Draft(
            action=Action.REQUEST_DONE, actor=SYSTEM, subject=subject_of(held), tenant_key=held.tenant.public_id,
            after={"servers": held.servers.count()},
        )
    )  # fmt: skip
    record_all(drafts)
    return True


def close_of_gone(event: Event) -> None:
    """End what a tenant that was let go still asks for; the follower's function. Nothing is staged or unstaged."""
    requests = TenantRequest.objects.not_over().filter(tenant__public_id=event.subject_key)
    for request in requests.exclude(tenant__offboarded_at=None).order_by("pk"):
        if not finish_if_done(request):
            _close(request)


@transaction.atomic
def _close(request: TenantRequest) -> None:
    held = hold(request)
    if held.state not in (State.OPEN, State.APPROVED):
        return
    now = timezone.now()
    ended = {"decided_by": None, "decided_at": now, "ended_at": now}
    TenantRequest.objects.filter(pk=held.pk).update(state=State.DECLINED, answer=NOBODY_ASKS, **ended)
    draft = Draft(
        action=Action.REQUEST_DECLINE, actor=SYSTEM, subject=subject_of(held), before={"state": held.state},
        reason=NOBODY_ASKS, tenant_key=held.tenant.public_id,
    )  # fmt: skip
    record_all([draft])


def is_done(request: TenantRequest) -> bool:
    """Whether the current revision, which is proven, holds what an approved request asked for. One or two queries."""
    if request.state != State.APPROVED:
        return False
    servers = request.servers.values("server")
    if request.kind == Kind.RETURN_SERVERS:
        # Its own, and what it shared: a port that left has its former tenant until somebody marks it clean.
        shared = Q(partition__tenant=None, port__former_tenant=request.tenant)
        its = Membership.objects.filter(Q(partition__tenant=request.tenant) | shared)
        return not its.filter(port__hca__server__in=servers).exists()
    member = Membership.objects.filter(port__hca__server=OuterRef("pk"))
    asked = Server.objects.filter(pk__in=servers)
    if request.kind == Kind.MORE_SERVERS:
        return not asked.exclude(Exists(member.filter(partition__tenant=request.tenant))).exists()
    # A server that has left the partition meanwhile shares nothing, and keeps nobody waiting.
    still = asked.filter(Exists(member.filter(partition=request.partition)))
    return not still.exclude(Exists(member.filter(partition=request.storage))).exists()


def _unlabelled(held: TenantRequest) -> list[Draft]:
    """Take the tenant's label from its former servers, by which it would go on seeing them; the events of that."""
    labelled = Server.objects.filter(pk__in=held.servers.values("server"), tenant=held.tenant)
    servers = list(labelled.select_for_update(of=("self",)).order_by("pk"))
    Server.objects.filter(pk__in=[server.pk for server in servers]).update(tenant=None)
    return [
        Draft(
            action=Action.SERVER_LABEL, actor=SYSTEM, subject=server_subject(server),
            before={"tenant": held.tenant.slug}, after={"tenant": ""}, reason=f"request {held.public_id}",
        )
        for server in servers
    ]  # fmt: skip
