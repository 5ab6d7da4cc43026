"""The second reading: a manager host whose OpenSM wrote nothing reads the changed ports too, and has to agree."""

import pytest

from deploy import putting_back, terms
from deploy.models import Rollout
from remote.errors import BarrierTimedOut, VerbRefused
from tests.deploy.conftest import INFERENCE, OLGA, Scene, make_scene
from tests.deploy.fakes import FakeHost, Killed, failing

State = Rollout.State


def test_the_standby_reads_every_changed_port_and_that_is_told(scene: Scene):
    rollout = scene.run(scene.begin(s1=INFERENCE))
    assert rollout.state == State.PROVEN
    assert [host for host, verb in scene.site.calls if verb == "read_ports"] == ["mgr-b"]
    assert rollout.read_back["second_reading"] == {"host": "mgr-b", "ports": len(scene.site.guids(1)), "differ": 0}


def test_what_it_reads_otherwise_is_not_proven_before_both_agree(scene: Scene, monkeypatch):
    moved = scene.site.guids(1)[0]
    honest = FakeHost.read_ports

    def other(host: FakeHost, ports, *, timeout_s):
        return honest(host, ports, timeout_s=timeout_s) | {moved: {0: 0x7FFF, 1: 0x8BAD}}

    monkeypatch.setattr(FakeHost, "read_ports", other)
    rollout = scene.run(scene.begin(s1=INFERENCE))
    assert rollout.state == State.UNPROVEN
    assert (
        f"Port {moved}: mgr-b reads 0:0x7fff 1:0x8bad where mgr-a, whose OpenSM has written it, reads" in rollout.cause
    )
    monkeypatch.setattr(FakeHost, "read_ports", honest)
    assert scene.later(rollout).state == State.PROVEN


def test_without_a_second_reading_it_is_proven_and_says_so(scene: Scene):
    scene.site.fail = failing(lambda: VerbRefused(64, "no verb of this wrapper."), verb="read_ports")
    rollout = scene.run(scene.begin(s1=INFERENCE))
    assert rollout.state == State.PROVEN
    assert "No other manager host than mgr-a has read the ports" in rollout.read_back["not_checked"][-1]


def test_nothing_is_asked_when_nothing_changes(scene: Scene):
    scene.look()
    rollout = scene.run(putting_back.put_back(subnet=scene.subnet, actor=OLGA))
    assert rollout.state == State.PROVEN
    assert "read_ports" not in {verb for _, verb in scene.site.calls}


def test_of_very_many_ports_some_are_read(scene: Scene, monkeypatch):
    monkeypatch.setattr(terms, "MOST_READ_PORTS", 3)
    rollout = scene.run(scene.begin(s1=INFERENCE, s2=INFERENCE))
    moved = len([*scene.site.guids(1), *scene.site.guids(2)])
    assert rollout.state == State.PROVEN
    assert moved > 3
    assert 0 < rollout.read_back["second_reading"]["ports"] <= 3


def test_a_standby_that_answered_lately_is_asked_and_not_a_dead_one(db, clock):
    """mgr-b comes first by name, and has died since the last try; the look before the next one finds that out."""
    scene = make_scene(clock, managers=("mgr-a", "mgr-b", "mgr-c"))
    rollout = scene.begin()
    scene.site.fail = failing(lambda: BarrierTimedOut(83, "The sweep was not over in 60 s."), verb="barrier")
    assert scene.run(rollout).state == State.UNPROVEN
    scene.site.fail = lambda *_: None
    scene.site.host("mgr-b").is_reachable = False
    scene.later(rollout)
    assert rollout.state == State.DEGRADED, rollout.cause
    assert rollout.read_back["second_reading"] == {"host": "mgr-c", "ports": len(scene.site.guids(1)), "differ": 0}


def test_a_worker_that_takes_up_the_reading_finds_out_who_answers(db, clock):
    scene = make_scene(clock, managers=("mgr-a", "mgr-b", "mgr-c"))
    rollout = scene.begin()
    scene.site.fail = failing(lambda: Killed("the worker"), verb="barrier", times=1)
    with pytest.raises(Killed):
        scene.run(rollout)
    assert rollout.state == State.READING_BACK
    scene.site.host("mgr-b").is_reachable = False
    scene.later(rollout)
    assert rollout.state == State.DEGRADED, rollout.cause
    assert rollout.read_back["second_reading"]["host"] == "mgr-c"


def test_a_host_whose_opensm_does_not_run_reads_rather_than_a_dead_one(db, clock):
    scene = make_scene(clock, managers=("mgr-a", "mgr-b", "mgr-c"))
    rollout = scene.begin()
    scene.site.fail = failing(lambda: BarrierTimedOut(83, "The sweep was not over in 60 s."), verb="barrier")
    scene.run(rollout)
    scene.site.fail = lambda *_: None
    for name in ("mgr-b", "mgr-c"):
        scene.site.host(name).stop_opensm()
    scene.site.host("mgr-b").is_reachable = False
    scene.later(rollout)
    assert rollout.read_back["second_reading"]["host"] == "mgr-c"
