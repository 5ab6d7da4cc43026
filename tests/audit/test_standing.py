"""How the trail is said to stand: by the newest checks, while they run, and by nobody who writes the database alone."""

from datetime import timedelta

import pytest
from django.utils import timezone

from audit import keyring, outage, standing, watch
from audit.models import TrailCheck
from audit.standing import LATE, State
from audit.verifier import parse_ring
from tests.audit.events import record_many

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


@pytest.fixture
def checked():
    record_many(5)
    watch.every_minute()


def state(*, later=timedelta()):
    return standing.standing(now=timezone.now() + later)


def test_a_checked_trail_is_verified_up_to_an_event_at_a_time(checked):
    found = state()
    whole = TrailCheck.objects.get(kind="whole")
    assert (found.state, found.up_to, found.at, found.alarms) == (State.VERIFIED, 5, whole.checked_at, ())
    assert found.sentence.startswith("Events 1 to 5 were as they were written at ")
    assert found.sentence.endswith("and agree with the anchors up to event 5.")


def test_events_since_the_last_whole_check_are_told_by_the_newest(checked):
    record_many(3)
    watch.every_minute()
    found = state()
    assert (found.state, found.up_to) == (State.VERIFIED, 8)
    assert "so were the ones since, up to event 8" in found.sentence


def test_it_costs_one_query(checked, django_assert_num_queries):
    with django_assert_num_queries(1):
        state()


@pytest.mark.parametrize("kind", list(LATE))
def test_a_check_that_does_not_run_any_more_is_late(checked, kind):
    for other in LATE:
        standing.keep(other, now=timezone.now() + (timedelta() if other == kind else LATE[kind]), sentence="")
    assert state(later=LATE[kind] - MINUTE).state is State.VERIFIED
    found = state(later=LATE[kind] + MINUTE)
    assert found.state is State.LATE
    assert "see that the workers beat and housekeeping run" in found.alarms[0]


def test_before_the_first_check_a_trail_is_young_and_then_it_is_late():
    assert state().state is State.NEW
    record_many(1)
    assert state().state is State.NEW
    assert state(later=2 * LATE["newest"]).state is State.LATE


@pytest.mark.parametrize(
    ("column", "value"),
    [("checked_to", 9000), ("anchored_to", 9000), ("sentence", "All is well."), ("checked_at", timezone.now()),
     ("events", 9000), ("mac", "00" * 32)],
)  # fmt: skip
@pytest.mark.parametrize("kind", list(LATE))
def test_a_check_altered_in_the_database_is_a_break(checked, kind, column, value):
    TrailCheck.objects.filter(kind=kind).update(**{column: value})
    found = state()
    assert found.state is State.BROKEN
    assert "altered in the database" in found.sentence


def test_a_break_that_is_hidden_in_the_database_is_one_still(checked):
    standing.keep("whole", now=timezone.now(), trouble="edited", broken_at=2, sentence="Event 2 was edited.")
    assert state().state is State.BROKEN
    TrailCheck.objects.filter(kind="whole").update(trouble="", broken_at=None)
    assert state().state is State.BROKEN


def test_a_check_of_another_kind_does_not_pass_for_this_one(checked):
    whole = TrailCheck.objects.get(kind="whole")
    names = ("checked_at", "sentence", "events", "anchored_to", "checked_to", "mac")
    TrailCheck.objects.filter(kind="newest").update(**{name: getattr(whole, name) for name in names})
    assert state().state is State.BROKEN


def test_a_check_made_without_the_key_counts_for_nothing(checked):
    TrailCheck.objects.update(key_version=0, mac="")
    assert state().state is not State.VERIFIED
    assert state(later=2 * LATE["newest"]).state is State.LATE


def test_an_old_check_put_back_and_one_taken_away_are_late(checked):
    old = TrailCheck.objects.get(kind="whole")
    later = LATE["whole"] + MINUTE
    for kind in LATE:
        standing.keep(kind, now=timezone.now() + later, sentence="")
    assert state(later=later).state is State.VERIFIED
    TrailCheck.objects.filter(kind="whole").delete()
    assert state(later=later).state is State.LATE
    old.pk = None
    old.save()
    assert state(later=later).state is State.LATE


def test_without_the_key_nothing_is_called_verified(checked):
    keyring.path().rename(keyring.path().with_name("away"))
    found = state()
    assert found.state is State.UNCHECKED
    assert "cannot be read" in found.alarms[0]


def test_the_code_is_under_the_newest_key_and_the_old_ones_still_count(checked):
    ring = parse_ring(keyring.path().read_text())
    keyring.write({**ring, 2: b"k" * 32})
    assert state().state is State.VERIFIED
    standing.keep("whole", now=timezone.now(), sentence="", checked_to=5)
    assert TrailCheck.objects.get(kind="whole").key_version == 2
    assert state().state is State.VERIFIED
    keyring.write(ring)
    assert state().state is State.UNCHECKED


def test_a_trail_that_takes_nothing_says_so(checked):
    outage.note("The disk is full.")
    try:
        found = state()
        assert found.state is State.CLOSED
        assert found.alarms == ("No change can be recorded, so none is made. The disk is full.",)
    finally:
        outage.over()


def test_one_cause_is_told_once(checked):
    keyring.path().rename(keyring.path().with_name("away"))
    watch.every_minute()
    try:
        assert [alarm[:40] for alarm in state().alarms] == ["No change can be recorded, so none is ma"]
    finally:
        outage.over()


def test_a_check_without_a_key_file_makes_none():
    watch.every_hour()
    assert not keyring.path().exists()
    assert TrailCheck.objects.get(kind="whole").key_version == 0


def test_the_first_check_of_the_whole_does_not_wait_for_its_hour():
    record_many(2)
    watch.every_minute()
    assert TrailCheck.objects.get(kind="whole").checked_to == 2
    record_many(1)
    watch.every_minute()
    assert TrailCheck.objects.get(kind="whole").checked_to == 2
