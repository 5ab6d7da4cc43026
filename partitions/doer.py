"""Who does it: a person's row for StagedChange, a frozen actor for the audit trail, from either of the two."""

from audit.values import Actor, ActorKind
from people.actor import actor_of
from people.models import User

type Doer = User | Actor


def as_actor(doer: Doer) -> Actor:
    """The actor that an event names."""
    return actor_of(doer) if isinstance(doer, User) else doer


def as_person(doer: Doer) -> User:
    """The person who stages; raise TypeError for a server or the system, which have no hands."""
    if isinstance(doer, User):
        return doer
    if doer.kind is not ActorKind.PERSON:
        raise TypeError(f"{doer.name} is not a person; only people stage changes")
    person: User = User.objects.get(public_id=doer.key)
    return person
