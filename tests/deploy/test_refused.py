"""What ends a rollout before anything is placed, each with a sentence that says what, where and how to mend it."""

import pytest
from django.utils import timezone

from audit.models import Event
from deploy import queries
from deploy.models import Rollout
from inventory.models import ManagerHost, Subnet
from remote.errors import (
    AccessRefused,
    CallTimedOut,
    FileNotWritable,
    FileUnreadable,
    HostKeyMismatch,
    WrapperMismatch,
)
from tests.deploy.conftest import INFERENCE, Scene
from tests.deploy.fakes import failing, unreachable
from tests.qualified import qualify

State = Rollout.State


def refused(scene: Scene, rollout: Rollout) -> str:
    """Run, and check all that REFUSED promises; return the cause."""
    files, tables = scene.digests(), scene.tables()
    scene.run(rollout)
    assert rollout.state == State.REFUSED
    assert scene.digests() == files
    assert scene.tables() == tables
    assert not [note for note in scene.site.notes if note[0] == "placed"]
    assert "reload" not in {verb for _, verb in scene.site.calls}
    assert queries.running_rollout(scene.subnet) is None
    assert queries.current_revision(scene.subnet) == scene.first
    last = Event.objects.filter(subject_key=rollout.public_id).order_by("-number").first()
    assert last is not None
    assert (last.action, last.after["cause"]) == ("deploy:rollout:refused", rollout.cause)
    return rollout.cause


@pytest.mark.parametrize("verb", ["identify", "sm_state", "read", "stage"])
@pytest.mark.parametrize("host", ["mgr-a", "mgr-b"])
def test_a_host_that_does_not_answer_stops_it(scene: Scene, verb: str, host: str):
    rollout = scene.begin()
    scene.site.fail = failing(lambda: unreachable(host), verb=verb, host=host)
    assert f"Manager host {host}: no connection" in refused(scene, rollout)


@pytest.mark.parametrize(
    "error",
    [
        HostKeyMismatch("10.0.0.2 answers with another host key than the pinned one. Look at that machine."),
        AccessRefused("10.0.0.2 refuses our key. Run install there again."),
        WrapperMismatch("The wrapper is not the one pinned at enrolment. Enrol the host anew."),
        CallTimedOut("identify was not over in 35 s."),
    ],
)
def test_a_host_that_cannot_be_trusted_is_asked_nothing_more(scene: Scene, error: Exception):
    rollout = scene.begin()
    scene.site.calls.clear()
    scene.site.fail = failing(lambda: error, verb="identify", host="mgr-b")
    assert f"Manager host mgr-b: {error}" in refused(scene, rollout)
    assert [verb for host, verb in scene.site.calls if host == "mgr-b"] == ["identify"]


def test_a_standby_whose_disk_is_full_stops_it(scene: Scene):
    rollout = scene.begin()
    scene.site.fail = failing(
        lambda: FileNotWritable(73, "fabricui cannot write in /etc/opensm (0 KiB free)."), verb="stage", host="mgr-b"
    )
    assert "0 KiB free" in refused(scene, rollout)


def test_a_file_that_cannot_be_read_stops_it(scene: Scene):
    rollout = scene.begin()
    scene.site.fail = failing(
        lambda: FileUnreadable(67, "/etc/opensm/partitions.conf cannot be read by fabricui."), verb="read"
    )
    assert "cannot be read by fabricui" in refused(scene, rollout)


def test_a_missing_file_stops_it(scene: Scene):
    rollout = scene.begin()
    scene.site.host("mgr-b").file = None
    assert "does not exist" in refused(scene, rollout)


def test_carriage_returns_on_the_master_are_named(scene: Scene):
    rollout = scene.begin()
    master = scene.site.host("mgr-a")
    master.file = (master.file or b"").replace(b"\n", b"\r\n")
    cause = refused(scene, rollout)
    assert "mgr-a" in cause
    assert "carriage return" in cause
    assert "by hand" in cause
    assert "put the file of revision 1 back" in cause


def test_an_older_revision_on_the_standby_is_named_by_its_number(scene: Scene):
    second = scene.run(scene.begin())
    assert second.state == State.PROVEN
    rollout = scene.start(scene.propose(s2=INFERENCE))
    scene.site.host("mgr-b").file = bytes(scene.first.data)
    scene.run(rollout)
    assert rollout.state == State.REFUSED
    assert "Manager host mgr-b: its partition file is revision 1, and revision 2 is current." in rollout.cause


def test_an_opensm_that_does_not_run_stops_it(scene: Scene):
    rollout = scene.begin()
    scene.site.host("mgr-b").stop_opensm()
    assert "Manager host mgr-b: No OpenSM runs" in refused(scene, rollout)


def test_an_opensm_with_another_file_stops_it(scene: Scene):
    rollout = scene.begin()
    scene.site.host("mgr-a").process_file = "/tmp/other.conf"
    cause = refused(scene, rollout)
    assert "-P /tmp/other.conf" in cause
    assert "Manager host mgr-a" in cause


def test_what_the_host_itself_finds_wrong_stops_it(scene: Scene):
    rollout = scene.begin()
    scene.site.host("mgr-b").problems = ("Manager host mgr-b: OpenSM (PID 7, port 0x1) shares the dump folder.",)
    assert refused(scene, rollout) == "Manager host mgr-b: OpenSM (PID 7, port 0x1) shares the dump folder."


def test_an_opensm_on_another_port_than_registered_stops_it(scene: Scene):
    rollout = scene.begin()
    ManagerHost.objects.filter(name="mgr-b").update(port_guid=scene.site.guids(4)[0])
    qualify(scene.subnet)
    cause = refused(scene, rollout)
    assert f"bound to port {scene.site.host('mgr-b').port.guid}" in cause


def test_two_masters_stop_it(scene: Scene):
    rollout = scene.begin()
    scene.site.host("mgr-b").role = "MASTER"
    cause = refused(scene, rollout)
    for host in scene.site.hosts:
        assert f"{host.name} (port {host.port.guid} at leaf 0x0002c90300aa0001 port {host.port.leaf_port})" in cause
    assert "both say they are master" in cause


def test_no_master_stops_it(scene: Scene):
    rollout = scene.begin()
    scene.site.host("mgr-a").role = "STANDBY"
    assert "No registered SM is master" in refused(scene, rollout)


def test_a_standby_that_is_not_ready_stops_it(scene: Scene):
    rollout = scene.begin()
    scene.site.host("mgr-b").role = "DISCOVERING"
    assert "its SM is DISCOVERING" in refused(scene, rollout)


def test_a_third_sm_that_is_master_is_named_with_its_leaf_and_port(scene: Scene):
    rollout = scene.begin()
    guid = scene.site.guids(4)[0]
    scene.site.start_rogue(guid)
    cause = refused(scene, rollout)
    assert f"master at port {guid} at leaf 0x0002c90300aa0001 port {scene.site.ports[guid].leaf_port}" in cause
    assert "restoring files does not help" in cause


def test_a_third_sm_in_the_tables_before_stops_it(scene: Scene):
    revision = scene.propose(s1=INFERENCE)
    before = scene.look()
    row = {**before.census[1], "guid": scene.site.guids(4)[0], "registered": False, "priority": 3}
    before.census = [*before.census, row]
    before.save()
    cause = refused(scene, scene.start(revision, before))
    assert f"Port {row['guid']} at leaf {row['leaf']} port {row['leaf_port']} runs a subnet manager" in cause


def test_a_manager_host_enrolled_after_the_plan_stops_it(scene: Scene):
    rollout = scene.begin()
    host = scene.site.host("mgr-b")
    ManagerHost.objects.filter(name="mgr-b").update(port_guid=scene.site.guids(4)[1])
    host.port = scene.site.ports[scene.site.guids(4)[1]]
    qualify(scene.subnet)
    assert "is no full member of Default in this revision" in refused(scene, rollout)


def test_a_freeze_that_came_while_it_was_queued_stops_it(scene: Scene):
    rollout = scene.begin()
    Subnet.objects.update(frozen_at=timezone.now(), frozen_reason="maintenance of the leaves")
    scene.site.calls.clear()
    assert "frozen (maintenance of the leaves)" in refused(scene, rollout)
    assert not scene.site.calls  # no host was even asked


def test_a_subnet_that_left_write_mode_while_it_was_queued_stops_it(scene: Scene):
    rollout = scene.begin()
    Subnet.objects.update(mode=Subnet.Mode.PROPOSE)
    assert "is in mode propose" in refused(scene, rollout)


def test_after_the_cause_is_mended_the_same_revision_goes_out(scene: Scene):
    rollout = scene.begin()
    scene.site.fail = failing(unreachable, verb="stage", host="mgr-b")
    refused(scene, rollout)
    scene.site.fail = lambda *_: None
    assert scene.run(scene.start(rollout.revision)).state == State.PROVEN


def test_a_subnet_with_one_manager_host_has_no_standby(scene: Scene):
    rollout = scene.begin()
    rollout.outcomes.filter(host__name="mgr-b").delete()
    ManagerHost.objects.filter(name="mgr-b").delete()
    qualify(scene.subnet)
    before = rollout.before
    before.census = before.census[:1]
    before.save()
    del scene.site.hosts[1]
    assert "No registered SM is standby" in refused(scene, rollout)
