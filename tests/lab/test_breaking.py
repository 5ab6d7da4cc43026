"""Each break verb does what it says, on the real parts, and can be undone."""

import errno
import os
import re
import time
from pathlib import Path

import pytest

from lab import breaking
from lab.errors import LabError
from lab.smp import BLOCK
from remote.errors import HostKeyMismatch, RemoteError
from tests.lab.traces import until

pytestmark = pytest.mark.contract
TAKEOVER_S = 20.0


def states(site, hca):
    return site.read_ports([hca.port_guid]).get(hca.port_guid, {}).get("state")


@pytest.mark.parametrize("end", [breaking.kill_opensm, breaking.end_opensm])
def test_the_standby_takes_over_and_the_master_comes_back(site, end):
    end(site, "sm-a")
    try:
        assert site.wait_for_master("sm-b", timeout_s=TAKEOVER_S) < TAKEOVER_S
        assert set(site.sms()) == {site.managers[1].port_guid}
        with pytest.raises(LabError, match="does not run"):
            assert site.manager("sm-a").opensm_pid
    finally:
        breaking.start_opensm(site, "sm-a")
    assert site.wait_for_master("sm-a", timeout_s=TAKEOVER_S) < TAKEOVER_S


def test_a_frozen_sm_sees_its_signals_when_it_goes_on(site):
    listing = site.manager("sm-a").list_file
    before = listing.stat().st_mtime_ns
    for name in ("sm-b", "sm-a"):  # the standby first: it would take over
        breaking.freeze_opensm(site, name)
    try:
        breaking.reload_opensm(site, "sm-a")
        assert listing.stat().st_mtime_ns == before
    finally:
        for name in ("sm-a", "sm-b"):
            breaking.unfreeze_opensm(site, name)
    until(lambda: listing.stat().st_mtime_ns != before)


def test_the_standby_takes_over_from_a_master_that_stands_still(site):
    breaking.freeze_opensm(site, "sm-a")
    try:
        until(lambda: site.sms()[site.managers[1].port_guid]["state"] == "MASTER")
    finally:
        breaking.unfreeze_opensm(site, "sm-a")
    assert site.wait_for_master("sm-a", timeout_s=TAKEOVER_S) < TAKEOVER_S


def test_an_sm_can_be_started_on_another_partition_file(site, call, tmp_path):
    other = tmp_path / "other.conf"
    other.write_bytes(site.manager("sm-b").partitions_file.read_bytes())
    breaking.restart_opensm(site, "sm-b", partitions=other)
    try:
        identity = dict(line.split("=", 1) for line in call("sm-b", "identify").stdout.decode().splitlines())
        assert identity["process_partition_file"] == str(other)
        assert identity["partition_file"] == str(site.manager("sm-b").partitions_file)
    finally:
        breaking.restart_opensm(site, "sm-b")


def test_stopping_sshd_ends_its_open_sessions(site, call):
    assert call("sm-a", "read").exit_status == 0
    breaking.end_sshd(site, "sm-a")
    try:
        with pytest.raises(RemoteError):
            call("sm-a", "read", timeout_s=5)
        assert call("sm-b", "read").exit_status == 0
        assert site.master() == "sm-a"
    finally:
        breaking.start_sshd(site, "sm-a")
    assert call("sm-a", "read", fresh=True).exit_status == 0


def test_another_host_key_is_noticed_and_the_enrolled_one_comes_back(site, call):
    enrolled = site.manager("sm-b").host_key
    other = breaking.change_host_key(site, "sm-b")
    try:
        assert other != enrolled
        assert site.manager("sm-b").host_key == enrolled
        with pytest.raises(HostKeyMismatch):
            call("sm-b", "read")
        assert call("sm-b", "read", host_key=other).exit_status == 0
    finally:
        breaking.restore_host_key(site, "sm-b")
    assert call("sm-b", "read", fresh=True).exit_status == 0


def test_a_slow_connection_makes_each_call_late(site, call):
    breaking.slow_ssh(site, "sm-a", delay_ms=200)
    try:
        call("sm-a", "read", timeout_s=60)
        began = time.monotonic()
        assert call("sm-a", "read").exit_status == 0
        assert time.monotonic() - began >= 0.4
    finally:
        breaking.slow_ssh(site, "sm-a", delay_ms=0)
    assert call("sm-a", "read", fresh=True).exit_status == 0


@pytest.mark.parametrize(
    ("fault", "number"),
    [(breaking.fill_disk, errno.ENOSPC), (breaking.make_disk_read_only, errno.EROFS)],
)
def test_a_disk_refuses_writes_until_it_is_mended(site, call, fault, number):
    manager = site.manager("sm-a")
    whole = manager.partitions_file.read_bytes()
    as_opensm_sees_it = Path(f"/proc/{manager.opensm_pid}/root{manager.partitions_file.with_name('written')}")
    fault(site, "sm-a")
    try:
        assert site.read_file(manager) == whole
        assert call("sm-a", "read").stdout == whole
        with pytest.raises(OSError, match=os.strerror(number)), as_opensm_sees_it.open("wb", buffering=0) as file:
            file.write(b"\0" * 8192)
        digest = "0" * 64
        assert call("sm-a", "stage", (digest, "8192"), b"\0" * 8192).exit_status == 73
    finally:
        breaking.mend_disk(site, "sm-a")
    as_opensm_sees_it.write_bytes(b"\0" * 8192)
    as_opensm_sees_it.unlink()
    assert manager.partitions_file.read_bytes() == whole


def test_what_is_written_to_a_disk_before_it_is_mended_is_kept(site):
    manager = site.manager("sm-b")
    whole = manager.partitions_file.read_bytes()
    breaking.fill_disk(site, "sm-b")
    with Path(f"/proc/{manager.opensm_pid}/root{manager.partitions_file}").open("r+b") as file:
        file.write(b"#")
    breaking.mend_disk(site, "sm-b")
    try:
        assert manager.partitions_file.read_bytes() == b"#" + whole[1:]
    finally:
        manager.partitions_file.write_bytes(whole)


def held(site, guid):
    """The P_Key table of a port; None while a reading does not reach it, as in the middle of a sweep."""
    return site.read_ports([guid]).get(guid, {}).get("pkeys")


@pytest.mark.parametrize("how", ["crlf", "empty", "edit"])
def test_a_file_changed_by_hand_reaches_the_fabric(site, how):
    """CRLF and empty files make OpenSM drop every partition: all ports full members of Default."""
    manager = site.manager("sm-a")
    whole = manager.partitions_file.read_bytes()
    server = site.fabric.servers[0].hcas[0]
    wanted = {"0": 0x7FFF, "1": 0x8ABC} if how == "edit" else {"0": 0xFFFF}
    breaking.replace_file(site, "sm-a", how)
    try:
        breaking.reload_opensm(site, "sm-a")
        until(lambda: held(site, server.port_guid) == wanted)
    finally:
        manager.partitions_file.write_bytes(whole)
        breaking.reload_opensm(site, "sm-a")
    until(lambda: held(site, server.port_guid) == {"0": 0x7FFF})


def test_a_cut_link_takes_the_port_away_until_it_is_restored(site):
    hca = site.fabric.servers[2].hcas[1]
    breaking.cut_link(site, hca)
    try:
        assert site.counted_hcas() == site.fabric.end_ports - 1
        assert states(site, hca) is None
        assert len(site.state.cut_links) == 1
        with pytest.raises(LabError, match="srv-003 mlx5_1"):
            breaking.cut_link(site, hca)
    finally:
        breaking.restore_link(site, hca)
    until(lambda: states(site, hca) == "ACTIVE")
    assert site.counted_hcas() == site.fabric.end_ports
    assert site.state.cut_links == []


def test_a_rogue_sm_takes_the_fabric_and_gives_it_back(site):
    server = site.fabric.servers[-1]
    guid = breaking.start_rogue(site, priority=15)
    try:
        assert guid == server.port_guids[0]
        site.wait_for_master(server.hostname, timeout_s=10)
        until(lambda: {str(port["pkeys"]) for port in site.read_ports().values()} == {"{'0': 65535}"})
        assert site.sms()[guid]["priority"] == 15
        with pytest.raises(LabError, match="already"):
            breaking.start_rogue(site)
    finally:
        breaking.end_rogue(site)
    assert site.wait_for_master("sm-a", timeout_s=TAKEOVER_S) < TAKEOVER_S
    until(lambda: site.read_ports()[server.port_guids[1]]["pkeys"] == {"0": 0x7FFF})


def test_a_rogue_sm_of_low_priority_stands_by(site):
    guid = breaking.start_rogue(site, hostname="srv-002", priority=1)
    try:
        assert site.sms()[guid]["state"] == "STANDBY"
        assert site.master() == "sm-a"
    finally:
        breaking.end_rogue(site, kill=True)
    assert guid not in site.sms()


def test_a_spoiled_port_shows_the_foreign_key_at_its_last_index_and_keeps_it(site):
    hca = site.fabric.servers[4].hcas[0]
    index = breaking.spoil_port(site, hca.port_guid)
    try:
        assert index == 63
        said = site.run_tool("smpquery", "pkeys", str(site.lids()[hca.port_guid]))
        tables = {}
        for first, row in re.findall(r"^ *(\d+): ((?:0x[0-9a-f]{4} ?)+)$", said, re.MULTILINE):
            tables.update({int(first) + place: entry for place, entry in enumerate(row.split())})
        assert {place: entry for place, entry in tables.items() if entry != "0x0000"} == {0: "0x7fff", 63: "0x8abc"}
        others = site.read_ports()
        others.pop(hca.port_guid)
        assert all(set(port["pkeys"]) == {"0"} for port in others.values())
    finally:
        assert breaking.spoil_port(site, hca.port_guid, entry=0, index=index) == 63


def test_a_port_can_be_spoiled_at_any_index_but_no_other(site):
    hca = site.fabric.servers[4].hcas[1]
    assert breaking.spoil_port(site, hca.port_guid, entry=0x0ABC, index=BLOCK + 1) == BLOCK + 1
    assert site.read_ports([hca.port_guid])[hca.port_guid]["pkeys"] == {"0": 0x7FFF, "33": 0x0ABC}
    breaking.spoil_port(site, hca.port_guid, entry=0, index=BLOCK + 1)
    with pytest.raises(LabError, match="index 64 is outside"):
        breaking.spoil_port(site, hca.port_guid, index=64)
    with pytest.raises(LabError, match="No port of the lab"):
        breaking.spoil_port(site, "0x0002c903dead0001")
