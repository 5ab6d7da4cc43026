"""A qualification from request to expiry, over fake hosts: foreign ones too, which no lab can run."""

from dataclasses import replace

import pytest

from audit.models import Event
from audit.values import Actor, ActorKind
from deploy import qualification, qualifying, queries
from deploy.errors import NotFit, NotWritable, ReasonNeeded, TooLate
from deploy.leave import require_leave
from deploy.models import Fence, Qualification, Rollout
from inventory.errors import InventoryError, NotQualified
from inventory.models import ManagerHost, Subnet
from inventory.operations import retire_manager_host, set_mode
from partitions.desired import sm_ports
from remote.errors import BarrierTimedOut
from remote.host_check import MeasuredSweep
from subnet.qualification import CHECKLIST, HostFacts, Piece
from tests.deploy.conftest import Scene
from tests.deploy.fakes import FakeHost

OLGA = Actor(kind=ActorKind.PERSON, key="olga", name="Olga")
YES = dict.fromkeys(CHECKLIST, True)


class AskedHost:
    """A fake host that can be qualified; sweeps take what `slowed` says beside a reader."""

    def __init__(self, host: FakeHost) -> None:
        self.host, self.name = host, host.name
        self.facts = HostFacts(
            account="root", forced_command="/opt/fabricui/fabricui-host /opt/fabricui", wrapper_digest="w" * 64,
            reader_digest="r" * 64, port_guid=str(host.port.guid), pieces=(Piece("python", True, ""),),
            opensm_version="3.3.23", opensm_exe="/usr/sbin/opensm", options_digest="o" * 64,
            partition_file="/etc/opensm/partitions.conf",
        )  # fmt: skip
        self.slowed = {0: 1.0}
        self.swept: list[int] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self.host, name)

    def check(self) -> HostFacts:
        return self.facts

    def sweep(self, *, smps_per_s: int, timeout_s: float) -> MeasuredSweep:
        self.swept.append(smps_per_s)
        return MeasuredSweep(self.slowed.get(smps_per_s, 1.0), smps_per_s > 0)


@pytest.fixture
def hosts(scene: Scene) -> list[AskedHost]:
    Qualification.objects.all().delete()
    Subnet.objects.update(mode="OBSERVE")
    scene.subnet.refresh_from_db()
    return [AskedHost(host) for host in scene.site.hosts]


def qualified(scene: Scene, hosts: list[AskedHost], *, may_sweep: bool = True) -> Qualification:
    request = qualification.request(subnet=scene.subnet, actor=OLGA, may_sweep=may_sweep)
    qualifying.qualify(request=request, hosts=hosts, clock=scene.clock, sweeps_of_each=1)
    request.refresh_from_db()
    return request


def signed(scene: Scene, hosts: list[AskedHost]) -> Qualification:
    return qualification.sign(qualification=qualified(scene, hosts), answers=YES, actor=OLGA, reason="on srv-001, -002")


def refusing(row: Qualification) -> set[str]:
    return {finding["check"] for finding in row.report["findings"] if finding["severity"] == "refuse"}


def test_from_request_to_write_mode(scene, hosts):
    with pytest.raises(NotQualified, match="No qualification report"):
        set_mode(subnet=scene.subnet, mode="WRITE", actor=OLGA)
    row = qualified(scene, hosts)
    assert row.is_fit, refusing(row)
    with pytest.raises(NotQualified, match="not signed"):
        set_mode(subnet=scene.subnet, mode="WRITE", actor=OLGA)
    qualification.sign(qualification=row, answers=YES, actor=OLGA, reason="on srv-001 and srv-002")
    set_mode(subnet=scene.subnet, mode="WRITE", actor=OLGA)
    actions = [event.action for event in Event.objects.order_by("number")]
    assert [action for action in actions if "qualification" in action] == [
        "deploy:qualification:request", "deploy:qualification:report", "deploy:qualification:sign",
    ]  # fmt: skip
    signature = Event.objects.get(action="deploy:qualification:sign")
    assert signature.after["digest"] == row.digest
    assert signature.actor_name == "Olga"


def test_the_report_says_what_was_found(scene, hosts):
    report = qualified(scene, hosts).report
    assert report["managers"]["mgr-a"]["role"] == "MASTER"
    assert report["fabric"]["capacities"] == {"64": len(scene.site.ports)}
    assert report["sweeps"]["alone"] == [1.0]
    assert set(report["tried"]) == {"3.3.23"}


def test_no_sweep_is_caused_unless_a_person_allowed_it(scene, hosts):
    row = qualified(scene, hosts, may_sweep=False)
    assert [host.swept for host in hosts] == [[], []]
    assert refusing(row) == {"sweep"}


def test_only_the_master_sweeps(scene, hosts):
    qualified(scene, hosts)
    assert hosts[0].swept
    assert not hosts[1].swept


def test_rates_are_lowered_until_one_is_harmless(scene, hosts, settings):
    settings.READ_SMPS_PER_S = 2000
    hosts[0].slowed = {0: 1.0, 2000: 2.0, 1000: 1.5, 500: 1.05}
    row = qualified(scene, hosts)
    assert row.report["sweeps"]["rate"] == 500
    assert refusing(row) == {"rate"}
    settings.READ_SMPS_PER_S = 500
    assert qualified(scene, hosts).is_fit


def test_a_foreign_opensm_keeps_the_subnet_in_observe(scene, hosts):
    hosts[1].facts = replace(hosts[1].facts, opensm_version="5.17.0.MLNX20240107.ac18da9")
    row = qualified(scene, hosts)
    assert "owner" in refusing(row)
    with pytest.raises(NotFit, match="NVIDIA"):
        qualification.sign(qualification=row, answers=YES, actor=OLGA, reason="tried")
    with pytest.raises(NotQualified, match="mgr-b: OpenSM 5"):
        set_mode(subnet=scene.subnet, mode="WRITE", actor=OLGA)


def test_a_host_that_does_not_answer_is_a_finding(scene, hosts):
    hosts[1].host.is_reachable = False
    hosts[1].check = lambda: hosts[1].host.identify()  # type: ignore[method-assign]
    row = qualified(scene, hosts)
    assert "answer" in refusing(row)
    assert "no connection" in row.report["managers"]["mgr-b"]["error"]


def test_other_programs_than_the_pinned_ones_are_told(scene, hosts):
    hosts[0].facts = replace(hosts[0].facts, wrapper_digest="x" * 64)
    assert refusing(qualified(scene, hosts)) == {"pins"}


def test_a_sweep_that_does_not_end_is_a_finding(scene, hosts):
    def sweep(**kwargs: object) -> MeasuredSweep:
        raise BarrierTimedOut(83, "After 60 s the list was not rewritten.")

    hosts[0].sweep = sweep  # type: ignore[method-assign]
    row = qualified(scene, hosts)
    assert refusing(row) == {"sweep"}
    assert any("not rewritten" in finding["sentence"] for finding in row.report["findings"])


def test_it_waits_while_a_rollout_runs(scene, hosts):
    Subnet.objects.update(mode="WRITE")
    signed(scene, hosts)
    rollout = scene.begin()
    assert rollout.state == Rollout.State.QUEUED
    row = qualified(scene, hosts)
    assert row.state == "REQUESTED"
    assert queries.requests_to_resume(Qualification, now=scene.clock()) == []  # not lost yet
    scene.clock.forward(11)
    assert queries.requests_to_resume(Qualification, now=scene.clock()) == [row.pk]
    Fence.objects.update(rollout=None)
    qualifying.qualify(request=row, hosts=hosts, clock=scene.clock, sweeps_of_each=1)
    assert row.state == "DONE"


def test_two_workers_make_one_report(scene, hosts):
    row = qualified(scene, hosts)
    digest = row.digest
    qualifying.qualify(request=row, hosts=hosts, clock=scene.clock, sweeps_of_each=1)
    row.refresh_from_db()
    assert row.digest == digest
    with pytest.raises(TooLate):
        qualification.store(request=row, report={"findings": [], "is_fit": True})


@pytest.mark.parametrize("item", CHECKLIST)
def test_a_signature_needs_every_item_and_a_reason(scene, hosts, item):
    row = qualified(scene, hosts)
    with pytest.raises(ReasonNeeded):
        qualification.sign(qualification=row, answers=YES | {item: False}, actor=OLGA, reason="tried")
    with pytest.raises(ReasonNeeded):
        qualification.sign(qualification=row, answers=YES, actor=OLGA, reason=" ")
    row.refresh_from_db()
    assert row.signed_at is None


# --- expiry ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def writable(scene, hosts):
    row = signed(scene, hosts)
    set_mode(subnet=scene.subnet, mode="WRITE", actor=OLGA)
    assert qualification.why_not(scene.subnet) == ""
    return row


def test_it_ends_when_a_manager_host_is_retired(scene, writable):
    retire_manager_host(manager_host=ManagerHost.objects.get(name="mgr-b"), actor=OLGA, reason="dead")
    assert "mgr-b was retired" in qualification.why_not(scene.subnet)
    with pytest.raises(NotWritable, match="mgr-b was retired"):
        require_leave(scene.subnet)


def test_it_ends_when_a_manager_host_is_enrolled(scene, writable):
    ManagerHost.objects.create(
        subnet=scene.subnet, name="mgr-c", address="127.0.0.1", ssh_user="f", host_key="ssh-ed25519 AAAA",
        port_guid="0x0002c903000c0001", wrapper_digest="w" * 64, reader_digest="r" * 64,
    )  # fmt: skip
    assert "mgr-c was enrolled" in qualification.why_not(scene.subnet)


def test_it_ends_when_the_report_was_touched(scene, writable):
    report = {**writable.report, "source": "other"}
    Qualification.objects.filter(pk=writable.pk).update(report=report)
    assert "not stored as it was signed" in qualification.why_not(scene.subnet)


def test_it_ends_when_the_reading_pace_is_raised(scene, writable, settings):
    row = Qualification.objects.get(pk=writable.pk)
    row.report["sweeps"]["rate"] = 500
    row.digest = qualification.hashlib.sha256(qualification.canonical(row.report)).hexdigest()
    row.save()
    settings.READ_SMPS_PER_S = 4000
    assert "raised to 4000" in qualification.why_not(scene.subnet)


@pytest.mark.parametrize(
    ("change", "told"),
    [({"opensm_version": "3.3.24"}, "runs OpenSM 3.3.24 now"), ({"options_digest": "n" * 64}, "options")],
)
def test_a_look_that_finds_another_opensm_ends_it(scene, writable, monkeypatch, change, told):
    scene.look()
    assert qualification.why_not(scene.subnet) == ""
    identify = FakeHost.identify
    monkeypatch.setattr(FakeHost, "identify", lambda host: replace(identify(host), **change))
    scene.look()
    assert told in qualification.why_not(scene.subnet)


def test_a_rollout_refuses_when_opensm_changed_after_the_look(scene, writable, monkeypatch):
    """The last look was fine; the worker's own, just before placing, is not."""
    rollout = scene.begin()
    identify = FakeHost.identify
    monkeypatch.setattr(FakeHost, "identify", lambda host: replace(identify(host), opensm_version="3.3.24"))
    before = scene.digests()
    scene.run(rollout)
    assert rollout.state == Rollout.State.REFUSED
    assert "runs OpenSM 3.3.24 now" in rollout.cause
    assert scene.digests() == before


def test_a_newer_report_that_refuses_counts(scene, hosts, writable):
    hosts[0].facts = replace(hosts[0].facts, opensm_exe="/opt/ufm/opensm/sbin/opensm")
    qualified(scene, hosts)
    assert "UFM" in qualification.why_not(scene.subnet)


def test_a_newer_report_that_is_not_signed_yet_leaves_the_old_one_standing(scene, hosts, writable):
    qualified(scene, hosts)
    assert qualification.why_not(scene.subnet) == ""


# --- retirement -----------------------------------------------------------------------------------------------------


def test_no_host_is_retired_under_a_running_rollout(scene, writable):
    rollout = scene.begin()
    host = ManagerHost.objects.get(name="mgr-b")
    with pytest.raises(InventoryError, match="works with manager host mgr-b"):
        retire_manager_host(manager_host=host, actor=OLGA, reason="dead")
    Rollout.objects.filter(pk=rollout.pk).update(state=Rollout.State.DEGRADED)  # it may wait for just this host
    retire_manager_host(manager_host=host, actor=OLGA, reason="dead")


def test_the_port_of_a_retired_host_leaves_default_with_the_next_plan(scene, writable):
    retire_manager_host(manager_host=ManagerHost.objects.get(name="mgr-b"), actor=OLGA, reason="dead")
    assert sm_ports(scene.subnet) == (ManagerHost.objects.get().port_guid,)
