from datetime import timedelta

import pytest
from django.utils import timezone

from audit.actions import Action
from audit.models import Event
from audit.review import Asked, page
from audit.values import Actor, ActorKind, Subject
from tests.audit.events import OLGA, record_one

pytestmark = pytest.mark.django_db


@pytest.fixture
def trail(db):
    record_one(action=Action.SUBNET_CREATE)
    record_one(action=Action.ROLLOUT_START, actor=OLGA, subject=Subject(kind="rollout", key="r1", label="revision 2"))
    record_one(
        action=Action.MEMBER_STAGE,
        actor=Actor(kind=ActorKind.PERSON, key="bob-id", name="Bob"),
        subject=Subject(kind="server", key="s1", label="srv-001"),
        tenant_key="acme-id",
        reason="more training",
    )
    record_one(action=Action.ROLLOUT_PROVEN, subject=Subject(kind="rollout", key="r1", label="revision 2"))


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ({}, [4, 3, 2, 1]),
        ({"actor": "olga-id"}, [2]),
        ({"actor": "olg"}, [2]),
        ({"action": str(Action.ROLLOUT_START)}, [2]),
        ({"action": "deploy:"}, [4, 2]),
        ({"subject": "rollout:r1"}, [4, 2]),
        ({"subject": "rollout:"}, [4, 2]),
        ({"subject": "s1"}, [3]),
        ({"subject": "server:r1"}, []),
        ({"tenant": "acme-id"}, [3]),
        ({"text": "TRAINING"}, [3]),
        ({"text": "srv-0"}, [3]),
        ({"text": "revision"}, [4, 2]),
        ({"action": "deploy:", "actor": "olga-id"}, [2]),
        ({"text": "%"}, []),
    ],
)
def test_the_list_is_filtered(trail, filters, numbers):
    assert [event.number for event in page(Asked(**filters)).events] == numbers


def test_dates_count_from_the_first_moment_to_before_the_last(trail):
    second = Event.objects.get(number=2).at
    third = Event.objects.get(number=3).at
    assert [event.number for event in page(Asked(since=second, until=third)).events] == [2]
    assert not page(Asked(since=timezone.now() + timedelta(minutes=1))).events
