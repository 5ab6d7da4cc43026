"""Who runs a rollout, when clocks jump and databases stall: no living worker loses it, no dead one keeps it."""

import pytest
from django.db import OperationalError

from deploy import lease, queries
from deploy.errors import StaleObservation
from deploy.models import Rollout
from deploy.story import Story
from tests.deploy.conftest import INFERENCE, Scene
from tests.deploy.fakes import Killed, failing, unreachable

State = Rollout.State
DAY = 86_400


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_clock_that_jumps_takes_no_lease_from_a_living_worker(scene: Scene, jump: float):
    rollout = scene.begin()
    second: list[int] = []

    def fail(host: str, verb: str, when: str) -> None:
        if (host, verb, when) == ("mgr-a", "reload", "after") and not second:
            scene.clock.jump(jump)
            calls = len(scene.site.calls)
            assert queries.rollouts_to_resume(now=scene.clock()) == []
            scene.run(Rollout.objects.get(pk=rollout.pk))
            second.append(len(scene.site.calls) - calls)

    scene.site.fail = fail
    assert scene.run(rollout).state == State.PROVEN
    assert second == [0]


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_clock_that_jumps_keeps_no_lease_for_a_dead_one(scene: Scene, jump: float):
    rollout = scene.begin()
    scene.site.fail = failing(lambda: Killed("the worker"), verb="barrier")
    with pytest.raises(Killed):
        scene.run(rollout)
    scene.site.fail = lambda *_: None
    scene.clock.jump(jump)
    assert queries.rollouts_to_resume(now=scene.clock()) == []  # nobody knows that it is dead: its process lives
    scene.clock.forward(lease.length().total_seconds())
    assert queries.rollouts_to_resume(now=scene.clock()) == [rollout.pk]
    assert scene.run(rollout).state == State.PROVEN


def test_a_holder_on_another_machine_is_told_by_the_wall_clock(scene: Scene):
    rollout = scene.begin()
    far = "another-boot pid:[1] 77 12 abcd"
    now = scene.clock()
    Rollout.objects.filter(pk=rollout.pk).update(
        claimed_by=far, claimed_until=now + lease.length(), claimed_until_up=lease.uptime_s() - DAY
    )
    assert scene.run(rollout).state == State.QUEUED
    scene.clock.forward(lease.length().total_seconds() + 1)
    assert queries.rollouts_to_resume(now=scene.clock()) == [rollout.pk]
    assert scene.run(rollout).state == State.PROVEN


def test_a_holder_on_another_machine_whose_clock_was_far_ahead_is_not_believed(scene: Scene):
    rollout = scene.begin()
    scene.clock.forward(60)
    Rollout.objects.filter(pk=rollout.pk).update(
        claimed_by="another-boot pid:[1] 77 12 abcd", claimed_until=scene.clock.now.replace(year=2030)
    )
    assert queries.rollouts_to_resume(now=scene.clock()) == [rollout.pk]
    assert scene.run(rollout).state == State.PROVEN


def test_a_clock_set_back_does_not_put_off_what_waits(scene: Scene):
    rollout = scene.begin()
    scene.site.fail = failing(unreachable, verb="barrier")
    assert scene.run(rollout).state == State.UNPROVEN
    scene.site.fail = lambda *_: None
    scene.clock.jump(-DAY)
    assert queries.rollouts_to_resume(now=scene.clock()) == [rollout.pk]
    assert scene.run(rollout).state == State.PROVEN


def test_a_clock_set_back_does_not_lose_what_is_queued(scene: Scene):
    rollout = scene.begin()
    scene.clock.jump(-DAY)
    assert queries.rollouts_to_resume(now=scene.clock()) == [rollout.pk]


@pytest.mark.parametrize("state", [State.STAGING, State.PLACING, State.READING_BACK, State.PROVEN])
def test_a_database_that_stalls_gives_the_rollout_back_at_once(scene: Scene, monkeypatch, state: str):
    """SQLite says “database is locked” after its busy timeout: the next try comes in seconds."""
    rollout = scene.begin()
    change, stalled = Story._change, []

    def locked(story: Story, changes) -> None:
        if changes.get("state") == state and not stalled:
            stalled.append(state)
            raise OperationalError("database is locked")
        change(story, changes)

    monkeypatch.setattr(Story, "_change", locked)
    with pytest.raises(OperationalError):
        scene.run(rollout)
    assert rollout.claimed_until is None
    wait_s = (rollout.next_try_at - scene.clock()).total_seconds()
    assert 0 < wait_s <= 15
    scene.clock.forward(wait_s)
    assert queries.rollouts_to_resume(now=scene.clock()) == [rollout.pk]
    assert scene.run(rollout).state == State.PROVEN


def test_a_database_that_is_away_altogether_leaves_it_to_the_end_of_the_lease(scene: Scene, monkeypatch):
    rollout = scene.begin()
    scene.site.fail = failing(lambda: ZeroDivisionError("a bug"), verb="barrier", times=1)
    tries = []

    def away(self):
        tries.append(1)
        raise OperationalError("the database is away")

    from django.db import transaction

    real = transaction.atomic

    def atomic(*arguments, **columns):
        if tries or (scene.site.calls and scene.site.calls[-1][1] == "barrier"):
            away(None)
        return real(*arguments, **columns)

    monkeypatch.setattr("deploy.story.transaction.atomic", atomic)
    with pytest.raises(ZeroDivisionError):
        scene.run(rollout)
    assert len(tries) == 3
    monkeypatch.undo()
    rollout.refresh_from_db()
    assert rollout.claimed_until is not None


def test_a_bug_is_tried_again_ever_more_seldom(scene: Scene):
    rollout = scene.begin()
    scene.site.fail = failing(lambda: ZeroDivisionError("a bug"), verb="identify")
    waits = []
    for _ in range(5):
        with pytest.raises(ZeroDivisionError):
            scene.run(rollout)
        waits.append((rollout.next_try_at - scene.clock()).total_seconds())
        scene.clock.forward(61)
    assert waits == sorted(waits)
    assert 55 < waits[-1] <= 60


def test_a_clock_that_ran_ahead_does_not_stop_plans_once_it_is_mended(scene: Scene):
    old = scene.look()
    scene.clock.jump(7200)
    assert scene.run(scene.begin(s1=INFERENCE)).state == State.PROVEN
    proof = queries.latest_observation(scene.subnet)
    scene.clock.jump(-7200)
    revision = scene.propose(s2=INFERENCE)
    for stale in (old, proof):
        with pytest.raises(StaleObservation):
            scene.start(revision, stale)
    fresh = scene.look()
    assert queries.latest_observation(scene.subnet) == fresh
    with pytest.raises(StaleObservation, match="before the last rollout ended"):
        scene.start(revision, old)
    assert scene.run(scene.start(revision, fresh)).state == State.PROVEN
