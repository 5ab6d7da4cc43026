"""The three gates: the sweep barrier, the fence, the standby. Take one away and the test named after it fails."""

import pytest

from deploy import queries
from deploy.models import Rollout
from tests.deploy.conftest import Scene, one_host_at_a_time
from tests.deploy.fakes import failing, unreachable

State = Rollout.State


# --- the barrier: tables read before the sweep has ended say nothing -------------------------------------------------


def test_barrier_tables_read_before_the_sweep_has_ended_are_never_judged(scene: Scene):
    """The fake's OpenSM sweeps while the barrier waits: without it every port still holds what it held."""
    rollout = scene.run(scene.begin())
    assert rollout.state == State.PROVEN, rollout.cause
    held = {key for guid in scene.site.guids(1) for key in scene.tables()[guid].values()}
    assert held == {0x7FFF, 0xAC42}


def test_barrier_a_restore_waits_behind_its_own(scene: Scene):
    rollout = scene.begin()
    for guid in scene.site.guids(1):
        scene.site.ports[guid].refuses_sets = True
    assert scene.run(rollout).state == State.RESTORED
    verbs = [verb for _, verb in scene.site.calls]
    assert verbs.count("barrier") == verbs.count("reload") == 2


def test_barrier_what_the_barrier_did_not_let_through_is_not_read(scene: Scene):
    rollout = scene.begin()
    asked: list[str] = []

    def fail(host: str, verb: str, when: str) -> None:
        if when == "before" and verb in ("barrier", "read_tables"):
            asked.append(verb)
        if (verb, when) == ("barrier", "before"):
            raise unreachable(host)

    scene.site.fail = fail
    assert scene.run(rollout).state == State.UNPROVEN
    assert "read_tables" not in asked


# --- the fence: whoever slept places nothing any more ----------------------------------------------------------------


@pytest.mark.parametrize("asleep_at", ["mgr-b", "mgr-a"])
def test_fence_a_worker_that_slept_through_a_restore_places_nothing(scene: Scene, monkeypatch, asleep_at: str):
    """The first worker is about to place; meanwhile its lease ends, and a second one turns the rollout back."""
    one_host_at_a_time(monkeypatch)
    rollout = scene.begin()
    slept: list[str] = []

    def fail(host: str, verb: str, when: str) -> None:
        if (host, verb, when) == (asleep_at, "place", "before") and not slept:
            slept.append(host)
            scene.clock.forward(3600)
            for guid in scene.site.guids(1):
                scene.site.ports[guid].refuses_sets = True
            other = Rollout.objects.get(pk=rollout.pk)
            assert scene.run(other).state == State.RESTORED
            scene.site.host(asleep_at).staged[rollout.revision.digest] = bytes(rollout.revision.data)

    scene.site.fail = fail
    scene.run(rollout)
    assert slept
    assert rollout.state == State.RESTORED
    assert scene.digests() == {scene.first.digest}
    assert queries.current_revision(scene.subnet) == scene.first


def test_fence_a_restore_takes_a_generation_of_its_own(scene: Scene):
    rollout = scene.begin()
    generation = rollout.generation
    for guid in scene.site.guids(1):
        scene.site.ports[guid].refuses_sets = True
    scene.run(rollout)
    assert {host.sidecar[0] for host in scene.site.hosts} == {(generation or 0) + 1}


# --- the standby: a takeover must never bring back what was taken away -----------------------------------------------


def test_standby_that_cannot_be_staged_stops_it_before_anything_is_placed(scene: Scene):
    rollout = scene.begin()
    scene.site.fail = failing(lambda: unreachable("mgr-b"), verb="stage", host="mgr-b")
    assert scene.run(rollout).state == State.REFUSED
    assert scene.digests() == {scene.first.digest}


def test_standby_is_placed_before_the_master(scene: Scene):
    scene.run(scene.begin())
    assert [host for host, verb in scene.site.calls if verb == "place"] == ["mgr-b", "mgr-a"]


def test_standby_that_was_lost_is_never_proven_and_holds_the_subnet(scene: Scene):
    rollout = scene.begin()

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("reload", "before"):
            scene.site.host("mgr-b").is_reachable = False

    scene.site.fail = fail
    scene.run(rollout)
    assert rollout.state == State.DEGRADED
    assert queries.current_revision(scene.subnet) == scene.first
    assert queries.running_rollout(scene.subnet) == rollout
