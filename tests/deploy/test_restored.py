"""Contrary evidence: the parent goes back, and what survives that needs a person."""

import pytest

from deploy import queries
from deploy.models import Rollout
from remote.errors import FileNotWritable
from subnet.guid import GUID
from tests.deploy.conftest import Scene
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
    assert ("It had been placed on mgr-b already." in rollout.cause) == (host == "mgr-a")
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
    assert rollout.cause.startswith(rollout.contrary)
    assert guid not in rollout.cause.removeprefix(rollout.contrary)  # the restore found the same: told once
    assert "That is still so." in rollout.cause
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
