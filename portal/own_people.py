"""A tenant's people, as its administrators change them: add, change the role, remove. They learn of nobody else's.

User names are one for the whole site, so “taken” would tell of somebody: a new one is made of the tenant's slug and a
name, as a partition's is (ADR 45), and given another ending where somebody has it. Somebody who has an account already
is the provider's to add.
"""

import secrets
from typing import Final

from django.db import transaction
from django.utils.text import slugify
from django.utils.translation import gettext

from people import accounts, operations
from people.actor import actor_of
from people.errors import PeopleError
from people.models import Tenant, TenantRole, User
from people.names import plain_name
from portal.door import Seat
from portal.errors import Refused

MOST_PEOPLE: Final = 100


@transaction.atomic
def add(*, seat: Seat, name: str, role: str) -> tuple[User, str]:
    """Make an account for somebody new; return it with its password, which is shown this once. Raises Refused."""
    tenant = _held(seat)
    wanted = _role(role)
    if TenantRole.objects.filter(tenant=tenant).count() >= MOST_PEOPLE:
        raise Refused(gettext("You have %(most)s people. Nobody was added. Remove one first.") % {"most": MOST_PEOPLE})
    try:
        called = plain_name(name)
    except PeopleError as error:
        raise Refused(str(error)) from error
    if not called or len(called) > 150:
        raise Refused(gettext("Give a name of at most 150 letters. Nobody was added."))
    password = operations.new_password()
    try:
        person = operations.create_person(
            username=_username(tenant, called), password=password, actor=actor_of(seat.person), name=called,
            is_given=True,
        )  # fmt: skip
    except PeopleError as error:  # somebody took the name just now: nobody is told which
        raise Refused(gettext("It could not be done just now. Nobody was added. Try again.")) from error
    operations.give_role(person=person, tenant=tenant, role=wanted, actor=actor_of(seat.person))
    return person, password


@transaction.atomic
def set_role(*, seat: Seat, person: User, role: str) -> None:
    """Make one of the tenant's people a viewer, member or administrator. Raises Refused, also for oneself."""
    tenant = _held(seat)
    wanted = _role(role)
    _another(seat, person)
    operations.give_role(person=person, tenant=tenant, role=wanted, actor=actor_of(seat.person))


@transaction.atomic
def remove(*, seat: Seat, person: User) -> None:
    """Take from one of the tenant's people what they are for it; their account stays. Raises Refused."""
    tenant = _held(seat)
    _another(seat, person)
    accounts.take_role(person=person, tenant=tenant, actor=actor_of(seat.person))


def _held(seat: Seat) -> Tenant:
    """The tenant, held, so that of two administrators who remove each other one stays. Raises Refused."""
    tenant = Tenant.objects.select_for_update(no_key=True).get(pk=seat.tenant.pk)
    if not TenantRole.objects.of_person(seat.person).filter(tenant=tenant, role=TenantRole.Role.ADMIN).exists():
        raise Refused(gettext("You are no administrator of %(tenant)s any more.") % {"tenant": tenant.name})
    return tenant


def _another(seat: Seat, person: User) -> None:
    if person.pk == seat.person.pk:
        raise Refused(gettext("This is you. Another administrator changes what you are; nothing was changed."))


def _role(role: str) -> TenantRole.Role:
    if role not in TenantRole.Role.values:
        raise Refused(gettext("Choose viewer, member or administrator. Nothing was changed."))
    return TenantRole.Role(role)


def _username(tenant: Tenant, name: str) -> str:
    wanted = f"{tenant.slug}.{slugify(name)[:60] or 'person'}"
    while User.objects.filter(username__iexact=wanted).exists():
        wanted = f"{tenant.slug}.{slugify(name)[:60] or 'person'}-{secrets.token_hex(2)}"
    return wanted
