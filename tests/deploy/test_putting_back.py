"""Put back: the current revision once more, whatever lies on the hosts, by a person or alone where that is enabled."""

import pytest

from audit.models import Event
from deploy import drifting, putting_back
from deploy.drift_models import Drift, Watch
from deploy.errors import (
    FabricAlarm,
    NothingToDo,
    NotWritable,
    ReasonNeeded,
    StaleObservation,
    SubnetBusy,
    SubnetFrozen,
)
from deploy.models import Observation, Rollout
from tests.deploy.conftest import OLGA, Scene, make_scene
from tests.deploy.fakes import failing, unreachable
from tests.deploy.watched import kinds, look

EDIT = b"# edited by hand\n"


@pytest.fixture
def watched(scene: Scene) -> Scene:
    """Looked at once, and with a look at the tables that is old by now."""
    scene.look()
    look(scene)
    scene.clock.forward(3600)
    return scene


def put_back(scene: Scene) -> Rollout:
    return putting_back.put_back(subnet=scene.subnet, actor=OLGA, reason="somebody edited it")


BAD = b"this is no partition file\n"
TABLES = [None, b"", BAD]


class TestByAPerson:
    @pytest.mark.parametrize("content", TABLES)
    @pytest.mark.parametrize("name", ["mgr-a", "mgr-b"])
    def test_whatever_lies_there_it_ends_proven(self, watched: Scene, name: str, content):
        before = watched.tables()
        watched.site.host(name).file = content
        if name == "mgr-a":
            watched.site.sweep(watched.site.hosts[0])
            assert watched.tables() != before
        look(watched)
        rollout = watched.run(put_back(watched))
        assert rollout.state == "PROVEN", rollout.cause
        assert watched.digests() == {watched.first.digest}
        assert {guid: set(table.values()) for guid, table in watched.tables().items()} == {
            guid: set(table.values()) for guid, table in before.items()
        }
        assert (rollout.revision, rollout.parent) == (watched.first, watched.first)
        assert watched.fence.current == watched.first
        assert rollout.before.why == "put-back"
        assert look(watched) == []

    def test_a_file_that_was_not_read_yet_changes_no_port(self, watched: Scene):
        watched.site.host("mgr-a").file = BAD
        rollout = watched.run(put_back(watched))
        assert rollout.state == "PROVEN"
        assert rollout.read_back["counts"]["unaffected_ports_changed"] == 0

    def test_a_bad_file_that_is_read_between_look_and_placing_is_put_back_all_the_same(self, watched: Scene):
        def sweep(host: str, verb: str, when: str) -> None:
            if (host, verb, when) == ("mgr-a", "place", "before"):
                watched.site.sweep(watched.site.hosts[0])
                for port in watched.site.ports.values():
                    port.slots.clear()  # and OpenSM does not remember where the keys stood

        watched.site.host("mgr-a").file = BAD
        watched.site.fail = sweep
        rollout = watched.run(put_back(watched))
        assert rollout.state == "PROVEN", rollout.cause

    def test_clicking_twice_is_one_rollout(self, watched: Scene):
        watched.site.host("mgr-b").file = BAD
        assert put_back(watched) == put_back(watched)
        assert Rollout.objects.count() == 1
        event = Event.objects.get(action="deploy:rollout:start")
        assert (event.after["put_back"], event.reason) == (True, "somebody edited it")

    def test_a_port_that_opensm_does_not_mend_ends_in_a_named_state(self, watched: Scene):
        watched.site.ports[watched.site.guids(3)[0]].pkeys[9] = 0x8ABC
        rollout = watched.run(put_back(watched))
        assert rollout.state == "STUCK"
        assert "OpenSM does not mend a table that was changed behind its back" in rollout.cause

    def test_a_standby_that_cannot_be_staged_refuses_it(self, watched: Scene):
        watched.site.host("mgr-a").file = BAD
        watched.site.fail = failing(lambda: unreachable("mgr-b"), verb="stage", host="mgr-b")
        rollout = watched.run(put_back(watched))
        assert rollout.state == "REFUSED"
        assert "mgr-b" in rollout.cause

    def test_without_that_standby_it_is_degraded_until_it_is_back(self, watched: Scene):
        watched.site.host("mgr-a").file = BAD
        watched.site.sweep(watched.site.hosts[0])
        watched.site.host("mgr-b").is_reachable = False
        rollout = putting_back.put_back(
            subnet=watched.subnet, actor=OLGA, reason="mgr-b is in the workshop", without=("mgr-b",)
        )
        watched.run(rollout)
        assert rollout.state == "DEGRADED", rollout.cause
        assert watched.site.host("mgr-a").digest == watched.first.digest
        assert "as Olga said (mgr-b is in the workshop)" in rollout.steps.get(text__contains="Goes on without").text
        assert Event.objects.get(action="deploy:rollout:start").after["without"] == ["mgr-b"]
        watched.site.host("mgr-b").is_reachable = True
        assert watched.later(rollout).state == "PROVEN", rollout.cause
        assert watched.digests() == {watched.first.digest}

    def test_without_needs_a_reason_and_a_host_that_exists_and_never_the_master(self, watched: Scene):
        with pytest.raises(ReasonNeeded, match="mgr-b"):
            putting_back.put_back(subnet=watched.subnet, actor=OLGA, without=("mgr-b",))
        with pytest.raises(NotWritable, match="no manager host mgr-z"):
            putting_back.put_back(subnet=watched.subnet, actor=OLGA, reason="why", without=("mgr-z",))
        watched.site.fail = failing(lambda: unreachable("mgr-a"), verb="stage", host="mgr-a")
        rollout = putting_back.put_back(subnet=watched.subnet, actor=OLGA, reason="why", without=("mgr-a", "mgr-b"))
        assert watched.run(rollout).state == "REFUSED"

    def test_tables_that_cannot_be_read_refuse_it(self, watched: Scene):
        watched.site.host("mgr-a").file = BAD
        watched.site.fail = failing(lambda: unreachable("mgr-a"), verb="read_tables")
        rollout = watched.run(put_back(watched))
        assert rollout.state == "REFUSED"
        assert "have to be read before anything is put back" in rollout.cause
        assert watched.site.host("mgr-a").file == BAD

    def test_a_worker_that_dies_is_followed_by_one_that_finishes(self, watched: Scene):
        watched.site.host("mgr-a").file = BAD
        watched.site.sweep(watched.site.hosts[0])
        watched.site.fail = failing(lambda: RuntimeError("killed"), verb="place", host="mgr-a", times=1)
        rollout = put_back(watched)
        with pytest.raises(RuntimeError):
            watched.run(rollout)
        watched.later(rollout)
        assert rollout.state == "PROVEN", rollout.cause


class TestItIsRefused:
    def test_while_another_rollout_holds_the_subnet(self, watched: Scene):
        watched.begin()
        with pytest.raises(SubnetBusy, match="Open its page"):
            put_back(watched)

    def test_while_frozen(self, watched: Scene):
        watched.subnet.frozen_at = watched.clock()
        watched.subnet.save()
        with pytest.raises(SubnetFrozen):
            put_back(watched)

    def test_while_a_rogue_is_at_work(self, watched: Scene):
        watched.site.start_rogue(watched.site.guids(4)[0])
        look(watched)
        with pytest.raises(FabricAlarm, match="Rogue SM"):
            put_back(watched)

    def test_before_any_table_was_read(self, scene: Scene):
        with pytest.raises(StaleObservation, match="managers page"):
            put_back(scene)

    def test_as_long_as_an_adopted_file_stands(self, db, clock):
        scene = make_scene(clock, by_hand=b"hand-written\n")
        scene.look()
        with pytest.raises(NothingToDo, match="adoption page"):
            put_back(scene)
        assert Observation.objects.count() == 1


class TestAlone:
    @pytest.fixture
    def lost(self, watched: Scene) -> Scene:
        watched.site.host("mgr-a").file = BAD
        watched.site.sweep(watched.site.hosts[0])
        return watched

    def enable(self, scene: Scene) -> None:
        drifting.set_restoring(subnet=scene.subnet, enabled=True, actor=OLGA, reason="nobody is here at night")

    def test_it_is_off_unless_somebody_decided_so(self, lost: Scene):
        look(lost)
        assert Rollout.objects.count() == 0
        with pytest.raises(ReasonNeeded):
            drifting.set_restoring(subnet=lost.subnet, enabled=True, actor=OLGA, reason=" ")

    def test_enabled_it_puts_back_as_fabricui_itself_and_once_an_hour(self, lost: Scene):
        self.enable(lost)
        look(lost)
        rollout = Rollout.objects.get()
        assert (rollout.started_by_key, putting_back.is_put_back(rollout)) == ("fabricui", True)
        lost.run(rollout)
        assert rollout.state == "PROVEN", rollout.cause
        assert look(lost) == []
        lost.site.host("mgr-a").file = BAD
        lost.site.sweep(lost.site.hosts[0])
        assert ("ISOLATION_LOST", "fabric") in kinds(look(lost))
        assert Rollout.objects.count() == 1
        look(lost, after_s=3600)
        assert Rollout.objects.count() == 2

    def test_not_when_the_masters_file_is_right(self, watched: Scene):
        self.enable(watched)
        for port in watched.site.ports.values():
            port.pkeys = {0: 0xFFFF}
        assert ("ISOLATION_LOST", "fabric") in kinds(look(watched))
        assert Rollout.objects.count() == 0

    def test_not_while_a_rogue_is_master(self, lost: Scene):
        self.enable(lost)
        lost.site.start_rogue(lost.site.guids(4)[0])
        look(lost)
        assert Rollout.objects.count() == 0

    def test_not_for_a_hand_edit_that_isolates_still(self, watched: Scene):
        self.enable(watched)
        watched.site.host("mgr-a").file += EDIT
        assert kinds(look(watched)) == [("FILE", "mgr-a")]
        assert Rollout.objects.count() == 0

    def test_not_on_a_frozen_subnet(self, lost: Scene):
        self.enable(lost)
        lost.subnet.frozen_at = lost.clock()
        lost.subnet.save()
        look(lost)
        assert Rollout.objects.count() == 0
        assert Watch.objects.get().restored_at is None

    def test_switching_it_is_told_once(self, watched: Scene):
        self.enable(watched)
        self.enable(watched)
        assert Event.objects.filter(action="deploy:drift:restoring").count() == 1
        drifting.set_restoring(subnet=watched.subnet, enabled=False, actor=OLGA, reason="")
        assert not Watch.objects.get().restores_alone


def test_an_adopted_difference_may_be_overwritten_by_the_next_rollout(watched: Scene):
    host = watched.site.host("mgr-a")
    host.file += EDIT
    look(watched)
    rollout = watched.run(watched.begin())
    assert rollout.state == "REFUSED"
    drifting.take_over(Drift.objects.get(kind="FILE"), now=watched.clock())
    rollout = watched.run(watched.start(rollout.revision))
    assert rollout.state == "PROVEN", rollout.cause
    host.file += b"# edited once more\n"
    watched.where = {1: watched.where[2], 2: watched.where[2], 3: watched.where[3]}
    look(watched)
    assert watched.run(watched.start(watched.propose())).state == "REFUSED"
