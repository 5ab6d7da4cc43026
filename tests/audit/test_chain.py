"""Tamper with the trail as the owner of the database could, and see it found."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from audit import triggers
from audit.canonical import GENESIS
from audit.chain import Break, verify
from audit.models import ChainHead, Event
from tests.audit.events import record_many

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(db):
    """Play the owner of the database: the triggers are off."""
    triggers.drop(connection)
    return lambda sql, *values: connection.cursor().execute(sql, values)


def test_an_untouched_chain_is_sound():
    assert verify().is_sound
    last = record_many(5)[-1]
    report = verify()
    assert (report.is_sound, report.events, report.head_number, report.head_hash) == (True, 5, 5, last.hash)


EDITS = {
    "at": "2020-01-01 00:00:00+00:00",
    "action": "deploy:rollout:proven",
    "actor_kind": "PERSON",
    "actor_key": "somebody",
    "actor_name": "Somebody",
    "subject_kind": "server",
    "subject_key": "other",
    "subject_label": "other",
    "tenant_key": "other",
    "before": '{"n": 3}',
    "after": '{"n": 4}',
    "reason": "number 4",
    "request_id": "other",
    "previous_hash": "0" * 64,
    "hash": "f" * 64,
}


def test_every_field_is_among_the_edits():
    assert {field.name for field in Event._meta.fields} == {*EDITS, "id", "number"}


@pytest.mark.parametrize("field", EDITS)
def test_an_edited_field_is_found_and_the_event_named(owner, field):
    record_many(5)
    owner(f"UPDATE audit_event SET {field} = %s WHERE number = 3", EDITS[field])  # noqa: S608

    report = verify()

    assert (report.broken_at, report.kind) == (3, Break.EDITED)
    assert "Event 3" in report.sentence
    assert "edited" in report.sentence


def test_the_first_of_several_is_named(owner):
    record_many(6)
    owner("UPDATE audit_event SET reason = 'x' WHERE number IN (5, 2, 4)")
    assert verify().broken_at == 2


def test_a_deleted_event_leaves_a_gap(owner):
    record_many(5)
    owner("DELETE FROM audit_event WHERE number = 3")
    report = verify()
    assert (report.broken_at, report.kind) == (3, Break.MISSING)


def test_a_deleted_first_event_leaves_a_gap(owner):
    record_many(3)
    owner("DELETE FROM audit_event WHERE number = 1")
    assert (verify().broken_at, verify().kind) == (1, Break.MISSING)


def test_a_changed_number_leaves_a_gap(owner):
    record_many(5)
    owner("UPDATE audit_event SET number = 9 WHERE number = 3")
    assert (verify().broken_at, verify().kind) == (3, Break.MISSING)


def test_numbers_closed_up_after_a_deletion_are_found(owner):
    record_many(4)
    owner("DELETE FROM audit_event WHERE number = 2")
    owner("UPDATE audit_event SET number = 2 WHERE number = 3")
    owner("UPDATE audit_event SET number = 3 WHERE number = 4")
    assert (verify().broken_at, verify().kind) == (2, Break.EDITED)


def test_an_event_rewritten_with_its_hash_breaks_the_link(owner):
    record_many(5)
    event = Event.objects.get(number=3)
    event.reason = "it was somebody else"
    owner("UPDATE audit_event SET reason = %s, hash = %s WHERE number = 3", event.reason, event.content_hash())
    report = verify()
    assert (report.broken_at, report.kind) == (4, Break.RELINKED)
    assert "event 3" in report.sentence


def test_a_last_event_rewritten_with_its_hash_is_not_what_the_head_remembers(owner):
    record_many(3)
    event = Event.objects.get(number=3)
    event.reason = "it was somebody else"
    owner("UPDATE audit_event SET reason = %s, hash = %s WHERE number = 3", event.reason, event.content_hash())
    assert (verify().broken_at, verify().kind) == (3, Break.HEAD)


def test_swapped_events_are_found(owner):
    record_many(4)
    owner("UPDATE audit_event SET number = 99 WHERE number = 2")
    owner("UPDATE audit_event SET number = 2 WHERE number = 3")
    owner("UPDATE audit_event SET number = 3 WHERE number = 99")
    assert (verify().broken_at, verify().kind) == (2, Break.EDITED)


def test_a_tail_that_was_cut_off_is_missed_by_the_head(owner):
    record_many(5)
    owner("DELETE FROM audit_event WHERE number > 3")
    report = verify()
    assert (report.broken_at, report.kind) == (4, Break.HEAD)
    assert "4 to 5 were cut off" in report.sentence


def test_a_trail_that_was_emptied_is_missed_by_the_head(owner):
    record_many(2)
    owner("DELETE FROM audit_event")
    assert (verify().broken_at, verify().kind) == (1, Break.HEAD)


def test_a_head_that_was_set_back_leaves_events_behind(owner):
    events = record_many(5)
    owner("UPDATE audit_chainhead SET number = 3, hash = %s", events[2].hash)
    assert (verify().broken_at, verify().kind) == (4, Break.HEAD)


@pytest.mark.parametrize("field", ["hash", "number"])
def test_a_changed_head_is_found(owner, field):
    record_many(3)
    owner(f"UPDATE audit_chainhead SET {field} = %s", {"hash": GENESIS, "number": 4}[field])  # noqa: S608
    assert verify().kind == Break.HEAD


def test_a_lost_head_is_found_and_stops_the_recording(owner):
    record_many(3)
    owner("DELETE FROM audit_chainhead")
    assert (verify().broken_at, verify().kind) == (1, Break.HEAD)


def test_the_command_says_that_all_is_well():
    record_many(3)
    out = StringIO()
    call_command("audit_verify", stdout=out)
    assert "All 3 events are as they were written." in out.getvalue()
    assert ChainHead.objects.get().hash in out.getvalue()


def test_the_command_fails_and_names_the_first_bad_event(owner):
    record_many(3)
    owner("UPDATE audit_event SET actor_name = 'Somebody' WHERE number = 2")
    with pytest.raises(CommandError, match=r"Event 2 .* was edited"):
        call_command("audit_verify")


def test_the_command_answers_in_json(owner):
    record_many(3)
    owner("DELETE FROM audit_event WHERE number = 2")
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("audit_verify", "--json", stdout=out)
    answer = json.loads(out.getvalue())
    assert (answer["sound"], answer["broken_at"], answer["kind"]) == (False, 2, "missing")
