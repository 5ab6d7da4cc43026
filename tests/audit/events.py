"""Short ways to record something in tests."""

from django.db import transaction

from audit.actions import Action
from audit.models import Event
from audit.record import record
from audit.values import SYSTEM, Actor, ActorKind, Subject

OLGA = Actor(kind=ActorKind.PERSON, key="olga-id", name="Olga")
SUBNET = Subject(kind="subnet", key="lab", label="lab")


def record_one(*, action: Action = Action.SUBNET_CREATE, actor: Actor = SYSTEM, **fields) -> Event:
    """Record one event in a transaction of its own."""
    with transaction.atomic():
        return record(action=action, actor=actor, subject=fields.pop("subject", SUBNET), **fields)


def record_many(count: int) -> list[Event]:
    """Record `count` events that differ in their reason."""
    return [record_one(reason=f"number {number}", after={"n": number}) for number in range(1, count + 1)]
