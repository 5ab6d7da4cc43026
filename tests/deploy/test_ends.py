"""Every other end of a rollout: RESTORED, STUCK, UNPROVEN, DEGRADED, and the way on from there."""

import pytest

from deploy import operations, queries
from deploy.errors import ReasonNeeded, SubnetBusy, TooLate
from deploy.models import Rollout
from remote.errors import BarrierTimedOut, FileNotWritable, OpenSMDiffers, RemoteError
from subnet.guid import GUID
from tests.deploy.conftest import INFERENCE, OLGA, TRAINING, Scene
from tests.deploy.fakes import failing, unreachable

State = Rollout.State


def spoil(scene: Scene, guid: GUID, key: int = 0x9999) -> None:
    """Write a key to a port behind OpenSM's back: after the sweep, before the reading."""

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("read_tables", "before"):
            scene.site.ports[guid].pkeys[7] = key

    scene.site.fail = fail


# --- placing fails --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["mgr-a", "mgr-b"])
def test_when_one_host_cannot_be_placed_the_others_go_back(scene: Scene, host: str):
    rollout = scene.begin()
    before = scene.tables()
    scene.site.fail = failing(
        lambda: FileNotWritable(73, "fabricui cannot write in /etc/opensm (0 KiB free)."),
        verb="place",
        host=host,
        times=1,
    )
    scene.run(rollout)
    assert rollout.state == State.RESTORED
    assert scene.digests() == {scene.first.digest}
    assert scene.tables() == before
    assert f"Manager host {host}: fabricui cannot write" in rollout.cause
    assert "The files of revision 1 are back" in rollout.cause
    assert queries.current_revision(scene.subnet) == scene.first
    assert queries.running_rollout(scene.subnet) is None


def test_a_master_lost_while_placing_is_restored_once_it_is_back(scene: Scene):
    rollout = scene.begin()
    scene.site.fail = failing(lambda: unreachable("mgr-a"), verb="place", host="mgr-a", when="after", times=1)
    scene.site.host("mgr-a").is_reachable = True
    scene.run(rollout)
    assert rollout.state == State.RESTORED
    assert scene.digests() == {scene.first.digest}


def test_a_host_that_stays_away_while_restoring_needs_a_person(scene: Scene):
    rollout = scene.begin()
    master = scene.site.host("mgr-a")

    def fail(host: str, verb: str, when: str) -> None:
        if (host, verb, when) == ("mgr-a", "place", "before"):
            master.is_reachable = False
            raise unreachable("mgr-a")

    scene.site.fail = fail
    scene.run(rollout)
    assert rollout.state == State.RESTORING
    assert "Not restored yet" in rollout.cause
    assert rollout.next_try_at is not None
    assert scene.site.host("mgr-b").digest == scene.first.digest  # it went back at once
    for _ in range(10):
        scene.later(rollout)
    assert rollout.state == State.STUCK
    assert "Put the file of revision 1" in rollout.cause
    assert rollout.cause.count("Manager host mgr-a") >= 1


def test_restoring_goes_on_when_the_host_is_back(scene: Scene):
    rollout = scene.begin()
    master = scene.site.host("mgr-a")

    def fail(host: str, verb: str, when: str) -> None:
        if (host, verb, when) == ("mgr-a", "place", "before"):
            master.is_reachable = False
            raise unreachable("mgr-a")

    scene.site.fail = fail
    scene.run(rollout)
    scene.site.fail = lambda *_: None
    master.is_reachable = True
    assert scene.later(rollout).state == State.RESTORED


# --- the fabric says otherwise --------------------------------------------------------------------------------------


def test_a_foreign_key_on_a_moved_port_is_restored_from(scene: Scene):
    rollout = scene.begin()
    guid = scene.site.guids(1)[0]
    spoil(scene, guid)
    scene.run(rollout)
    # The restore writes that port's table anew, so nothing is left of it... unless it is spoiled again.
    assert rollout.state == State.STUCK
    assert guid in rollout.cause
    assert "0x9999" in rollout.cause
    assert "at index 7" in rollout.cause
    assert "let go of this rollout" in rollout.cause
    assert scene.digests() == {scene.first.digest}


def test_a_foreign_key_that_the_restore_removes_ends_restored(scene: Scene):
    rollout = scene.begin()
    guid = scene.site.guids(1)[0]
    before = scene.tables()

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("read_tables", "before") and rollout.revision.digest in scene.digests():
            scene.site.ports[guid].pkeys[7] = 0x9999

    scene.site.fail = fail
    scene.run(rollout)
    assert rollout.state == State.RESTORED
    assert guid in rollout.contrary
    after = scene.tables()
    assert {g: set(keys.values()) for g, keys in after.items()} == {g: set(k.values()) for g, k in before.items()}


def test_a_key_written_to_another_port_survives_the_restore_and_needs_a_person(scene: Scene):
    rollout = scene.begin()
    guid = scene.site.guids(4)[0]
    spoil(scene, guid)
    scene.run(rollout)
    assert rollout.state == State.STUCK
    assert f"Port {guid}" in rollout.cause
    assert rollout.read_back["counts"]["unaffected_ports_changed"] == 1
    assert queries.running_rollout(scene.subnet) == rollout


def test_a_moved_port_that_refuses_its_table_is_restored_from(scene: Scene):
    rollout = scene.begin()
    for guid in scene.site.guids(1):
        scene.site.ports[guid].refuses_sets = True
    scene.run(rollout)
    assert rollout.state == State.RESTORED
    assert "does not hold 0xac42" in rollout.contrary


def test_a_file_broken_by_hand_on_the_master_after_placing_is_restored_from(scene: Scene):
    rollout = scene.begin()
    master = scene.site.host("mgr-a")
    done = []

    def fail(host: str, verb: str, when: str) -> None:
        if (host, verb, when) == ("mgr-a", "reload", "before") and not done:
            done.append(master)
            master.file = b"broken\r\n"

    scene.site.fail = fail
    before = scene.tables()
    scene.run(rollout)
    assert rollout.state == State.RESTORED
    assert "wrote over its partition file" in rollout.contrary
    assert {g: set(k.values()) for g, k in scene.tables().items()} == {g: set(k.values()) for g, k in before.items()}


def test_a_partition_error_in_the_log_is_restored_from(scene: Scene):
    rollout = scene.begin()

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("log_since", "before") and rollout.revision.digest in scene.digests():
            scene.site.host(host).log += b"-> osm_prtn_make_partitions: Partition configuration in error; retrying\n"

    scene.site.fail = fail
    scene.run(rollout)
    assert rollout.state == State.RESTORED
    assert "refused its partition file" in rollout.contrary


def test_the_restore_goes_to_the_master_first_under_a_higher_generation(scene: Scene):
    rollout = scene.begin()
    generation = rollout.generation
    for guid in scene.site.guids(1):
        scene.site.ports[guid].refuses_sets = True
    scene.run(rollout)
    places = [host for host, verb in scene.site.calls if verb == "place"]
    assert places == ["mgr-b", "mgr-a", "mgr-a", "mgr-b"]
    assert generation is not None
    assert rollout.generation == generation + 1 == scene.fence.generation
    assert {host.sidecar for host in scene.site.hosts} == {(generation + 1, scene.first.digest)}


# --- another SM -----------------------------------------------------------------------------------------------------


def test_a_rogue_master_while_reading_needs_a_person_and_restores_nothing(scene: Scene):
    rollout = scene.begin()
    guid = scene.site.guids(4)[1]

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("barrier", "after") and scene.site.rogue is None:
            scene.site.start_rogue(guid)

    scene.site.fail = fail
    scene.run(rollout)
    assert rollout.state == State.STUCK
    at = f"leaf 0x0002c90300aa0001 port {scene.site.ports[guid].leaf_port}"
    assert guid in rollout.cause
    assert at in rollout.cause
    assert scene.digests() == {rollout.revision.digest}


def test_a_rogue_that_comes_before_the_barrier_is_found_as_well(scene: Scene):
    rollout = scene.begin()
    guid = scene.site.guids(4)[1]

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("reload", "after") and scene.site.rogue is None:
            scene.site.start_rogue(guid)

    scene.site.fail = fail
    scene.run(rollout)
    assert rollout.state == State.STUCK
    assert guid in rollout.cause
    assert "at leaf 0x0002c90300aa0001" in rollout.cause


def test_after_a_person_let_go_of_a_stuck_one_the_revision_goes_out(scene: Scene):
    rollout = scene.begin()
    guid = scene.site.guids(4)[1]
    scene.site.fail = failing(lambda: OpenSMDiffers(82, "x"), verb="nothing")

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("barrier", "after") and scene.site.rogue is None:
            scene.site.start_rogue(guid)

    scene.site.fail = fail
    scene.run(rollout)
    with pytest.raises(SubnetBusy, match="needs a person"):
        scene.start(scene.propose(s2=INFERENCE))
    with pytest.raises(ReasonNeeded):
        operations.release_stuck(rollout=rollout, actor=OLGA, reason=" ")
    scene.site.fail = lambda *_: None
    scene.site.rogue = None
    scene.site.ports[guid].is_sm = False
    scene.site.takeover()
    operations.release_stuck(rollout=rollout, actor=OLGA, reason="Stopped OpenSM on srv-004.")
    with pytest.raises(TooLate):
        operations.release_stuck(rollout=rollout, actor=OLGA, reason="twice")
    again = scene.run(scene.start(rollout.revision))
    assert again.state == State.PROVEN
    assert queries.current_revision(scene.subnet) == rollout.revision


def test_after_a_stuck_one_another_revision_may_follow_too(scene: Scene):
    rollout = scene.begin(s1=INFERENCE)
    guid = scene.site.guids(4)[1]

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("barrier", "after") and scene.site.rogue is None:
            scene.site.start_rogue(guid)

    scene.site.fail = fail
    scene.run(rollout)
    scene.site.fail = lambda *_: None
    scene.site.rogue = None
    scene.site.ports[guid].is_sm = False
    scene.site.takeover()
    operations.release_stuck(rollout=rollout, actor=OLGA, reason="Stopped OpenSM on srv-004.")
    other = scene.run(scene.start(scene.propose(s1=TRAINING, s2=INFERENCE)))
    assert (other.state, other.cause) == (State.PROVEN, "")


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
    reloads = [verb for _, verb in scene.site.calls].count("reload")
    scene.later(rollout)
    assert rollout.state == State.DEGRADED
    assert [verb for _, verb in scene.site.calls].count("reload") == reloads  # the fabric is left in peace
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
    assert "Start it" in rollout.cause
    scene.site.fail = lambda *_: None
    standby.start_opensm()
    assert scene.later(rollout).state == State.PROVEN
