"""The watch between rollouts on a fake site: what it finds, when it is told and when over, to whom it yields."""

import pytest
from django.db import transaction

from audit import follow
from audit.models import Event
from deploy import drifting, operations, tasks, watching
from deploy.drift_models import Drift
from deploy.errors import FabricAlarm
from deploy.models import Fence
from tests.deploy.conftest import INFERENCE, OLGA, Scene
from tests.deploy.fakes import LEAF, failing, unreachable
from tests.deploy.watched import kinds, look, row

EDIT = b"# edited by hand\nbyhand=0x0abc, defmember=full :\n ALL;\n"


def events(action: str) -> int:
    return Event.objects.filter(action=f"deploy:drift:{action}").count()


@pytest.fixture
def watched(scene: Scene) -> Scene:
    """A scene on which nothing differs, looked at once."""
    assert look(scene) == []
    return scene


class TestNothingDiffers:
    def test_one_look_covers_a_small_fabric_and_finds_nothing(self, watched: Scene):
        seen = row(watched)
        assert (seen.failure, seen.ports, seen.full_wanted) == ("", 10, "")
        assert seen.covered_at is not None
        assert [manager["revision"] for manager in seen.managers] == [1, 1]
        assert [sm["registered"] for sm in seen.census] == [True, True]
        assert {check["answer"] for check in seen.posture} == {"yes"}
        assert not Drift.objects.exists()
        assert events("open") == 0

    def test_it_looks_again_only_when_it_is_time(self, watched: Scene):
        before = list(watched.site.calls)
        assert look(watched, after_s=5) == []
        assert watched.site.calls == before
        look(watched)
        assert watched.site.calls != before

    def test_two_looks_at_the_same_moment_are_one(self, watched: Scene):
        watched.clock.forward(31)
        first = watching.take_up(watched.subnet, now=watched.clock())
        assert first is not None
        assert watching.take_up(watched.subnet, now=watched.clock()) is None
        watching.let_go(first, next_at=watched.clock())
        assert watching.take_up(watched.subnet, now=watched.clock()) is not None

    def test_the_tick_hands_out_each_look_once_and_again_when_it_was_lost(self, scene: Scene):
        assert watching.due(now=scene.clock()) == [scene.subnet.pk]
        assert watching.due(now=scene.clock()) == []
        scene.clock.forward(31)
        assert watching.due(now=scene.clock()) == [scene.subnet.pk]


class TestFiles:
    @pytest.mark.parametrize("name", ["mgr-a", "mgr-b"])
    def test_a_hand_edit_is_told_once_with_what_probably_did_it(self, watched: Scene, name: str):
        host = watched.site.host(name)
        host.file = host.file + EDIT
        (found,) = look(watched)
        assert (found.kind, found.key, found.facts["digest"]) == ("FILE", name, host.digest)
        assert "is no revision of FabricUI; revision 1 is current" in found.details[0]
        assert ("heavy sweep" if name == "mgr-a" else "takes over") in found.details[1]
        assert "edited revision 1's file by hand" in found.cause
        assert kinds(look(watched)) == [("FILE", name)]
        assert events("open") == 1

    @pytest.mark.parametrize(
        ("content", "cause"),
        [
            (None, "removed it"),
            (b"", "cut to nothing"),
            (b"x\r\n", "Windows"),
            (b"A=0x1: ALL;\n", "another file"),
        ],
    )
    def test_each_kind_of_accident_has_its_probable_cause(self, watched: Scene, content, cause: str):
        watched.site.host("mgr-b").file = content
        (found,) = look(watched)
        assert cause in found.cause

    def test_an_older_revision_is_named_and_hosts_with_the_same_bytes_are_counted(self, watched: Scene):
        old = watched.site.host("mgr-b").file
        watched.run(watched.begin())
        look(watched)
        for host in watched.site.hosts:
            host.file = old
        first, second = look(watched)
        assert "is revision 1; revision 2 is current" in first.details[0]
        assert "older file was copied back" in first.cause
        assert "2 hosts hold the same bytes" in second.cause

    def test_it_is_over_after_two_looks_and_told_once(self, watched: Scene):
        host = watched.site.host("mgr-b")
        good, host.file = host.file, host.file + EDIT
        look(watched)
        host.file = good
        assert kinds(look(watched)) == [("FILE", "mgr-b")]
        assert look(watched) == []
        assert (events("open"), events("close")) == (1, 1)

    def test_what_comes_and_goes_between_two_looks_stays_one_row(self, watched: Scene):
        host = watched.site.host("mgr-b")
        good = host.file
        for _ in range(4):
            host.file = good + EDIT
            look(watched)
            host.file = good
            look(watched)
        assert (events("open"), events("close"), Drift.objects.count()) == (1, 0, 1)

    def test_a_host_that_does_not_answer_ends_nothing(self, watched: Scene):
        host = watched.site.host("mgr-b")
        host.file = host.file + EDIT
        look(watched)
        host.is_reachable = False
        for _ in range(4):
            assert ("FILE", "mgr-b") in kinds(look(watched))
        assert "no connection could be made" in row(watched).failure


class TestSubnetManagers:
    def test_a_rogue_master_is_told_at_once_with_its_place_and_stops_rollouts(self, watched: Scene):
        guid = watched.site.guids(4)[0]
        planned, before = watched.propose(s1=INFERENCE), watched.look()
        watched.site.start_rogue(guid)
        found = {drift.kind: drift for drift in look(watched)}
        rogue = found["ROGUE_SM"]
        assert rogue.key == guid
        assert f"Port {guid} at leaf {LEAF} port {watched.site.ports[guid].leaf_port} runs" in rogue.details[0]
        assert "PORTS=ALL" in rogue.cause
        assert found["ISOLATION_LOST"].facts["rogue"] == guid
        with pytest.raises(FabricAlarm, match="Rogue SM"):
            operations.start(revision=planned, observation=before, actor=OLGA)

    def test_an_unregistered_standby_is_a_rogue_too(self, watched: Scene):
        guid = watched.site.guids(4)[0]
        watched.site.start_rogue(guid)
        watched.site.rogue_state = "STANDBY"
        watched.site.host("mgr-a").role = "MASTER"
        found = look(watched)
        assert ("ROGUE_SM", guid) in kinds(found)

    def test_a_queued_rollout_is_refused_with_the_cause(self, watched: Scene):
        rollout = watched.begin()  # and a look that had begun before sees the rogue
        Drift.objects.create(
            subnet=watched.subnet, kind="ROGUE_SM", key="0x1", details=["Port 0x1 runs a subnet manager."],
            first_seen_at=watched.clock(), opened_at=watched.clock(), last_seen_at=watched.clock(),
        )  # fmt: skip
        watched.run(rollout)
        assert rollout.state == "REFUSED"
        assert "Port 0x1 runs a subnet manager." in rollout.cause
        assert watched.digests() == {watched.first.digest}

    def test_it_is_over_when_it_is_gone_and_all_tables_are_read(self, watched: Scene):
        watched.site.start_rogue(watched.site.guids(4)[0])
        look(watched)
        watched.site.rogue = None
        watched.site.hosts[0].role = "MASTER"
        watched.site.sweep(watched.site.hosts[0], is_new=True)
        for _ in range(3):
            found = look(watched)
        assert found == []
        assert row(watched).full_at is not None

    def test_no_standby_is_told_when_it_is_seen_twice(self, watched: Scene):
        watched.site.host("mgr-b").stop_opensm()
        assert look(watched) == []
        found = kinds(look(watched))
        assert ("ROLES", "no standby") in found
        assert ("HOST", "mgr-b") in found

    def test_a_look_comes_sooner_when_it_decides_something(self, watched: Scene):
        watched.site.host("mgr-b").stop_opensm()
        look(watched)
        assert look(watched, after_s=11) != []

    def test_options_that_differ_are_named(self, watched: Scene):
        watched.site.host("mgr-b").told["keep_pkey_indexes"] = "FALSE"
        look(watched)
        (found,) = look(watched)
        assert (found.kind, found.key) == ("OPTION", "keep_pkey_indexes")
        assert "is FALSE on mgr-b and must be TRUE" in found.details[0]


class TestTakeover:
    def test_it_is_proven_again_by_itself(self, watched: Scene):
        watched.site.host("mgr-a").stop_opensm()
        watched.site.takeover()
        look(watched)
        takeover = Drift.objects.get(kind="TAKEOVER")
        assert "mgr-b is master now, and mgr-a was" in takeover.details[0]
        assert "OpenSM on mgr-a stopped or was killed" in takeover.cause
        assert takeover.closed_at is not None
        assert takeover.closing.startswith("Proven again: mgr-b is the only master")
        assert (events("open"), events("close")) == (1, 1)

    def test_a_stale_standby_leaves_it_open_and_says_why(self, watched: Scene):
        stale = watched.site.host("mgr-b").file
        watched.run(watched.begin())
        look(watched)
        watched.site.host("mgr-b").file = stale
        watched.site.host("mgr-a").stop_opensm()
        watched.site.takeover()
        found = {drift.kind: drift for drift in look(watched)}
        assert {"TAKEOVER", "FILE", "TABLE"} <= found.keys()
        assert any("the file on mgr-b is not revision 2" in text for text in found["TAKEOVER"].details)
        assert "4 ports" not in found["TABLE"].details[0]
        assert "other P_Keys than the current revision" in found["TABLE"].details[0]

    def test_a_former_master_that_does_not_answer_is_owed(self, watched: Scene):
        watched.site.host("mgr-a").stop_opensm()
        watched.site.host("mgr-a").is_reachable = False
        watched.site.takeover()
        (found,) = look(watched)
        assert found.kind == "TAKEOVER"
        assert any("the file on mgr-a could not be read" in text for text in found.details)
        watched.site.host("mgr-a").is_reachable = True
        assert ("TAKEOVER", "master") not in kinds(look(watched))


class TestTables:
    def test_a_port_written_behind_opensms_back_is_named_and_let_go_when_it_is_right(self, watched: Scene):
        port = watched.site.ports[watched.site.guids(3)[0]]
        port.pkeys[9] = 0x8ABC
        (found,) = look(watched)
        assert (found.kind, found.key) == ("TABLE", "fabric")
        assert f"Port {port.guid}" in found.details[1]
        assert "0x8abc at index 9" in found.details[1]
        assert "behind OpenSM's back" in found.cause
        del port.pkeys[9]
        assert look(watched) == []
        assert (events("open"), events("close")) == (1, 1)

    def test_a_port_that_no_sm_has_armed_says_nothing(self, watched: Scene):
        port = watched.site.ports[watched.site.guids(3)[0]]
        port.pkeys, port.state = {0: 0xFFFF}, "INIT"
        assert look(watched) == []

    def test_what_only_one_of_two_readings_says_is_no_drift(self, watched: Scene):
        port = watched.site.ports[watched.site.guids(3)[0]]
        port.pkeys[9] = 0x8ABC
        scans = []

        def once(host: str, verb: str, when: str) -> None:
            if verb == "scan":
                scans.append(host)
                if len(scans) == 2:
                    port.pkeys.pop(9, None)

        watched.site.fail = once
        assert look(watched) == []
        assert len(scans) == 2

    def test_a_large_fabric_is_read_part_by_part_and_the_coverage_ages(self, scene: Scene, settings):
        settings.WATCH_PORTS = 4
        look(scene)
        assert (row(scene).covered_at, row(scene).scan_after) != (None, "")
        began = row(scene).round_began_at
        look(scene)
        look(scene)
        assert row(scene).covered_at == began
        assert row(scene).scan_after == ""

    def test_a_changed_file_has_all_tables_read_at_once(self, watched: Scene, settings):
        settings.WATCH_PORTS = 4
        watched.site.host("mgr-a").file += EDIT
        watched.site.calls.clear()
        look(watched)
        assert watched.site.calls.count(("mgr-a", "scan")) == 3
        assert row(watched).full_at is not None

    def test_a_foreign_sweep_has_all_tables_read_at_once_and_our_own_does_not(self, watched: Scene, settings):
        settings.WATCH_PORTS = 4
        watched.run(watched.begin())
        watched.site.calls.clear()
        look(watched)
        assert watched.site.calls.count(("mgr-a", "scan")) == 1
        watched.site.sweep(watched.site.hosts[0])
        watched.site.calls.clear()
        look(watched)
        assert watched.site.calls.count(("mgr-a", "scan")) == 3

    def test_a_part_that_a_sweep_overtakes_is_read_again_and_then_put_off(self, watched: Scene):
        watched.site.hosts[0].moved = 2
        look(watched)
        assert row(watched).failure == ""
        watched.site.hosts[0].moved = 3
        look(watched)
        assert "Tables were not read: Manager host mgr-a: The fabric was swept again" in row(watched).failure


class TestIsolationLost:
    @pytest.fixture
    def lost(self, watched: Scene) -> Scene:
        """Somebody puts a bad file on the master and has OpenSM read it."""
        watched.site.host("mgr-a").file = b"no partition file at all"
        watched.site.sweep(watched.site.hosts[0])
        return watched

    def test_it_alarms_at_once_and_names_the_cause(self, lost: Scene):
        found = {drift.kind: drift for drift in look(lost)}
        alarm = found["ISOLATION_LOST"]
        assert "are full members of Default and hold no other key" in alarm.details[0]
        assert "OpenSM on mgr-a rejects its partition file" in alarm.cause
        assert found.keys() == {"ISOLATION_LOST", "FILE"}
        with pytest.raises(FabricAlarm, match="Isolation lost"):
            lost.begin()

    def test_ports_that_no_sm_has_armed_yet_do_not_alarm(self, watched: Scene):
        for port in watched.site.ports.values():
            port.pkeys, port.state = {0: 0xFFFF}, "INIT"
        assert look(watched) == []

    def test_a_few_ports_of_a_large_fabric_say_nothing_of_it(self, watched: Scene, settings):
        settings.WATCH_PORTS = 1
        watched.site.ports[watched.site.guids(1)[0]].pkeys = {0: 0xFFFF}
        found = [drift.kind for _ in range(11) for drift in look(watched)]
        assert "TABLE" in found
        assert "ISOLATION_LOST" not in found


class TestItYields:
    def test_nothing_is_asked_while_a_rollout_runs(self, watched: Scene):
        watched.begin()
        watched.site.calls.clear()
        look(watched)
        assert watched.site.calls == []

    def test_what_was_seen_while_one_began_is_dropped(self, watched: Scene):
        watched.site.host("mgr-b").file += EDIT
        started = []

        def begin(host: str, verb: str, when: str) -> None:
            if verb == "census" and not started:
                started.append(True)
                Fence.objects.update(generation=99)

        watched.site.fail = begin
        assert look(watched) == []
        assert kinds(look(watched)) == [("FILE", "mgr-b")]

    def test_the_file_of_a_rollout_that_waits_is_no_drift(self, watched: Scene):
        rollout = watched.begin()
        watched.site.fail = failing(lambda: unreachable("mgr-a"), verb="barrier")
        watched.run(rollout)
        assert rollout.state == "UNPROVEN"
        watched.site.fail = lambda host, verb, when: None
        assert look(watched) == []

    def test_a_part_is_not_begun_once_a_rollout_waits(self, watched: Scene, settings):
        settings.WATCH_PORTS = 2
        watched.site.host("mgr-b").file += EDIT

        def begin(host: str, verb: str, when: str) -> None:
            if verb == "scan":
                operations.request_observation(subnet=watched.subnet, why="plan")

        watched.site.fail = begin
        watched.site.calls.clear()
        look(watched)
        assert watched.site.calls.count(("mgr-a", "scan")) == 1
        assert row(watched).full_wanted == "the partition file on mgr-b changed"


def test_alarms_come_first(watched: Scene):
    watched.site.host("mgr-b").file += EDIT
    look(watched)
    watched.site.start_rogue(watched.site.guids(4)[0])
    assert look(watched)[0].is_alarm
    assert [drift.kind for drift in drifting.alarms(watched.subnet.pk)] == ["ROGUE_SM", "ISOLATION_LOST"]


def test_beat_and_the_queue_observe_do_it_by_themselves(scene: Scene, nudges: list[str]):
    from fabricui.celery import app

    beat = {entry["task"]: entry["schedule"] for entry in app.conf.beat_schedule.values()}
    assert beat["deploy.tasks.watch_tick"] <= 10
    assert app.conf.task_routes["deploy.tasks.watch"] == {"queue": "observe"}
    tasks.watch_tick()
    assert nudges.count("deploy.tasks.watch") == 1
    tasks.watch_tick()
    assert nudges.count("deploy.tasks.watch") == 1


def test_an_ended_rollout_makes_the_watch_due(watched: Scene):
    watched.run(watched.begin())
    with transaction.atomic():
        follow.tick()
    assert row(watched).next_at <= watched.clock()
