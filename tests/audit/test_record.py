from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import transaction

from audit.actions import Action
from audit.canonical import GENESIS, canonical, plain
from audit.errors import AppendOnly, NotRecordable, OutsideTransaction
from audit.models import ChainHead, Event
from audit.record import record
from audit.request_id import request_id
from audit.values import SYSTEM, Actor, ActorKind, Subject
from subnet.guid import GUID
from subnet.pkey import Membership, PKey
from tests.audit.events import OLGA, SUBNET, record_many, record_one

pytestmark = pytest.mark.django_db


def test_the_first_event_begins_the_chain_and_each_names_the_one_before():
    first, second, third = record_many(3)

    assert [first.number, second.number, third.number] == [1, 2, 3]
    assert first.previous_hash == GENESIS
    assert (second.previous_hash, third.previous_hash) == (first.hash, second.hash)
    head = ChainHead.objects.get()
    assert (head.number, head.hash) == (3, third.hash)


def test_an_event_reads_back_as_it_was_recorded():
    with request_id("4f1c"):
        record_one(
            action=Action.SUBNET_MODE, actor=OLGA, before={"mode": "OBSERVE"}, after={"mode": "WRITE"},
            reason="the lab is ready", tenant_key="t1",
        )  # fmt: skip

    event = Event.objects.get()
    assert (event.action, event.actor_kind, event.actor_key, event.actor_name) == (
        "inventory:subnet:mode", "PERSON", "olga-id", "Olga",
    )  # fmt: skip
    assert (event.subject_kind, event.subject_key, event.subject_label) == ("subnet", "lab", "lab")
    assert (event.before, event.after) == ({"mode": "OBSERVE"}, {"mode": "WRITE"})
    assert (event.reason, event.tenant_key, event.request_id) == ("the lab is ready", "t1", "4f1c")
    assert event.content_hash() == event.hash


@pytest.mark.django_db(transaction=True)
def test_outside_a_transaction_nothing_is_recorded():
    with pytest.raises(OutsideTransaction):
        record(action=Action.SUBNET_CREATE, actor=SYSTEM, subject=SUBNET)
    assert not Event.objects.exists()


def test_the_transaction_around_a_test_does_not_hide_a_missing_one():
    with pytest.raises(OutsideTransaction):
        record(action=Action.SUBNET_CREATE, actor=SYSTEM, subject=SUBNET)


@pytest.mark.django_db(transaction=True)
def test_an_event_goes_with_the_change_that_is_rolled_back():
    kept = record_one()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        record(action=Action.SUBNET_CREATE, actor=SYSTEM, subject=SUBNET).number / 0

    assert Event.objects.get() == kept
    assert record_one().number == 2


@pytest.mark.django_db(transaction=True)
def test_followers_are_nudged_after_the_commit_only(nudges):
    with transaction.atomic():
        record(action=Action.SUBNET_CREATE, actor=SYSTEM, subject=SUBNET)
        assert nudges == []
    assert nudges == ["audit.tasks.follow"]


VALUES = [
    ({"guid": GUID("0x0002c903000a0001")}, {"guid": "0x0002c903000a0001"}),
    ({"pkey": PKey(0x2C41)}, {"pkey": "0x2c41"}),
    ({"kind": Membership.FULL}, {"kind": "full"}),
    ({Membership.FULL: 1}, {"full": 1}),
    ({"ports": {"b", "a"}}, {"ports": ["a", "b"]}),
    ({"seconds": 1e16, "share": 0.25, "nothing": -0.0}, {"seconds": 10**16, "share": 0.25, "nothing": 0}),
    ({"number": 2**63 + 1}, {"number": 2**63 + 1}),
    ({"name": "a\x00b\ud800c"}, {"name": "a\ufffdb\ufffdc"}),
    (
        {"at": datetime(2026, 12, 1, 15, 0, tzinfo=timezone(timedelta(hours=1)))},
        {"at": "2026-12-01T14:00:00.000000Z"},
    ),
    (Subject(kind="port", key="k", label="l"), {"kind": "port", "key": "k", "label": "l"}),
    ((1, None, True), [1, None, True]),
    ({}, {}),
    ("текст ✓", "текст ✓"),
]


@pytest.mark.parametrize(("value", "stored"), VALUES)
def test_values_come_back_from_the_database_as_they_were_hashed(value, stored):
    number = record_one(before=value, after=value).number
    event = Event.objects.get(number=number)
    assert canonical(event.before) == canonical(event.after) == canonical(stored)  # 1 == 1.0, but not in bytes
    assert event.content_hash() == event.hash


@pytest.mark.parametrize("value", [object(), b"bytes", float("nan"), {1: "x"}, {"deep": [float("inf")]}, Event()])
def test_what_json_cannot_hold_is_refused_with_its_place(value):
    with pytest.raises(NotRecordable, match="after"):
        record_one(after=value)
    assert not Event.objects.exists()


def test_a_moment_without_a_time_zone_is_refused():
    with pytest.raises(NotRecordable):
        plain(datetime(2026, 12, 1))  # noqa: DTZ001  that is the point
    assert plain(datetime(2026, 12, 1, tzinfo=UTC)) == "2026-12-01T00:00:00.000000Z"


def test_long_names_are_cut_and_long_keys_refused():
    event = record_one(
        actor=Actor(kind=ActorKind.SERVER, key="s1", name="n" * 500),
        subject=Subject(kind="s", key="k", label="l" * 500),
    )
    assert (len(event.actor_name), event.actor_name[-1]) == (150, "…")
    assert (len(event.subject_label), event.subject_label[-1]) == (200, "…")
    with pytest.raises(NotRecordable, match="subject_key"):
        record_one(subject=Subject(kind="s", key="k" * 81, label="l"))


def test_canonical_bytes_do_not_depend_on_order():
    assert canonical({"b": 1, "a": [{"y": 2, "x": 1}]}) == canonical({"a": [{"x": 1, "y": 2}], "b": 1})
    assert canonical({"ü": 1}) == '{"ü":1}'.encode()


@pytest.mark.parametrize(
    "change",
    [
        lambda event: event.save(),
        lambda event: event.delete(),
        lambda event: Event(number=9).save(),
        lambda event: Event.objects.create(number=9),
        lambda event: Event.objects.bulk_create([Event(number=9)]),
        lambda event: Event.objects.bulk_update([event], ["reason"]),
        lambda event: Event.objects.update(reason="other"),
        lambda event: Event.objects.filter(pk=event.pk).delete(),
        lambda event: Event.objects.get_or_create(number=9),
    ],
)
def test_the_model_refuses_every_other_way(change):
    event = record_one()
    with pytest.raises(AppendOnly):
        change(event)
    assert Event.objects.get().reason == ""


def test_every_action_has_its_own_name_in_the_form_of_all():
    for action in Action:
        room, subject, verb = action.value.split(":")
        assert room in {"audit", "people", "inventory", "webhooks", "partitions", "deploy", "probes", "portal"}
        assert action.words
        assert subject
        assert verb
        assert len(action.value) <= 60
    assert Action.of_rollout("READING_BACK") is Action.ROLLOUT_READING_BACK
    assert Action.ROLLOUT_PROVEN.room == "deploy"
