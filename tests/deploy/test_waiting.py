"""What cannot be seen, and a standby that is owed: both are looked at again by themselves until PROVEN."""

import pytest

from deploy import operations, queries
from deploy.models import Rollout
from remote.errors import BarrierTimedOut, RemoteError, TablesMoved
from tests.deploy.conftest import OLGA, Scene
from tests.deploy.fakes import failing, unreachable

State = Rollout.State


# --- it cannot be seen ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["reload", "barrier", "read_tables"])
def test_what_cannot_be_read_is_unproven_and_tried_again_until_proven(scene: Scene, verb: str):
    rollout = scene.begin()
    scene.site.fail = failing(lambda: unreachable("mgr-a"), verb=verb, host="mgr-a")
    scene.run(rollout)
    assert rollout.state == State.UNPROVEN
    assert "no connection could be made" in rollout.cause
    assert scene.digests() == {rollout.revision.digest}  # nothing is restored out of ignorance
    assert queries.running_rollout(scene.subnet) == rollout
    events = len(rollout.steps.all())
    scene.later(rollout)
    assert (rollout.state, rollout.tries) == (State.UNPROVEN, 1)
    assert len(rollout.steps.all()) == events  # the same cause is told once
    scene.site.fail = lambda *_: None
    assert scene.later(rollout).state == State.PROVEN


def test_it_is_not_looked_at_before_its_time_unless_a_person_asks(scene: Scene):
    rollout = scene.begin()
    scene.site.fail = failing(lambda: BarrierTimedOut(83, "The sweep was not over in 60 s."), verb="barrier")
    scene.run(rollout)
    scene.site.fail = lambda *_: None
    assert scene.run(rollout).state == State.UNPROVEN
    operations.check_again(rollout=rollout, actor=OLGA)
    assert scene.run(rollout).state == State.PROVEN


def test_a_master_that_dies_after_placing_is_followed_to_the_new_one(scene: Scene):
    rollout = scene.begin()
    master = scene.site.host("mgr-a")

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("barrier", "before") and master.is_running:
            master.stop_opensm()
            master.is_reachable = False
            raise unreachable("mgr-a")

    scene.site.fail = fail
    scene.run(rollout)
    scene.site.fail = lambda *_: None
    assert rollout.state == State.UNPROVEN
    scene.later(rollout)
    assert rollout.state == State.UNPROVEN
    assert "No registered SM is master" in rollout.cause
    scene.site.takeover()
    scene.later(rollout)
    assert rollout.state == State.DEGRADED
    assert "mgr-a" in rollout.cause
    master.is_reachable = True
    master.start_opensm()
    assert scene.later(rollout).state == State.PROVEN
    assert rollout.outcomes.get(host__name="mgr-b").role_at_proof == "MASTER"


def test_an_absent_moved_port_is_unproven_until_it_returns(scene: Scene):
    rollout = scene.begin()
    port = scene.site.ports[scene.site.guids(1)[0]]
    port.is_absent = True
    scene.run(rollout)
    assert rollout.state == State.UNPROVEN
    assert f"Port {port.guid} is absent" in rollout.cause
    port.is_absent = False
    scene.site.sweep(scene.site.hosts[0])
    assert scene.later(rollout).state == State.PROVEN


def test_an_unreadable_port_that_was_not_moved_does_not_block(scene: Scene):
    rollout = scene.begin()
    scene.site.ports[scene.site.guids(4)[0]].is_unreadable = True
    scene.run(rollout)
    assert rollout.state == State.PROVEN
    assert rollout.read_back["counts"]["unreadable"] == 1


def test_an_error_about_a_moved_port_blocks_until_a_later_sweep_has_none(scene: Scene):
    rollout = scene.begin()
    line = f"-> pkey_mgr: ERR 0512: port {scene.site.guids(1)[0]} failed\n".encode()

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("log_since", "before"):
            scene.site.host(host).log += line

    scene.site.fail = fail
    scene.run(rollout)
    assert rollout.state == State.UNPROVEN
    assert "ERR 0512" in rollout.cause
    scene.site.fail = lambda *_: None
    assert scene.later(rollout).state == State.PROVEN
    assert [verb for _, verb in scene.site.calls].count("reload") == 2


def test_errors_about_other_ports_do_not_count(scene: Scene):
    rollout = scene.begin()
    scene.site.host("mgr-a").log = b""

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("log_since", "before"):
            scene.site.host(host).log += b"-> umad_receiver: ERR 5411: DR SMP to 0x0002c903000104ff timed out\n"

    scene.site.fail = fail
    assert scene.run(rollout).state == State.PROVEN


def test_a_log_that_cannot_be_read_is_said_and_blocks_nothing(scene: Scene):
    rollout = scene.begin()
    scene.site.fail = failing(lambda: RemoteError("/log does not exist."), verb="log_since")
    scene.run(rollout)
    assert rollout.state == State.PROVEN
    assert any("/log does not exist" in sentence for sentence in rollout.read_back["not_checked"])


def test_ports_that_follow_another_lid_need_a_person_only_when_it_lasts(scene: Scene):
    rollout = scene.begin()
    host = scene.site.host("mgr-a")
    reading = scene.site.reading

    def misled(topology: str, list_mtime_ns: int) -> bytes:
        return reading(topology, list_mtime_ns).replace(
            b'"master_sm_lid": %d' % host.port.lid, b'"master_sm_lid": 99', 1
        )

    scene.site.reading = misled  # type: ignore[method-assign]
    scene.run(rollout)
    assert rollout.state == State.UNPROVEN
    assert "takes LID 99" in rollout.cause
    for _ in range(6):
        scene.later(rollout)
    assert rollout.state == State.STUCK


# --- a standby is owed ----------------------------------------------------------------------------------------------


def test_a_standby_lost_after_placing_is_degraded_and_heals(scene: Scene):
    rollout = scene.begin()
    standby = scene.site.host("mgr-b")

    def fail(host: str, verb: str, when: str) -> None:
        if (host, verb, when) == ("mgr-a", "reload", "before"):
            standby.is_reachable = False

    scene.site.fail = fail
    scene.run(rollout)
    assert rollout.state == State.DEGRADED
    assert "mgr-b" in rollout.cause
    assert queries.current_revision(scene.subnet) == scene.first  # never satisfies who asks for PROVEN
    scene.site.calls.clear()
    scene.later(rollout)
    assert rollout.state == State.DEGRADED
    # The fabric is left in peace: no reload, no barrier, no reading.
    assert {verb for _, verb in scene.site.calls} == {"identify", "sm_state", "read"}
    scene.site.fail = lambda *_: None
    standby.is_reachable = True
    assert scene.later(rollout).state == State.PROVEN
    assert queries.current_revision(scene.subnet) == rollout.revision


def test_a_standby_with_a_file_changed_by_hand_is_placed_again(scene: Scene):
    rollout = scene.begin()
    standby = scene.site.host("mgr-b")

    def fail(host: str, verb: str, when: str) -> None:
        if (host, verb, when) == ("mgr-a", "reload", "before"):
            standby.file = b"by hand\n"

    scene.site.fail = fail
    scene.run(rollout)
    assert rollout.state == State.DEGRADED
    scene.site.fail = lambda *_: None
    assert scene.later(rollout).state == State.PROVEN
    assert scene.digests() == {rollout.revision.digest}


def test_a_stale_standby_that_takes_over_while_degraded_gets_the_revision(scene: Scene):
    rollout = scene.begin()
    master, standby = scene.site.hosts

    def fail(host: str, verb: str, when: str) -> None:
        if (host, verb, when) == ("mgr-a", "reload", "before"):
            standby.file = bytes(scene.first.data)
            standby.is_reachable = False

    scene.site.fail = fail
    scene.run(rollout)
    assert rollout.state == State.DEGRADED
    scene.site.fail = lambda *_: None
    master.stop_opensm()
    master.is_reachable = False
    scene.site.takeover()  # with the old file: server 1 is back in training
    standby.is_reachable = True
    scene.later(rollout)
    assert rollout.state == State.DEGRADED  # the old master is away, but the fabric holds the revision again
    assert standby.digest == rollout.revision.digest
    held = {key for guid in scene.site.guids(1) for key in scene.tables()[guid].values()}
    assert held == {0x7FFF, 0xAC42}
    master.is_reachable = True
    master.start_opensm()
    assert scene.later(rollout).state == State.PROVEN


def test_an_opensm_that_dies_on_the_standby_is_degraded(scene: Scene):
    rollout = scene.begin()
    standby = scene.site.host("mgr-b")

    def fail(host: str, verb: str, when: str) -> None:
        if (host, verb, when) == ("mgr-a", "reload", "before"):
            standby.stop_opensm()

    scene.site.fail = fail
    scene.run(rollout)
    assert rollout.state == State.DEGRADED
    assert "its SM does not answer on the fabric" in rollout.cause
    scene.site.fail = lambda *_: None
    standby.start_opensm()
    assert scene.later(rollout).state == State.PROVEN


# --- the fabric moves while it is read


def test_tables_of_a_later_sweep_are_read_again_behind_its_own_barrier(scene: Scene):
    rollout = scene.begin()
    reading, times = scene.site.reading, []

    def moved(topology: str, list_mtime_ns: int) -> bytes:
        if topology == "list" and not times:
            times.append(list_mtime_ns)
            return reading(topology, list_mtime_ns + 1)
        return reading(topology, list_mtime_ns)

    scene.site.reading = moved  # type: ignore[method-assign]
    scene.run(rollout)
    assert rollout.state == State.PROVEN
    assert [verb for _, verb in scene.site.calls].count("barrier") == 2


def test_a_fabric_that_is_swept_during_each_reading_is_unproven(scene: Scene):
    rollout = scene.begin()
    scene.site.fail = failing(lambda: TablesMoved(85, "The fabric was swept again."), verb="read_tables")
    scene.run(rollout)
    assert rollout.state == State.UNPROVEN
    assert "during each of 5 readings" in rollout.cause


def test_a_takeover_while_reading_is_no_proof_and_the_new_master_is_read_next(scene: Scene):
    rollout = scene.begin()
    master, standby = scene.site.hosts
    done: list[bool] = []

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("read_tables", "before") and not done:
            done.append(True)
            master.role, standby.role = "STANDBY", "MASTER"
            scene.site.sweep(standby, is_new=True)

    scene.site.fail = fail
    scene.run(rollout)
    assert rollout.state == State.UNPROVEN
    assert "The master changed while the tables were read" in rollout.cause
    assert scene.later(rollout).state == State.PROVEN
    assert rollout.outcomes.get(host__name="mgr-b").role_at_proof == "MASTER"
