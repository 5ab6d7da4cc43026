"""Tamper with the trail as the owner of the database could, and see it found; by the stand-alone verifier too."""

import hmac
import json
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from audit import chain, export, keyring, record, triggers
from audit import verifier as kinds
from audit.canonical import GENESIS
from audit.chain import verify
from audit.models import ChainHead, Event
from tests.audit.events import record_many

pytestmark = pytest.mark.django_db

VERIFIER = Path(kinds.__file__)


@pytest.fixture
def owner(db):
    """Play the owner of the database: the triggers are off."""
    triggers.drop(connection)
    return lambda sql, *values: connection.cursor().execute(sql, values)


@pytest.fixture
def judged(tmp_path):
    """What our verifier says of the trail now; the stand-alone one, in a bare Python, must say the same."""

    def judged():
        report = verify()
        exported = tmp_path / "trail.jsonl"
        exported.write_text("".join(export.whole()), encoding="utf-8")
        given = ["--keys", str(keyring.path())] if keyring.path().exists() else []
        alone = subprocess.run(
            [sys.executable, "-I", "-S", str(VERIFIER), str(exported), "--json", *given],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert alone.returncode == (0 if report.is_sound else 1), alone.stderr
        said = json.loads(alone.stdout)
        names = ("broken_at", "kind", "sentence", "events")
        assert {name: said[name] for name in names} == {name: getattr(report, name) for name in names}
        return report

    return judged


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
    "format": 1,
    "address": "192.0.2.9",
    "rollout_key": "other",
    "revision_key": "other",
    "key_version": 7,
}


def test_an_untouched_chain_is_sound(judged):
    assert judged().is_sound
    last = record_many(5)[-1]
    report = judged()
    assert (report.is_sound, report.events, report.last_hash) == (True, 5, last.hash)


def test_every_field_is_among_the_edits():
    assert {field.name for field in Event._meta.fields} == {*EDITS, "id", "number", "mac"}


@pytest.mark.parametrize("field", EDITS)
def test_an_edited_field_is_found_and_the_event_named(owner, judged, field):
    record_many(5)
    owner(f"UPDATE audit_event SET {field} = %s WHERE number = 3", EDITS[field])  # noqa: S608

    report = judged()

    assert (report.broken_at, report.kind) == (3, kinds.EDITED)
    assert "Event 3" in report.sentence
    assert "edited" in report.sentence


@pytest.mark.parametrize("format_", kinds.HASHED)
@pytest.mark.parametrize(
    "said",
    [None, {}, {"b": 1, "a": [True, None, 0.25, "“x”\\\n\u2028"]}, ["ü", {"z": 1, "y": {"x": "\x07"}}], "text", 7],
)
def test_the_quick_way_to_a_hash_says_what_the_plain_one_says(monkeypatch, format_, said):
    event = {name: f'{name} "\\\t\x1f é 🚀' for name in kinds.HASHED_2}
    event |= {"number": 7, "format": format_, "key_version": 1, "before": said, "after": said}
    event["hash"] = kinds.content_hash(event)
    assert kinds.is_as_hashed(event)
    for name in kinds.HASHED[format_]:
        if name != "format":
            assert not kinds.is_as_hashed({**event, name: "other" if name in ("before", "after") else event[name] * 2})
    monkeypatch.setattr(kinds, "content_hash", lambda event: "asked")
    assert kinds.is_as_hashed(event) is (format_ == kinds.NEWEST_FORMAT)  # without the plain way
    monkeypatch.setattr(kinds, "_chunks", None)
    assert kinds.is_as_hashed(event) is (format_ == kinds.NEWEST_FORMAT)


def test_the_quick_way_tells_plain_texts_from_such_as_look_like_two_fields():
    chance = random.Random(9)  # noqa: S311  the same each time
    pieces = ["srv-001", "", "ü", '"', "\\", '","address":"', "\n", "a, b", "a,b", "a: b", "\u2028", "\x7f"]
    for _ in range(400):
        plain = chance.random() < 0.5
        event = {name: "".join(chance.choices(pieces[:3] if plain else pieces, k=3)) for name in kinds.HASHED_2}
        event |= {"number": chance.randrange(99), "format": 2, "key_version": 1, "before": None}
        event["hash"] = kinds.content_hash(event)
        other = {**event, chance.choice(kinds.HASHED_2[:8]): "".join(chance.choices(pieces, k=3))}
        assert kinds.is_as_hashed(event)
        assert kinds.is_as_hashed(other) is (other == event)


@pytest.mark.parametrize("length", [32, 63, 64, 65, 200])
def test_a_code_is_the_hmac_of_the_hash(length):
    key, hash_ = bytes(range(length)), "a7" * 32
    assert kinds.code(key, hash_) == hmac.new(key, bytes.fromhex(hash_), "sha256").hexdigest()


def test_stored_json_is_read_as_json_reads_it():
    for text in ['{"b": [1, 2.5, null], "a": "\\u00fc"}', ' {"a": 1} ', "7", '"x"', "null"]:
        assert chain.decoded(text) == json.loads(text)
    for text in ["", '{"a": 1} x', '{"a": ', "[1, ", "x"]:
        with pytest.raises(json.JSONDecodeError):
            chain.decoded(text)


def test_a_value_that_is_no_text_is_no_break_of_the_program():
    event = dict.fromkeys(kinds.HASHED_2, 5) | {"format": 2, "hash": "0" * 64}
    assert not kinds.is_as_hashed(event)


def test_the_first_of_several_is_named(owner, judged):
    record_many(6)
    owner("UPDATE audit_event SET reason = 'x' WHERE number IN (5, 2, 4)")
    assert judged().broken_at == 2


def test_a_deleted_event_leaves_a_gap(owner, judged):
    record_many(5)
    owner("DELETE FROM audit_event WHERE number = 3")
    report = judged()
    assert (report.broken_at, report.kind) == (3, kinds.MISSING)


def test_a_deleted_first_event_leaves_a_gap(owner, judged):
    record_many(3)
    owner("DELETE FROM audit_event WHERE number = 1")
    assert (judged().broken_at, judged().kind) == (1, kinds.MISSING)


def test_a_changed_number_leaves_a_gap(owner, judged):
    record_many(5)
    owner("UPDATE audit_event SET number = 9 WHERE number = 3")
    assert (judged().broken_at, judged().kind) == (3, kinds.MISSING)


def test_numbers_closed_up_after_a_deletion_are_found(owner, judged):
    record_many(4)
    owner("DELETE FROM audit_event WHERE number = 2")
    owner("UPDATE audit_event SET number = 2 WHERE number = 3")
    owner("UPDATE audit_event SET number = 3 WHERE number = 4")
    assert (judged().broken_at, judged().kind) == (2, kinds.MISSING)


def rewrite(owner, number, *, key=None, **changes):
    """Change event `number` with its hash, and all after it so that the chain holds; with a key, their codes too."""
    previous = None
    for event in Event.objects.filter(number__gte=number).order_by("number"):
        for name, value in changes.items() if event.number == number else ():
            setattr(event, name, value)
        event.previous_hash = previous or event.previous_hash
        event.hash = previous = event.content_hash()
        mac = kinds.code(key, event.hash) if key else event.mac
        owner(
            "UPDATE audit_event SET at = %s, reason = %s, previous_hash = %s, hash = %s, mac = %s WHERE number = %s",
            event.at if connection.vendor == "postgresql" else str(event.at.replace(tzinfo=None)),
            event.reason, event.previous_hash, event.hash, mac, event.number,
        )  # fmt: skip
    owner("UPDATE audit_chainhead SET hash = %s", previous)


def test_a_chain_that_was_rewritten_whole_lacks_the_codes(owner, judged):
    record_many(5)
    rewrite(owner, 3, reason="it was somebody else")
    report = judged()
    assert (report.broken_at, report.kind) == (3, kinds.FORGED)
    assert "Event 3" in report.sentence


def test_an_event_rewritten_with_its_hash_alone_is_found_without_the_keys(owner, judged):
    record_many(5)
    event = Event.objects.get(number=3)
    event.reason = "it was somebody else"
    owner("UPDATE audit_event SET reason = %s, hash = %s WHERE number = 3", event.reason, event.content_hash())
    assert (judged().broken_at, judged().kind) == (3, kinds.FORGED)
    owner("UPDATE audit_event SET mac = %s WHERE number = 3", kinds.code(keyring.load()[1], event.content_hash()))
    report = judged()
    assert (report.broken_at, report.kind) == (4, kinds.RELINKED)
    assert "event 3" in report.sentence


def test_a_last_event_rewritten_with_its_hash_and_code_is_not_what_the_head_remembers(owner, judged):
    record_many(3)
    event = Event.objects.get(number=3)
    event.reason = "it was somebody else"
    code = kinds.code(keyring.load()[1], event.content_hash())
    owner(
        "UPDATE audit_event SET reason = %s, hash = %s, mac = %s WHERE number = 3",
        event.reason, event.content_hash(), code,
    )  # fmt: skip
    assert (judged().broken_at, judged().kind) == (3, kinds.HEAD)


def test_a_changed_code_is_a_forgery(owner, judged):
    record_many(3)
    owner("UPDATE audit_event SET mac = %s WHERE number = 2", "0" * 64)
    assert (judged().broken_at, judged().kind) == (2, kinds.FORGED)


def test_codes_of_another_key_are_a_mismatch_of_keys_and_no_forgery(judged):
    record_many(3)
    keyring.write({1: b"k" * 32})
    report = judged()
    assert (report.broken_at, report.kind) == (1, kinds.KEY)
    assert "no code fits key 1" in report.sentence


def test_a_key_that_is_not_here_is_a_mismatch_of_keys(judged):
    record_many(2)
    call_command("audit", "rotate-key", stdout=StringIO())
    record_many(1)
    keyring.write({2: keyring.load()[2]})
    report = judged()
    assert (report.broken_at, report.kind) == (1, kinds.KEY)
    assert "under key 1, which is not here (held: 2)" in report.sentence


def test_a_replaced_key_signs_nothing_any_more(owner, judged):
    record_many(1)
    old = keyring.load()
    call_command("audit", "rotate-key", stdout=StringIO())
    record_many(1)
    assert judged().is_sound
    event = Event.objects.get(number=3)
    event.key_version = 1
    hash_ = event.content_hash()
    owner(
        "UPDATE audit_event SET key_version = 1, hash = %s, mac = %s WHERE number = 3", hash_, kinds.code(old[1], hash_)
    )
    owner("UPDATE audit_chainhead SET hash = %s", hash_)
    assert (judged().broken_at, judged().kind) == (3, kinds.FORGED)


def test_an_event_without_a_code_after_one_with_it_is_found(owner, judged):
    record_many(3)
    event = Event.objects.get(number=3)
    event.format = 1
    hash_ = event.content_hash()
    owner("UPDATE audit_event SET format = 1, key_version = 0, mac = '', hash = %s WHERE number = 3", hash_)
    owner("UPDATE audit_chainhead SET hash = %s", hash_)
    assert (judged().broken_at, judged().kind) == (3, kinds.UNKEYED)


def test_a_back_dated_event_is_edited_and_with_hash_and_keys_a_clock_step(owner, judged):
    record_many(4)
    owner("UPDATE audit_event SET at = '2020-01-01 00:00:00+00:00' WHERE number = 3")
    assert (judged().broken_at, judged().kind) == (3, kinds.EDITED)
    rewrite(owner, 3, at=datetime(2020, 1, 1, tzinfo=UTC))
    assert (judged().broken_at, judged().kind) == (3, kinds.FORGED)
    rewrite(owner, 3, key=keyring.load()[1])
    report = judged()
    assert (report.broken_at, report.kind) == (3, kinds.CLOCK)
    assert "says it happened before event 2" in report.sentence


def test_a_clock_that_falls_back_is_told_by_an_event_and_then_believed(judged, monkeypatch):
    record_many(2)
    earlier = timezone.now() - timedelta(hours=1)
    monkeypatch.setattr(record.timezone, "now", lambda: earlier)
    record_many(2)
    report = judged()
    assert report.is_sound, report.sentence
    assert list(Event.objects.order_by("number").values_list("action", flat=True))[2] == "audit:clock:step"
    assert [note for note in report.notes if "Event 3 tells that the clock went back" in note]


def test_clocks_that_differ_by_little_move_no_time_backwards(judged, monkeypatch):
    (first,) = record_many(1)
    monkeypatch.setattr(record.timezone, "now", lambda: first.at - timedelta(seconds=1))
    (second,) = record_many(1)
    assert (second.number, second.at) == (2, first.at)
    assert judged().is_sound


def test_a_deleted_event_whose_place_others_took_is_missing_and_not_moved(owner, judged):
    record_many(6)
    owner("DELETE FROM audit_event WHERE number IN (2, 3)")
    for number in (4, 5, 6):
        owner("UPDATE audit_event SET number = %s WHERE number = %s", number - 2, number)
    report = judged()
    assert (report.broken_at, report.kind) == (2, kinds.MISSING)
    assert "what was event 4 was given its number" in report.sentence


def test_swapped_events_are_found(owner, judged):
    record_many(4)
    owner("UPDATE audit_event SET number = 99 WHERE number = 2")
    owner("UPDATE audit_event SET number = 2 WHERE number = 3")
    owner("UPDATE audit_event SET number = 3 WHERE number = 99")
    report = judged()
    assert (report.broken_at, report.kind) == (2, kinds.REORDERED)
    assert report.sentence == "Event 2 was moved to 3, and what was event 3 to its place."


def test_a_tail_that_was_cut_off_is_missed_by_the_head(owner, judged):
    record_many(5)
    owner("DELETE FROM audit_event WHERE number > 3")
    report = judged()
    assert (report.broken_at, report.kind) == (4, kinds.TRUNCATED)
    assert "4 to 5 were cut off" in report.sentence


def test_a_trail_that_was_emptied_is_missed_by_the_head(owner, judged):
    record_many(2)
    owner("DELETE FROM audit_event")
    assert (judged().broken_at, judged().kind) == (1, kinds.TRUNCATED)


def test_a_head_that_was_set_back_leaves_events_behind(owner):
    events = record_many(5)
    owner("UPDATE audit_chainhead SET number = 3, hash = %s", events[2].hash)
    assert (verify().broken_at, verify().kind) == (4, kinds.HEAD)


@pytest.mark.parametrize("field", ["hash", "number"])
def test_a_changed_head_is_found(owner, judged, field):
    record_many(3)
    owner(f"UPDATE audit_chainhead SET {field} = %s", {"hash": GENESIS, "number": 4}[field])  # noqa: S608
    assert judged().kind == {"hash": kinds.HEAD, "number": kinds.TRUNCATED}[field]


def test_a_lost_head_is_found_and_stops_the_recording(owner):
    record_many(3)
    owner("DELETE FROM audit_chainhead")
    assert (verify().broken_at, verify().kind) == (1, kinds.HEAD)


def test_the_command_says_that_all_is_well():
    record_many(3)
    out = StringIO()
    call_command("audit", "verify", stdout=out)
    assert "All 3 events are as they were written." in out.getvalue()
    assert ChainHead.objects.get().hash in out.getvalue()


def test_the_command_fails_and_names_the_first_bad_event(owner, judged):
    record_many(3)
    owner("UPDATE audit_event SET actor_name = 'Somebody' WHERE number = 2")
    with pytest.raises(CommandError, match=r"Event 2 .* was edited"):
        call_command("audit", "verify")


def test_the_command_answers_in_json(owner, judged):
    record_many(3)
    owner("DELETE FROM audit_event WHERE number = 2")
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("audit", "verify", "--json", stdout=out)
    answer = json.loads(out.getvalue())
    assert (answer["sound"], answer["broken_at"], answer["kind"]) == (False, 2, "missing")
