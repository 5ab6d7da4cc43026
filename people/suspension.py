"""Suspend a tenant and take it back; and what is left to do for people once its partitions are retired.

A suspension is about people: those of the tenant see and change nothing of it, their sessions end, its tokens are
refused and its webhooks hear nothing. Nothing on the fabric changes: its servers go on in their partitions. That is for
`partitions/offboarding.py`. Each writes its event in the same transaction.
"""

from django.db import transaction
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import Actor
from people.actor import tenant_subject
from people.errors import NoReason, NotOffboarded
from people.models import Tenant, TenantRole, Token, User


@transaction.atomic
def suspend(*, tenant: Tenant, actor: Actor, reason: str) -> None:
    """Shut the tenant's people out of it and end their sessions. Idempotent. Raises NoReason."""
    _because(reason)
    held = Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)
    if held.suspended_at is not None:
        return
    now = timezone.now()
    Tenant.objects.filter(pk=held.pk).update(suspended_at=now, suspended_because=reason)
    # Who works for the provider or for somebody else too signs in again, and sees the rest.
    ended = User.objects.filter(tenant_roles__tenant=held).distinct()
    count = User.objects.filter(pk__in=list(ended.values_list("pk", flat=True))).update(sessions_ended_at=now)
    record(
        action=Action.TENANT_SUSPEND,
        actor=actor,
        subject=tenant_subject(held),
        after={"people": count},
        reason=reason,
        tenant_key=held.public_id,
    )


@transaction.atomic
def resume(*, tenant: Tenant, actor: Actor, reason: str) -> None:
    """Let the tenant's people in again. Idempotent. Raises NoReason, NotOffboarded for one that is gone."""
    _because(reason)
    held = Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)
    if held.offboarded_at is not None:
        raise NotOffboarded(
            f"{held} was let go at {held.offboarded_at:%Y-%m-%d %H:%M} UTC. Create a new tenant instead."
        )
    if held.suspended_at is None:
        return
    Tenant.objects.filter(pk=held.pk).update(suspended_at=None, suspended_because="")
    record(
        action=Action.TENANT_RESUME, actor=actor, subject=tenant_subject(held), reason=reason, tenant_key=held.public_id
    )


@transaction.atomic
def let_go(*, tenant: Tenant, actor: Actor, reason: str) -> tuple[int, int]:
    """End all roles and tokens of a tenant whose partitions are retired; return how many of each.

    In the caller's transaction, as its last step. The row stays: history, files and the trail name it.
    """
    roles = list(TenantRole.objects.filter(tenant=tenant).select_related("user"))
    tokens = Token.objects.filter(tenant=tenant)
    ended = [(str(role.user), role.role) for role in roles]
    token_count = tokens.count()
    tokens.delete()
    TenantRole.objects.filter(tenant=tenant).delete()
    Tenant.objects.filter(pk=tenant.pk).update(offboarded_at=timezone.now())
    record(
        action=Action.TENANT_OFFBOARD,
        actor=actor,
        subject=tenant_subject(tenant),
        before={"roles": [list(one) for one in ended], "tokens": token_count},
        reason=reason,
        tenant_key=tenant.public_id,
    )
    return len(roles), token_count


def is_shut_out(person: User) -> bool:
    """Whether `person` has nothing here but tenants that are suspended. One query for tenants' people, else none."""
    if person.role != User.Role.NONE:
        return False
    suspended = list(person.tenant_roles.values_list("tenant__suspended_at", flat=True))
    return bool(suspended) and all(at is not None for at in suspended)


def stops(token: Token) -> bool:
    """Whether a token is refused: its tenant is suspended, or all its person has."""
    of_tenant = token.tenant is not None and token.tenant.suspended_at is not None
    return of_tenant or is_shut_out(token.user)


def _because(reason: str) -> None:
    if not reason.strip():
        raise NoReason("Say why: it stands in the trail.")
