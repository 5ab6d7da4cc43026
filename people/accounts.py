"""What an administrator does to somebody's account. Each writes its event in the same transaction.

Nobody does these to themselves, so that a mistake locks nobody out, and the only administrator stays one.
"""

from django.db import transaction

from audit.actions import Action
from audit.record import record
from audit.values import Actor
from people import second_factor, sessions
from people.actor import person_subject
from people.errors import LastAdmin, NoPassword, NoReason, NoSuchRole, NotToOneself
from people.models import Tenant, TenantRole, User
from people.operations import hold_administrators, new_password, others_administer, record_tenant_role, set_password


@transaction.atomic
def lock(*, person: User, actor: Actor, reason: str) -> None:
    """Close the account: nobody signs in with it, its sessions and tokens are worth nothing at once. Idempotent.

    Raises LastAdmin, NotToOneself, NoReason.
    """
    _by_another(person, actor)
    _because(reason)
    hold_administrators()
    held = User.objects.select_for_update().get(pk=person.pk)
    if not held.is_active:
        return
    if held.role == User.Role.ADMIN and not others_administer(held):
        raise LastAdmin(f"{person} is the only administrator. Make another person one first.")
    _set_active(person, is_active=False)
    record(action=Action.PERSON_LOCK, actor=actor, subject=person_subject(person), reason=reason)


@transaction.atomic
def unlock(*, person: User, actor: Actor, reason: str) -> None:
    """Open the account again; its sessions of before stay over. Idempotent. Raises NoReason."""
    _because(reason)
    if User.objects.select_for_update().get(pk=person.pk).is_active:
        return
    _set_active(person, is_active=True)
    sessions.end_all(person=person, actor=actor, reason=reason)
    record(action=Action.PERSON_UNLOCK, actor=actor, subject=person_subject(person), reason=reason)


def give_new_password(*, person: User, actor: Actor, reason: str) -> str:
    """Give `person` a random password and end their sessions; return it, to be shown this once.

    They choose another at the next login; until then their tokens rest. Raises NotToOneself, NoReason, NoPassword.
    """
    _by_another(person, actor)
    _because(reason)
    if not person.has_usable_password():
        raise NoPassword(f"{person} signs in with the OpenID provider and has no password here.")
    password = new_password()
    with transaction.atomic():
        set_password(person=person, password=password, actor=actor, is_given=True)
        sessions.end_all(person=person, actor=actor, reason=reason)
    return password


def reset_second_factor(*, person: User, actor: Actor, reason: str) -> None:
    """Take the second factor of `person` away and end their sessions. Raises NotToOneself, NoReason, NoSecondFactor."""
    _by_another(person, actor)
    _because(reason)
    second_factor.reset(person=person, actor=actor, reason=reason)


@transaction.atomic
def take_role(*, person: User, tenant: Tenant, actor: Actor) -> None:
    """Take from `person` what they are for `tenant`. Raises NoSuchRole."""
    held = TenantRole.objects.select_for_update().filter(user=person, tenant=tenant).first()
    if held is None:
        raise NoSuchRole(f"{person} has no role for {tenant}.")
    before = held.role
    held.delete()
    record_tenant_role(Action.ROLE_TAKE, person=person, tenant=tenant, before=before, after=None, actor=actor)


def _set_active(person: User, *, is_active: bool) -> None:
    person.is_active = is_active
    person.save(update_fields=["is_active"])


def _by_another(person: User, actor: Actor) -> None:
    if actor.key == person.public_id:
        raise NotToOneself("This is your own account. Another administrator does that.")


def _because(reason: str) -> None:
    if not reason.strip():
        raise NoReason("Say why: it stands in the trail.")
