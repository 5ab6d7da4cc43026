"""A move within a tenant ends PROVEN, and tables read by another program agree on every port."""

import pytest

from lab import breaking
from subnet.diagnostics import parse_smpquery_pkeys

pytestmark = pytest.mark.contract


def tables_by_smpquery(site):
    """Every HCA port's table as `smpquery pkeys` prints it, by port GUID: index → entry."""
    ports = {hca.port_guid for hca in site.fabric.hcas()}
    return {
        guid: parse_smpquery_pkeys(site.run_tool("smpquery", "pkeys", str(lid))).pkeys
        for guid, lid in site.lids().items()
        if guid in ports
    }


def keys(table):
    return set(table.values())


def test_a_move_is_proven_and_smpquery_agrees(desk):
    desk.furnish()
    moving, staying = desk.servers[:2]
    desk.stage(moving, desk.training, desk.inference)
    rollout = desk.run(desk.start())
    assert rollout.state == "PROVEN", rollout.cause
    training, inference = 0x8000 | desk.training.pkey, 0x8000 | desk.inference.pkey
    tables = tables_by_smpquery(desk.site)
    managers = {manager.port_guid for manager in desk.site.managers}
    for server, wanted in ((moving, {0x7FFF, inference}), (staying, {0x7FFF, training})):
        for hca in server.hcas.all():
            for port in hca.ports.all():
                assert keys(tables.pop(port.guid)) == wanted, port
    for guid, table in tables.items():
        assert table == {0: 0xFFFF if guid in managers else 0x7FFF}, guid


def test_both_hosts_hold_the_same_file_and_the_evidence_says_so(desk):
    rollout = desk.furnish()
    files = {manager.partitions_file.read_bytes() for manager in desk.site.managers}
    assert files == {bytes(rollout.revision.data)}
    digests = {outcome.digest for outcome in rollout.outcomes.all()}
    assert digests == {rollout.revision.digest}
    assert {outcome.role_at_proof for outcome in rollout.outcomes.all()} == {"MASTER", "STANDBY"}
    counts = rollout.read_back["counts"]
    assert counts["ports"] == desk.site.counted_hcas() == 14
    assert counts["proven"] == 14
    assert counts["discrepancies"] == counts["unaffected_ports_changed"] == 0


def test_a_takeover_after_the_rollout_changes_no_table(desk):
    desk.furnish()
    before = tables_by_smpquery(desk.site)
    master, standby = desk.site.managers
    breaking.kill_opensm(desk.site, master.name)
    desk.site.wait_for_master(standby.name)
    assert tables_by_smpquery(desk.site) == before


def test_a_spoiled_port_is_named_and_nothing_is_called_proven(desk):
    desk.furnish()
    desk.stage(desk.servers[0], desk.training, desk.inference)
    rollout = desk.start()
    spoiled = desk.site.fabric.servers[4].port_guids[0]
    breaking.spoil_port(desk.site, spoiled)
    desk.run(rollout)
    assert rollout.state == "STUCK"
    assert spoiled in rollout.cause
    assert "0x8abc" in rollout.cause
