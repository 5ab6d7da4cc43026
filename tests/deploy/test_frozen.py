"""A freeze, or a mode that is no longer write: nothing is placed or reloaded from a waiting state; reading goes on."""

import pytest
from django.utils import timezone

from deploy.models import Rollout
from inventory.models import Subnet
from remote.errors import FileNotWritable
from tests.deploy.conftest import Scene, one_host_at_a_time
from tests.deploy.fakes import Killed, failing, unreachable

State = Rollout.State


def freeze() -> None:
    Subnet.objects.update(frozen_at=timezone.now(), frozen_reason="the leaves are recabled")


def thaw() -> None:
    Subnet.objects.update(frozen_at=None, mode=Subnet.Mode.WRITE)


def verbs(scene: Scene) -> set[str]:
    return {verb for _, verb in scene.site.calls}


def degraded(scene: Scene) -> Rollout:
    rollout = scene.begin()
    scene.site.fail = failing(unreachable, verb="read", host="mgr-b", when="after")
    standby = scene.site.host("mgr-b")

    def fail(host: str, verb: str, when: str) -> None:
        if (host, verb, when) == ("mgr-a", "reload", "before"):
            standby.file = bytes(scene.first.data)

    scene.site.fail = fail
    scene.run(rollout)
    scene.site.fail = lambda *_: None
    assert rollout.state == State.DEGRADED
    return rollout


@pytest.mark.parametrize("how", [freeze, lambda: Subnet.objects.update(mode=Subnet.Mode.PROPOSE)])
def test_a_degraded_one_is_not_healed_until_it_is_lifted(scene: Scene, how):
    rollout = degraded(scene)
    how()
    scene.site.calls.clear()
    scene.later(rollout)
    assert rollout.state == State.DEGRADED
    assert not verbs(scene) & {"stage", "place", "reload"}
    assert "mgr-b does not hold revision 2, and nothing is placed or reloaded now" in rollout.cause
    thaw()
    assert scene.later(rollout).state == State.PROVEN


def test_an_unproven_one_is_read_on_and_proven(scene: Scene):
    rollout = scene.begin()
    scene.site.fail = failing(unreachable, verb="read_tables")
    assert scene.run(rollout).state == State.UNPROVEN
    scene.site.fail = lambda *_: None
    freeze()
    scene.site.calls.clear()
    assert scene.later(rollout).state == State.PROVEN
    assert not verbs(scene) & {"stage", "place", "reload"}


def test_contrary_evidence_is_named_and_waits_for_the_end_of_the_freeze(scene: Scene):
    rollout = scene.begin()
    scene.site.fail = failing(unreachable, verb="read_tables")
    scene.run(rollout)
    scene.site.fail = lambda *_: None
    for guid in scene.site.guids(1):
        scene.site.ports[guid].pkeys = {0: 0x7FFF}
    freeze()
    scene.site.calls.clear()
    scene.later(rollout)
    assert rollout.state == State.UNPROVEN
    assert "does not hold 0xac42" in rollout.cause
    assert "put back once that is allowed" in rollout.cause
    assert not verbs(scene) & {"stage", "place", "reload"}
    thaw()
    assert scene.later(rollout).state in (State.STUCK, State.RESTORED)


def test_a_hand_edit_on_the_master_during_a_freeze_is_left_alone(scene: Scene):
    """Whoever froze the subnet may be mending it by hand."""
    rollout = scene.begin()
    scene.site.fail = failing(unreachable, verb="read_tables")
    scene.run(rollout)
    scene.site.fail = lambda *_: None
    freeze()
    scene.site.host("mgr-a").file = b"by hand\n"
    scene.later(rollout)
    assert rollout.state == State.UNPROVEN
    assert scene.site.host("mgr-a").file == b"by hand\n"


def test_a_new_master_is_not_reloaded_during_a_freeze(scene: Scene):
    rollout = scene.begin()
    scene.site.fail = failing(unreachable, verb="read_tables")
    scene.run(rollout)
    scene.site.fail = lambda *_: None
    freeze()
    scene.site.host("mgr-a").stop_opensm()
    scene.site.takeover()
    scene.site.host("mgr-a").start_opensm()
    scene.site.calls.clear()
    scene.later(rollout)
    assert rollout.state == State.UNPROVEN
    assert "mgr-b was not reloaded as master yet" in rollout.cause
    assert "reload" not in verbs(scene)
    thaw()
    assert scene.later(rollout).state == State.PROVEN


def test_a_freeze_between_staging_and_placing_refuses_with_nothing_placed(scene: Scene, monkeypatch):
    one_host_at_a_time(monkeypatch)
    rollout = scene.begin()

    def fail(host: str, verb: str, when: str) -> None:
        if (host, verb, when) == ("mgr-b", "stage", "after"):
            freeze()

    scene.site.fail = fail
    scene.run(rollout)
    assert rollout.state == State.REFUSED
    assert "place" not in verbs(scene)
    assert scene.digests() == {scene.first.digest}


def test_what_has_begun_to_place_is_finished_so_that_no_hosts_differ(scene: Scene, monkeypatch):
    one_host_at_a_time(monkeypatch)
    rollout = scene.begin()

    def fail(host: str, verb: str, when: str) -> None:
        if (host, verb, when) == ("mgr-b", "place", "after"):
            freeze()
            raise Killed("the worker")

    scene.site.fail = fail
    with pytest.raises(Killed):
        scene.run(rollout)
    scene.site.fail = lambda *_: None
    assert scene.later(rollout).state == State.PROVEN


def test_a_restore_that_has_begun_is_finished(scene: Scene):
    rollout = scene.begin()
    scene.site.fail = failing(lambda: FileNotWritable(73, "0 KiB free."), verb="place", host="mgr-a", times=2)
    scene.run(rollout)
    assert rollout.state == State.RESTORING
    freeze()
    scene.site.fail = lambda *_: None
    assert scene.later(rollout).state == State.RESTORED
