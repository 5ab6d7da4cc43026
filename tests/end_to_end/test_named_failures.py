"""Each way a real site breaks ends in a named state, with the cause on the page and nothing half done."""

import threading
from types import SimpleNamespace

import pytest
from django.urls import reverse

from lab import breaking
from lab.quiet import wait_until_quiet
from remote.manager_host import ManagerHost, Settled
from subnet.observed import parse_reading
from tests.end_to_end.conftest import until

pytestmark = pytest.mark.contract


@pytest.fixture
def staged(desk):
    """A desk with one move staged and nothing rolled out yet."""
    desk.furnish()
    desk.stage(desk.servers[0], desk.training, desk.inference)
    return desk


@pytest.fixture
def told(client, staged):
    """What the rollout page says, for an operator."""
    client.force_login(staged.olga)

    def read(rollout):
        response = client.get(reverse("console:rollout", args=[rollout.public_id]))
        assert response.status_code == 200
        return response.content.decode()

    return read


def files(site):
    return [manager.partitions_file.read_bytes() for manager in site.managers]


@pytest.mark.parametrize(
    ("fault", "mend"),
    [
        (breaking.make_disk_read_only, breaking.mend_disk),
        (breaking.fill_disk, breaking.mend_disk),
        (breaking.end_sshd, breaking.start_sshd),
    ],
    ids=["read-only disk", "full disk", "no sshd"],
)
def test_a_standby_that_cannot_be_staged_stops_before_anything_is_placed(staged, told, fault, mend):
    rollout = staged.start()
    before = files(staged.site)
    standby = staged.site.managers[1].name
    fault(staged.site, standby)
    try:
        staged.run(rollout)
    finally:
        mend(staged.site, standby)
    assert rollout.state == "REFUSED"
    assert standby in rollout.cause
    assert files(staged.site) == before
    assert standby in told(rollout)
    assert not rollout.outcomes.exclude(placed_at=None).exists()


def test_crlf_placed_by_hand_on_the_master_is_found_before_anything_is_placed(staged, told):
    rollout = staged.start()
    master = staged.site.managers[0].name
    breaking.replace_file(staged.site, master, "crlf")
    before = files(staged.site)
    staged.run(rollout)
    assert rollout.state == "REFUSED"
    assert master in rollout.cause
    assert files(staged.site) == before
    assert master in told(rollout)


def test_a_wrong_host_key_is_named(staged, told):
    rollout = staged.start()
    before = files(staged.site)
    master = staged.site.managers[0].name
    breaking.change_host_key(staged.site, master)
    try:
        staged.run(rollout)
    finally:
        breaking.restore_host_key(staged.site, master)
    assert rollout.state == "REFUSED"
    assert master in rollout.cause
    assert "host key" in rollout.cause
    assert files(staged.site) == before
    assert "host key" in told(rollout)


def test_an_opensm_with_another_partition_file_is_named(staged, told):
    rollout = staged.start()
    master = staged.site.managers[0]
    other = master.partitions_file.with_name("other.conf")
    other.write_bytes(master.partitions_file.read_bytes())
    breaking.restart_opensm(staged.site, master.name, partitions=other)
    staged.site.wait_for_roles()
    before = files(staged.site)
    staged.run(rollout)
    assert rollout.state == "REFUSED"
    assert master.name in rollout.cause
    assert str(other) in rollout.cause
    assert files(staged.site) == before
    assert "other.conf" in told(rollout)


def test_no_opensm_on_the_standby_is_named(staged):
    rollout = staged.start()
    standby = staged.site.managers[1].name
    breaking.end_opensm(staged.site, standby)
    staged.run(rollout)
    assert rollout.state == "REFUSED"
    assert standby in rollout.cause


def test_a_third_opensm_is_named_with_its_place(staged, told):
    rollout = staged.start()
    before = files(staged.site)
    rogue = breaking.start_rogue(staged.site)
    until(lambda: staged.site.sms()[rogue]["state"] == "MASTER", "the rogue is master")
    staged.run(rollout)
    assert rollout.state in {"REFUSED", "STUCK"}
    assert rogue in rollout.cause
    assert files(staged.site) == before
    assert rogue in told(rollout)


class TestAForeignSweep:
    """The master is busy when the signal comes: for a while the old tables stand. Made sure by stopping its process."""

    @pytest.fixture
    def late_master(self, staged, monkeypatch):
        """The master is stopped just before SIGHUP and goes on later, as if a long sweep were under way.

        It goes on after a second, or with `until_read` once the tables have been read, however slow the machine is. The
        standby stands still meanwhile: from a master that answers no more it would take over.
        """
        master, standby = staged.site.managers
        reload = ManagerHost.reload
        timers = []

        def go_on():
            for manager in (master, standby):
                breaking.unfreeze_opensm(staged.site, manager.name)

        late = SimpleNamespace(until_read=False, go_on=go_on)

        def reload_while_busy(host):
            for manager in (standby, master):
                breaking.freeze_opensm(staged.site, manager.name)
            try:
                return reload(host)
            finally:
                if not late.until_read:
                    timers.append(threading.Timer(1.0, go_on))
                    timers[-1].start()

        monkeypatch.setattr(ManagerHost, "reload", reload_while_busy)
        wait_until_quiet(master.list_file)
        yield late
        for timer in timers:
            timer.join()
        if late.until_read:
            go_on()  # in case no table was read

    @pytest.fixture
    def read_keys(self, staged, late_master, monkeypatch):
        """What each reading after the reload found on the moved ports: a list of sets of full P_Keys beside Default."""
        moved = {port.guid for hca in staged.servers[0].hcas.all() for port in hca.ports.all()}
        found = []
        read_tables = ManagerHost.read_tables

        def keep(host, **options):
            data = read_tables(host, **options)
            if options["topology"] == "list":  # the look of plan time discovers by itself
                if late_master.until_read:
                    late_master.go_on()
                ports = parse_reading(data).ports
                found.append({key & 0x7FFF for guid in moved for key in ports[guid].pkeys.values()} - {0x7FFF})
            return data

        monkeypatch.setattr(ManagerHost, "read_tables", keep)
        return found

    def test_tables_are_never_read_stale(self, staged, read_keys):
        rollout = staged.run(staged.start())
        assert rollout.state == "PROVEN", rollout.cause
        assert read_keys == [{staged.inference.pkey}]

    def test_without_the_barrier_they_would_be(self, staged, late_master, read_keys, monkeypatch):
        late_master.until_read = True
        monkeypatch.setattr(
            ManagerHost, "barrier", lambda host, mark, *, timeout_s: Settled(mark.list_mtime_ns, 0, 0.0)
        )
        rollout = staged.run(staged.start())
        assert read_keys[0] == {staged.training.pkey}  # the old table, read after the reload
        assert rollout.state != "PROVEN"
