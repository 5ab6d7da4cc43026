"""Whatever is changed behind our back on a real pair is found by the watch, put back by one call, or proven again."""

import time

import pytest
from django.utils import timezone

from deploy import drifting, hosts, putting_back, watching
from deploy.drift_models import Drift, Watch
from deploy.errors import FabricAlarm
from deploy.leave import require_leave
from lab import breaking

pytestmark = pytest.mark.contract
WITHIN_S = 60


class Watcher:
    """What beat and the worker of the queue `observe` do, in this process and at the real pace."""

    def __init__(self, desk):
        self.desk, self.subnet = desk, desk.subnet

    def tick(self):
        for _ in watching.due(now=timezone.now()):
            connected = hosts.connect(self.subnet)
            watching.watch(subnet=self.subnet, hosts=connected)
            for host in connected:
                host.close()
        return {(row.kind, row.key): row for row in drifting.open_drift(self.subnet)}

    def until(self, is_so, within_s=WITHIN_S):
        """Tick until `is_so(open rows)`; return the rows and how long it took."""
        began = time.monotonic()
        while True:
            rows = self.tick()
            took = time.monotonic() - began
            if is_so(rows):
                return rows, took
            assert took < within_s, f"not so within {within_s} s: {[row.details for row in rows.values()]}"
            time.sleep(0.2)

    def put_back(self):
        """The one click, the worker of the queue `rollout`, and the watch until nothing differs."""
        rollout = putting_back.put_back(subnet=self.subnet, actor=actor(self), reason="test")
        self.desk.run(rollout)
        assert rollout.state == "PROVEN", rollout.cause
        self.now()
        self.until(lambda rows: not rows)

    def now(self):
        """Have the next look taken at once."""
        drifting.watch_soon(subnet=self.subnet, now=timezone.now())


@pytest.fixture
def watcher(desk):
    desk.furnish()
    watcher = Watcher(desk)
    watcher.until(lambda rows: not rows and Watch.objects.get().covered_at is not None)
    return watcher


def test_what_is_changed_behind_our_back_is_shown_put_back_and_proven_again(watcher, settings):
    site = watcher.desk.site
    before = {guid: port["pkeys"] for guid, port in site.read_ports().items()}
    names = [manager.name for manager in site.managers]

    # Both files are edited by hand: found at the real pace.
    for name in names:
        breaking.replace_file(site, name, "edit")
    rows, took = watcher.until(lambda rows: all(("FILE", name) in rows for name in names))
    assert took < WITHIN_S
    for name in names:
        assert "by hand" in rows["FILE", name].cause
        assert "2 hosts hold the same bytes" in rows["FILE", name].cause
    settings.WATCH_INTERVAL_S = 2
    breaking.reload_opensm(site, names[0])  # `byhand=0x0abc: ALL` reaches every port
    watcher.now()
    rows, _ = watcher.until(lambda rows: ("TABLE", "fabric") in rows)
    assert len(rows["TABLE", "fabric"].facts["ports"]) == len(before)
    watcher.put_back()
    assert {guid: port["pkeys"] for guid, port in site.read_ports().items()} == before

    # A file that OpenSM rejects is placed on the master and read: every port can reach every other.
    breaking.replace_file(site, names[0], "crlf")
    breaking.reload_opensm(site, names[0])
    rows, took = watcher.until(lambda rows: ("ISOLATION_LOST", "fabric") in rows)
    assert f"OpenSM on {names[0]} rejects its partition file" in rows["ISOLATION_LOST", "fabric"].cause
    assert "Windows" in rows["FILE", names[0]].cause
    with pytest.raises(FabricAlarm, match="Isolation lost"):
        require_leave(watcher.subnet)
    watcher.put_back()
    assert {guid: port["pkeys"] for guid, port in site.read_ports().items()} == before

    # The master dies: the standby's file, census and tables are proven again by themselves.
    breaking.kill_opensm(site, names[0])
    site.wait_for_master(names[1])
    watcher.until(lambda rows: Drift.objects.filter(kind="TAKEOVER").exclude(closed_at=None).exists())
    takeover = Drift.objects.get(kind="TAKEOVER")
    assert takeover.closing.startswith(f"Proven again: {names[1]} is the only master")
    rows, _ = watcher.until(lambda rows: ("ROLES", "no standby") in rows)
    assert names[0] in rows["ROLES", "no standby"].cause


def test_a_rogue_sm_is_shown_with_its_place_and_stops_rollouts(watcher, settings):
    site = watcher.desk.site
    hca = site.fabric.servers[-1].hcas[0]
    guid = breaking.start_rogue(site)
    rows, took = watcher.until(lambda rows: ("ROGUE_SM", guid) in rows)
    assert took < WITHIN_S
    rogue = rows["ROGUE_SM", guid]
    assert (rogue.facts["leaf"], rogue.facts["leaf_port"]) == (hca.leaf_guid, hca.leaf_port)
    assert f"Port {guid} at leaf {hca.leaf_guid} port {hca.leaf_port} " in rogue.details[0]
    settings.WATCH_INTERVAL_S = 2
    watcher.now()
    watcher.until(lambda rows: ("ISOLATION_LOST", "fabric") in rows)
    with pytest.raises(FabricAlarm, match=guid):
        putting_back.put_back(subnet=watcher.subnet, actor=actor(watcher), reason="test")
    breaking.end_rogue(site)
    site.wait_for_roles()
    watcher.until(lambda rows: ("ROGUE_SM", guid) not in rows and ("ISOLATION_LOST", "fabric") not in rows)
    assert Drift.objects.get(kind="ROGUE_SM").closed_at is not None


def actor(watcher):
    from people.actor import actor_of

    return actor_of(watcher.desk.olga)
