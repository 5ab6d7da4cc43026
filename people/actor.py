"""People and tenants as the audit trail names them."""

from django.contrib.auth.models import AnonymousUser

from audit.values import Actor, ActorKind, Subject
from people.models import Tenant, User


def actor_of(user: User | AnonymousUser) -> Actor:
    """Name `user` as the one who acts, with the name frozen as it is now. Nobody anonymous acts: ValueError."""
    if not isinstance(user, User):
        raise ValueError("An anonymous person acts on nothing. Put operator_required or person_required on the view.")
    return Actor(kind=ActorKind.PERSON, key=user.public_id, name=str(user))


def person_subject(user: User) -> Subject:
    """Name `user` as the one acted on."""
    return Subject(kind="person", key=user.public_id, label=user.username)


def tenant_subject(tenant: Tenant) -> Subject:
    """Name `tenant` as what is acted on."""
    return Subject(kind="tenant", key=tenant.public_id, label=tenant.name)
