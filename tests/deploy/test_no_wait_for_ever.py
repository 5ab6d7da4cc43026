"""No rollout waits for ever: in each running state, whatever falls silent there, a next attempt has its time, and the
attempts end in a state with a name. The time is the test's own, so hours pass in a moment.
"""

from __future__ import annotations

import pytest

from deploy import lease, queries
from deploy.models import RUNNING, Rollout
from deploy.proof import MOST_READINGS
from deploy.restore import TRIES
from remote.errors import CallTimedOut, RemoteError, TablesMoved
from tests.deploy.conftest import Scene, one_host_at_a_time
from tests.deploy.fakes import Killed

State = Rollout.State
# What the state ends in when no host answers any more from its beginning on.
ENDS = {
    State.QUEUED: State.REFUSED,
    State.STAGING: State.REFUSED,
    State.PLACING: State.STUCK,  # after so many tries to put the parent back
    State.RELOADING: State.UNPROVEN,
    State.READING_BACK: State.UNPROVEN,
    State.RESTORING: State.STUCK,
}
# The first verb that is called in the state; what was called before it still answered.
FIRST_VERB = {
    State.QUEUED: "identify",
    State.STAGING: "stage",
    State.PLACING: "place",
    State.RELOADING: "reload",
    State.READING_BACK: "barrier",
    State.RESTORING: "place",
}
LONGEST_S = lease.LATEST_RETRY_S * 2 * TRIES


def silent() -> RemoteError:
    return CallTimedOut("the call was not over in its time. It ends by itself on the host.")


def gone(scene: Scene, state: State, *, error) -> None:
    """From the first verb of `state` on, every verb on every host raises what `error()` makes."""
    over: list[str] = []

    def fail(host: str, verb: str, when: str) -> None:
        is_now = Rollout.objects.get().state == state and verb == FIRST_VERB[state] and when == "before"
        if state in (State.QUEUED, State.STAGING):  # the first look comes after STAGING is stored
            is_now = verb == FIRST_VERB[state] and when == "before"
        if over or is_now:
            over.append(verb)
            raise error()

    scene.site.fail = fail


def turn_round(scene: Scene, state: State) -> None:
    if state == State.RESTORING:
        for guid in scene.site.guids(1):
            scene.site.ports[guid].refuses_sets = True


def attempts(scene: Scene, rollout: Rollout, *, within_s: float) -> int:
    """Do what the tick does until the rollout runs no more; fail when nobody takes it up in that time."""
    made, waited = 0, 0.0
    while rollout.state in RUNNING:
        assert waited <= within_s, f"{rollout.state} for {waited} s: {rollout.cause}"
        scene.clock.forward(5)
        waited += 5
        if rollout.pk in queries.rollouts_to_resume(now=scene.clock()):
            scene.run(rollout)
            made += 1
    return made


def test_every_running_state_is_looked_at_here():
    assert set(ENDS) == set(RUNNING)


@pytest.mark.parametrize("state", sorted(ENDS))
def test_when_all_hosts_fall_silent_it_ends_in_a_state_with_a_name(scene: Scene, monkeypatch, state: State):
    one_host_at_a_time(monkeypatch)
    rollout = scene.begin()
    turn_round(scene, state)
    gone(scene, state, error=silent)
    scene.run(rollout)
    attempts(scene, rollout, within_s=LONGEST_S)
    assert rollout.state == ENDS[state], rollout.cause
    assert "not over in its time" in rollout.cause


@pytest.mark.parametrize("state", sorted(ENDS))
def test_when_the_worker_vanishes_another_takes_it_up_at_the_end_of_the_lease(scene: Scene, monkeypatch, state: State):
    """A worker on another machine: nobody can see that it is gone, so only time tells."""
    one_host_at_a_time(monkeypatch)
    rollout = scene.begin()
    turn_round(scene, state)
    gone(scene, state, error=lambda: Killed("the worker"))
    with pytest.raises(Killed):
        scene.run(rollout)
    rollout.refresh_from_db()
    assert rollout.state in RUNNING
    scene.site.fail = lambda *_: None
    assert attempts(scene, rollout, within_s=lease.length().total_seconds() + 60) >= 1
    assert rollout.state == (State.RESTORED if state == State.RESTORING else State.PROVEN), rollout.cause


@pytest.mark.parametrize("state", [State.READING_BACK, State.RESTORING])
@pytest.mark.parametrize("without_master_s", [0, 1200])
def test_both_sms_restarted_before_the_barrier(scene: Scene, monkeypatch, state: State, without_master_s: int):
    """Neither process is the marked one any more; for a while perhaps none of them is master."""
    one_host_at_a_time(monkeypatch)
    rollout = scene.begin()
    turn_round(scene, state)
    done: list[str] = []

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("barrier", "before") and Rollout.objects.get().state == state and not done:
            done.append(host)
            for one in scene.site.hosts:
                one.stop_opensm()
            if not without_master_s:
                for one in scene.site.hosts:
                    one.start_opensm()

    scene.site.fail = fail
    scene.run(rollout)
    assert done
    if without_master_s:
        assert rollout.state in (State.UNPROVEN, State.RESTORING), rollout.cause
        waited = 0
        while waited < without_master_s and rollout.state != State.STUCK:
            assert "No registered SM is master" in rollout.cause or "No OpenSM runs" in rollout.cause
            assert rollout.next_try_at is not None
            assert (rollout.next_try_at - scene.clock()).total_seconds() <= lease.LATEST_RETRY_S
            scene.later(rollout, 60)
            waited += 60
        for one in scene.site.hosts:
            one.start_opensm()
    if rollout.state == State.STUCK:  # a way back is tried so many times; then a person is asked
        assert state == State.RESTORING
        assert "let go of this rollout" in rollout.cause
        return
    for _ in range(3):
        if rollout.state in (State.PROVEN, State.RESTORED):
            break
        scene.later(rollout)
    assert rollout.state == (State.RESTORED if state == State.RESTORING else State.PROVEN), rollout.cause


@pytest.mark.parametrize("state", [State.READING_BACK, State.RESTORING])
def test_a_worker_that_reads_again_and_again_keeps_its_lease(scene: Scene, monkeypatch, state: State):
    """A fabric that is swept during each reading of minutes: another worker must not take the rollout meanwhile."""
    one_host_at_a_time(monkeypatch)
    rollout = scene.begin()
    turn_round(scene, state)
    readings: list[str] = []

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("read_tables", "before") and Rollout.objects.get().state == state:
            readings.append(host)
            if len(readings) < MOST_READINGS:
                scene.clock.forward(lease.READ_TIMEOUT_S)
                assert rollout.pk not in queries.rollouts_to_resume(now=scene.clock()), f"reading {len(readings)}"
                raise TablesMoved(85, "The fabric was swept again.")

    scene.site.fail = fail
    scene.run(rollout)
    assert len(readings) == MOST_READINGS
    assert rollout.state == (State.RESTORED if state == State.RESTORING else State.PROVEN), rollout.cause
