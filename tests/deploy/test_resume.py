"""A worker that is killed at any step: the next run ends the rollout, and never leaves hosts that differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from audit.models import Event
from deploy import queries
from deploy.errors import ClaimLost
from deploy.lease import is_gone, new_holder
from deploy.models import Rollout
from deploy.story import Story
from tests.deploy.conftest import Scene, one_host_at_a_time
from tests.deploy.fakes import Killed

State = Rollout.State


class Points:
    """Counts the moments at which a worker can be killed, and kills it at one of them."""

    def __init__(self, scene: Scene, monkeypatch: pytest.MonkeyPatch, *, at: int = -1) -> None:
        self.at, self.seen, self.names = at, 0, []
        scene.site.fail = lambda host, verb, when: self.pass_by(f"{when} {verb} on {host}")
        take_up = Story.take_up.__func__  # type: ignore[attr-defined]
        for method in ("advance", "keep", "put_off", "new_generation"):
            monkeypatch.setattr(Story, method, self.around(method))

        def taking(cls: type[Story], *arguments: object, **columns: object) -> Story | None:
            story = take_up(cls, *arguments, **columns)
            self.pass_by("after the lease is taken")
            return story

        monkeypatch.setattr(Story, "take_up", classmethod(taking))

    def around(self, method: str) -> Callable[..., object]:
        real = getattr(Story, method)

        def telling(story: Story, *arguments: object, **columns: object) -> object:
            name = f"{method} {arguments[0] if method == 'advance' else ''}".strip()
            self.pass_by(f"before {name} is stored")
            answer = real(story, *arguments, **columns)
            self.pass_by(f"after {name} is stored")
            return answer

        return telling

    def pass_by(self, name: str) -> None:
        self.names.append(name)
        self.seen += 1
        if self.seen - 1 == self.at:
            self.at = -1
            raise Killed(name)


# So many moments pass in a rollout that goes well, and in one that has to restore; a test below counts them.
GOOD, BAD = 46, 85


def kill_at(scene: Scene, monkeypatch: pytest.MonkeyPatch, at: int, *, is_bad: bool) -> tuple[Rollout, Points]:
    one_host_at_a_time(monkeypatch)
    rollout = scene.begin()
    if is_bad:
        for guid in scene.site.guids(1):
            scene.site.ports[guid].refuses_sets = True
    points = Points(scene, monkeypatch, at=at)
    try:
        scene.run(rollout)
    except Killed:
        calls = len(scene.site.calls)
        scene.run(rollout)  # a message delivered twice: the dead worker's lease still holds
        assert len(scene.site.calls) == calls
    for _ in range(12):
        scene.clock.forward(600)
        if rollout.pk not in queries.rollouts_to_resume(now=scene.clock()):
            break
        scene.run(rollout)
    rollout.refresh_from_db()
    return rollout, points


@pytest.mark.parametrize("at", range(GOOD))
def test_killed_anywhere_it_ends_proven_or_restored(scene: Scene, monkeypatch: pytest.MonkeyPatch, at: int):
    rollout, points = kill_at(scene, monkeypatch, at, is_bad=False)
    assert rollout.state in (State.PROVEN, State.RESTORED, State.REFUSED), rollout.cause
    revision = rollout.revision if rollout.state == State.PROVEN else rollout.parent
    assert scene.digests() == {revision.digest}
    assert queries.current_revision(scene.subnet) == revision
    assert queries.running_rollout(scene.subnet) is None
    told = list(_states(rollout))
    assert told[-1] == rollout.state
    assert len(told) == len(set(told)), "a transition was told twice"
    assert rollout.state == State.PROVEN, f"it went back after {points.names}"


@pytest.mark.parametrize("at", range(BAD))
def test_killed_anywhere_on_the_way_back_it_ends_restored(scene: Scene, monkeypatch: pytest.MonkeyPatch, at: int):
    before = scene.tables()
    rollout, _ = kill_at(scene, monkeypatch, at, is_bad=True)
    assert rollout.state == State.RESTORED, rollout.cause
    assert scene.digests() == {rollout.parent.digest}
    assert scene.tables() == before
    assert list(_states(rollout))[-2:] == [State.RESTORING, State.RESTORED]


@pytest.mark.parametrize("is_bad", [False, True])
def test_the_tests_above_cover_every_moment(scene: Scene, monkeypatch: pytest.MonkeyPatch, is_bad: bool):
    _, points = kill_at(scene, monkeypatch, -1, is_bad=is_bad)
    assert len(points.names) == (BAD if is_bad else GOOD)
    assert {"before place on mgr-a", "after place on mgr-a", "before advance PLACING is stored"} <= set(points.names)


def _states(rollout: Rollout) -> Iterator[str]:
    events = Event.objects.filter(subject_kind="rollout", subject_key=rollout.public_id).order_by("number")
    return (event.after["state"] for event in events)


def test_a_standby_lost_with_the_worker_after_all_was_placed_does_not_turn_the_rollout_back(scene: Scene):
    rollout = scene.begin()

    def fail(host: str, verb: str, when: str) -> None:
        if (host, verb, when) == ("mgr-a", "place", "after"):
            raise Killed("the worker")

    scene.site.fail = fail
    with pytest.raises(Killed):
        scene.run(rollout)
    assert rollout.state == State.PLACING
    scene.site.fail = lambda *_: None
    scene.site.host("mgr-b").is_reachable = False
    assert scene.later(rollout).state == State.DEGRADED


def test_what_was_staged_and_is_gone_after_a_crash_is_staged_again(scene: Scene):
    rollout = scene.begin()

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("place", "before"):
            raise Killed("the worker")

    scene.site.fail = fail
    with pytest.raises(Killed):
        scene.run(rollout)
    scene.site.fail = lambda *_: None
    for host in scene.site.hosts:
        host.staged.clear()
    assert scene.later(rollout).state == State.PROVEN


def test_a_second_worker_touches_nothing_while_the_first_is_at_work(scene: Scene):
    rollout = scene.begin()
    second = []

    def fail(host: str, verb: str, when: str) -> None:
        if (host, verb, when) == ("mgr-a", "barrier", "before") and not second:
            second.append(rollout.state)
            calls = len(scene.site.calls)
            scene.run(Rollout.objects.get(pk=rollout.pk))
            assert len(scene.site.calls) == calls

    scene.site.fail = fail
    assert scene.run(rollout).state == State.PROVEN
    assert second


def test_a_worker_that_slept_too_long_changes_nothing_any_more(scene: Scene):
    rollout = scene.begin()
    woken = []

    def fail(host: str, verb: str, when: str) -> None:
        if (host, verb, when) == ("mgr-a", "reload", "after") and not woken:
            woken.append(True)
            scene.clock.forward(3600)  # the first worker sleeps here, and a second one finishes
            other = Rollout.objects.get(pk=rollout.pk)
            assert scene.run(other).state == State.PROVEN

    scene.site.fail = fail
    scene.run(rollout)  # the first one wakes up, finds its lease lost, and stops
    assert woken
    assert rollout.state == State.PROVEN
    assert list(_states(rollout)).count(State.READING_BACK) == 1


def test_only_who_holds_the_lease_writes_even_in_the_same_state(scene: Scene):
    rollout = scene.begin()
    first = Story.take_up(rollout, clock=scene.clock)
    assert first is not None
    assert Story.take_up(rollout, clock=scene.clock) is None
    scene.clock.forward(3600)
    second = Story.take_up(rollout, clock=scene.clock)
    assert second is not None
    for write in (
        lambda: first.advance(State.STAGING, "too late"),
        lambda: first.keep(cause="too late"),
        lambda: first.put_off("too late"),
        first.new_generation,
    ):
        with pytest.raises(ClaimLost):
            write()
    rollout.refresh_from_db()
    assert (rollout.state, rollout.cause, rollout.generation) == (State.QUEUED, "", scene.fence.generation)
    second.advance(State.STAGING, "in time")


def test_a_lease_ends_at_once_when_its_process_is_known_to_be_gone(scene: Scene):
    rollout = scene.begin()
    parts = new_holder().split(" ")
    gone = " ".join([parts[0], parts[1], "4194304", parts[3], parts[4]])  # no process has a number that high
    Rollout.objects.filter(pk=rollout.pk).update(
        state=State.STAGING, claimed_by=gone, claimed_until=scene.clock.now.replace(year=2030)
    )
    assert queries.rollouts_to_resume(now=scene.clock()) == [rollout.pk]
    assert scene.run(rollout).state == State.PROVEN


def test_a_living_or_distant_process_is_never_called_gone():
    assert not is_gone(new_holder())
    parts = new_holder().split(" ")
    assert not is_gone(" ".join(["another-boot", *parts[1:2], "4194304", *parts[3:]]))
    assert not is_gone("")
    assert is_gone(" ".join([*parts[:2], "4194304", *parts[3:]]))
    assert is_gone(" ".join([*parts[:3], "12345", parts[4]]))  # the number lives on in another process


def test_a_bug_is_loud_and_leaves_the_rollout_to_the_next_worker(scene: Scene):
    rollout = scene.begin()

    def fail(host: str, verb: str, when: str) -> None:
        raise ZeroDivisionError("a bug")

    scene.site.fail = fail
    with pytest.raises(ZeroDivisionError):
        scene.run(rollout)
    assert rollout.state == State.STAGING
    scene.site.fail = lambda *_: None
    assert scene.run(rollout).state == State.STAGING  # not at once: a bug would go round and round
    scene.clock.forward(10)
    assert scene.run(rollout).state == State.PROVEN
