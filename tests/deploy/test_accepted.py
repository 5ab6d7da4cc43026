"""What a person may answer for, so that a rollout does not stay unproven for ever: LIDs, states and absent ports."""

import pytest

from audit.models import Event
from deploy import operations, queries
from deploy.errors import ReasonNeeded, TooLate
from deploy.models import Rollout
from tests.deploy.conftest import INFERENCE, OLGA, Scene

State = Rollout.State


def unproven_by_lid(scene: Scene) -> Rollout:
    rollout = scene.begin()
    scene.site.ports[scene.site.guids(4)[0]].lid = 99
    scene.run(rollout)
    assert rollout.state == State.UNPROVEN
    assert "had LID" in rollout.cause
    return rollout


def test_a_lid_that_changed_for_good_is_accepted_with_a_reason_and_proven(scene: Scene):
    rollout = unproven_by_lid(scene)
    guid = scene.site.guids(4)[0]
    assert scene.later(rollout).state == State.UNPROVEN
    assert rollout.read_back["moved"] == {guid: [99, "ACTIVE"]}
    operations.accept(rollout=rollout, actor=OLGA, reason="The HCA was exchanged; nothing was connected.")
    assert scene.run(rollout).state == State.PROVEN
    event = Event.objects.get(action="deploy:rollout:accept")
    assert event.after["moved"] == [guid]
    assert event.reason == "The HCA was exchanged; nothing was connected."
    assert "Olga lets 1 port with another LID or state stand" in rollout.steps.get(text__contains="stand").text
    # The next rollout compares with what this one's proof read, so the old LID is forgotten.
    assert scene.run(scene.begin(s2=INFERENCE)).state == State.PROVEN


def test_accepted_is_what_was_seen_and_no_more(scene: Scene):
    rollout = unproven_by_lid(scene)
    operations.accept(rollout=rollout, actor=OLGA, reason="why")
    other = scene.site.ports[scene.site.guids(3)[0]]
    other.lid = 98
    scene.run(rollout)
    assert rollout.state == State.UNPROVEN
    assert other.guid in rollout.cause
    operations.accept(rollout=rollout, actor=OLGA, reason="that one too")
    assert scene.run(rollout).state == State.PROVEN


def test_an_affected_port_that_is_gone_is_accepted_and_stays_owed(scene: Scene):
    rollout = scene.begin()
    port = scene.site.ports[scene.site.guids(1)[0]]
    port.is_absent = True
    scene.run(rollout)
    assert rollout.state == State.UNPROVEN
    operations.accept(rollout=rollout, actor=OLGA, reason="The server burnt down.")
    assert scene.run(rollout).state == State.PROVEN
    assert rollout.read_back["owed"] == [port.guid]
    assert rollout.read_back["counts"]["absent"] == 1


def test_an_absent_port_that_returns_is_judged_like_any_other(scene: Scene):
    rollout = scene.begin()
    port = scene.site.ports[scene.site.guids(1)[0]]
    port.is_absent = True
    scene.run(rollout)
    operations.accept(rollout=rollout, actor=OLGA, reason="It is gone.")
    port.is_absent = False  # it is back, with its old keys
    scene.run(rollout)
    assert rollout.state != State.PROVEN


def test_an_unreadable_port_is_never_accepted(scene: Scene):
    rollout = scene.begin()
    scene.site.ports[scene.site.guids(1)[0]].is_unreadable = True
    scene.run(rollout)
    with pytest.raises(TooLate, match="not yours to accept"):
        operations.accept(rollout=rollout, actor=OLGA, reason="why")


def test_keys_are_never_accepted(scene: Scene):
    rollout = unproven_by_lid(scene)
    operations.accept(rollout=rollout, actor=OLGA, reason="why")
    scene.site.ports[scene.site.guids(4)[0]].pkeys[5] = 0x9999
    scene.run(rollout)
    assert rollout.state in (State.STUCK, State.RESTORED)
    assert "0x9999" in rollout.contrary


def test_it_needs_a_reason_and_something_that_waits(scene: Scene):
    rollout = unproven_by_lid(scene)
    with pytest.raises(ReasonNeeded):
        operations.accept(rollout=rollout, actor=OLGA, reason=" ")
    operations.accept(rollout=rollout, actor=OLGA, reason="why")
    scene.run(rollout)
    with pytest.raises(TooLate, match="is proven"):
        operations.accept(rollout=rollout, actor=OLGA, reason="why")


def test_a_port_that_booted_during_the_rollout_blocks_nothing(scene: Scene):
    """It was not armed when the tables were read before, with the keys its hardware begins with."""
    port = scene.site.ports[scene.site.guids(4)[0]]
    kept = dict(port.pkeys)
    port.state, port.pkeys = "INIT", {0: 0xFFFF}
    revision = scene.propose(s1=INFERENCE)
    rollout = scene.start(revision)
    port.state, port.pkeys = "ACTIVE", kept
    assert scene.run(rollout).state == State.PROVEN
    assert queries.current_revision(scene.subnet) == revision
