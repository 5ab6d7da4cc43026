"""A busy master: tables are never read stale. The other faults are pairs of the matrix (`test_faults.py`)."""

import threading

import pytest

from lab import breaking
from lab.quiet import wait_until_quiet
from remote.manager_host import ManagerHost, Settled
from subnet.observed import parse_reading

pytestmark = pytest.mark.contract


@pytest.fixture
def staged(desk):
    """A desk with one move staged and nothing rolled out yet."""
    desk.furnish()
    desk.stage(desk.servers[0], desk.training, desk.inference)
    return desk


class TestAForeignSweep:
    """The master is busy when the signal comes: for a while the old tables stand. Made sure by stopping its process."""

    @pytest.fixture
    def late_master(self, staged, monkeypatch):
        """The master is stopped just before SIGHUP and goes on a second later, as if a long sweep were under way."""
        master = staged.site.managers[0]
        reload = ManagerHost.reload
        timers = []

        def reload_while_busy(host):
            breaking.freeze_opensm(staged.site, master.name)
            timers.append(threading.Timer(1.0, breaking.unfreeze_opensm, [staged.site, master.name]))
            try:
                return reload(host)
            finally:
                timers[-1].start()

        monkeypatch.setattr(ManagerHost, "reload", reload_while_busy)
        wait_until_quiet(master.list_file)
        yield master
        for timer in timers:
            timer.join()

    @pytest.fixture
    def read_keys(self, staged, late_master, monkeypatch):
        """What each reading after the reload found on the moved ports: a list of sets of full P_Keys beside Default."""
        moved = {port.guid for hca in staged.servers[0].hcas.all() for port in hca.ports.all()}
        found = []
        read_tables = ManagerHost.read_tables

        def keep(host, **options):
            data = read_tables(host, **options)
            if options["topology"] == "list":  # the look of plan time discovers by itself
                ports = parse_reading(data).ports
                found.append({key & 0x7FFF for guid in moved for key in ports[guid].pkeys.values()} - {0x7FFF})
            return data

        monkeypatch.setattr(ManagerHost, "read_tables", keep)
        return found

    def test_tables_are_never_read_stale(self, staged, read_keys):
        rollout = staged.run(staged.start())
        assert rollout.state == "PROVEN", rollout.cause
        assert read_keys == [{staged.inference.pkey}]

    def test_without_the_barrier_they_would_be(self, staged, read_keys, monkeypatch):
        monkeypatch.setattr(
            ManagerHost, "barrier", lambda host, mark, *, timeout_s: Settled(mark.list_mtime_ns, 0, 0.0)
        )
        rollout = staged.run(staged.start())
        assert read_keys[0] == {staged.training.pkey}  # the old table, read after the reload
        assert rollout.state != "PROVEN"
