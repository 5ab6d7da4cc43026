"""The verbs against a real OpenSM pair on a simulated fabric, compared with what infiniband-diags reads."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from remote.errors import (
    BarrierTimedOut,
    CallTimedOut,
    FileMissing,
    FileUnreadable,
    NotMaster,
    OpenSMDiffers,
    OpenSMNotRunning,
    VerbFailed,
)
from remote.manager_host import ManagerHost
from subnet.observed import ObservedFabric, parse_reading
from tests.remote.mini_fabric import HCAS, LEAVES, MiniFabric, mini_fabric, partitions, port_guid
from tests.remote.sites import Host, sha256, wait_until

pytestmark = [pytest.mark.contract, pytest.mark.xdist_group("remote-fabric")]

MASTER, STANDBY = 0, 5


@dataclass
class Pair:
    fabric: MiniFabric
    master: Host
    standby: Host
    opensm: "subprocess.Popen[bytes]"
    standby_opensm: "subprocess.Popen[bytes]"
    generation: int = 0

    @property
    def manager(self) -> ManagerHost:
        return self.master.locally()

    def place(self, **tenants: list[str]) -> None:
        data = partitions(**tenants).encode()
        self.generation += 1
        self.manager.stage(data, digest=sha256(data))
        self.manager.place(digest=sha256(data), generation=self.generation)

    def read(self, topology: str = "list") -> ObservedFabric:
        return parse_reading(self.manager.read_tables(topology=topology, timeout_s=30))  # type: ignore[arg-type]

    def settle(self, **tenants: list[str]) -> ObservedFabric:
        """Place, reload, wait behind the barrier, read."""
        self.place(**tenants)
        self.manager.barrier(self.manager.reload(), timeout_s=20)
        return self.read()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, key_file: Path) -> Iterator[Pair]:
    with mini_fabric(tmp_path_factory.mktemp("fabric")) as fabric:
        public_key = key_file.with_suffix(".pub")
        master = fabric.manager_host("m1", MASTER, public_key)
        standby = fabric.manager_host("m2", STANDBY, public_key)
        yield Pair(fabric, master, standby, *start_pair(fabric, master, standby))


def start_pair(
    fabric: MiniFabric, master: Host, standby: Host
) -> tuple["subprocess.Popen[bytes]", "subprocess.Popen[bytes]"]:
    """Start the master, then the standby; their processes in this order, once both are what they are meant to be."""
    first = fabric.start_opensm(master, MASTER, priority=14)
    wait_until(lambda: "SUBNET UP" in master.log.read_text() if master.log.exists() else False, within_s=30)
    second = fabric.start_opensm(standby, STANDBY, priority=1)
    wait_until(lambda: "STANDBY" in standby.log.read_text() if standby.log.exists() else False, within_s=30)
    return first, second


def keys_by_smpquery(fabric: MiniFabric, *target: str) -> dict[int, int]:
    text = fabric.ask(1, "smpquery", "pkeys", *target)
    rows = re.findall(r"^ *(\d+): ((?:0x[0-9a-f]{4} ?)+)", text, re.MULTILINE)
    entries = {int(start) + place: int(word, 16) for start, row in rows for place, word in enumerate(row.split())}
    return {index: entry for index, entry in entries.items() if entry}


def holders(observed: ObservedFabric, entry: int) -> set[str]:
    return {str(guid) for guid, port in observed.end_ports.items() if entry in port.pkeys.values()}


class TestIdentity:
    def test_the_real_process_is_bound_without_a_problem(self, pair: Pair) -> None:
        identity = pair.manager.identify()
        assert identity.problems == ()
        assert identity.process is not None
        assert identity.process.pid == pair.opensm.pid
        assert identity.process.port_guid == port_guid(MASTER)
        assert identity.opensm_version.startswith("3.3.")

    def test_master_and_standby_say_who_they_are(self, pair: Pair) -> None:
        master, standby = pair.manager.sm_state(), pair.standby.locally().sm_state()
        assert (master.state, master.priority, master.port_guid) == ("MASTER", 14, port_guid(MASTER))
        assert (standby.state, standby.priority, standby.port_guid) == ("STANDBY", 1, port_guid(STANDBY))
        assert master.master_guid == standby.master_guid == port_guid(MASTER)
        assert standby.master_lid == master.lid

    def test_a_port_without_an_sm_says_so(self, pair: Pair, key_file: Path) -> None:
        host = pair.fabric.manager_host("m3", 2, key_file.with_suffix(".pub"))
        with pytest.raises(OpenSMNotRunning, match="No SM answers"):
            host.locally().sm_state()


class TestWatch:
    """The verbs of the watch: who runs an SM, the tables part by part, and what OpenSM was told."""

    def test_the_census_finds_both_sms_where_they_are_plugged(self, pair: Pair) -> None:
        for host in (pair.master, pair.standby):  # the standby has no list: it discovers by itself
            census = host.locally().census(smps_per_s=0, timeout_s=20)
            assert [(sm.guid, sm.state, sm.priority, sm.leaf, sm.leaf_port) for sm in census.sms] == [
                (port_guid(MASTER), "MASTER", 14, f"0x{LEAVES[0]:016x}", 1),
                (port_guid(STANDBY), "STANDBY", 1, f"0x{LEAVES[1]:016x}", 3),
            ]
            assert census.ports == 8
            assert list(census.follows) == [census.sms[0].lid]
        assert pair.manager.census(smps_per_s=0, timeout_s=20).topology == "list"
        assert pair.standby.locally().census(smps_per_s=0, timeout_s=20).list_mtime_ns == 0

    def test_parts_of_a_scan_are_the_whole_reading(self, pair: Pair) -> None:
        whole = pair.settle(p0010=[port_guid(1), port_guid(3)])
        after, found, parts = "0x0000000000000000", {}, []
        while True:
            part = pair.manager.scan(after=after, most=4, smps_per_s=0, timeout_s=20)
            reading = parse_reading(part.data)
            parts.append(len(reading.end_ports))
            assert part.total == 6
            assert [(sm.guid, sm.state) for sm in reading.sms if sm.state == "MASTER"] == [
                (port_guid(MASTER), "MASTER")
            ]
            found |= reading.end_ports
            after = part.last
            if not part.has_more:
                break
        assert parts == [4, 2]
        assert {guid: (port.pkeys, port.leaf.pkeys) for guid, port in found.items()} == {
            guid: (port.pkeys, port.leaf.pkeys) for guid, port in whole.end_ports.items()
        }
        assert pair.manager.scan(after=after, most=4, smps_per_s=0, timeout_s=20).last == ""

    def test_the_standby_reads_the_same_tables_and_no_other_port_at_a_lid(self, pair: Pair) -> None:
        observed = pair.settle(p0010=[port_guid(1), port_guid(3)])
        lids = {guid: port.lid for guid, port in observed.end_ports.items()}
        seen = pair.standby.locally().read_ports(lids, timeout_s=10)
        assert seen == {guid: dict(port.pkeys) for guid, port in observed.end_ports.items()}
        assert 0x8010 in seen[port_guid(1)].values()
        swapped = {port_guid(1): lids[port_guid(3)], port_guid(3): lids[port_guid(3)]}
        seen = pair.standby.locally().read_ports(swapped, timeout_s=10)
        assert (seen[port_guid(1)], seen[port_guid(3)]) == (None, dict(observed.end_ports[port_guid(3)].pkeys))

    def test_options_are_the_files_and_the_command_lines_and_no_key_is_told(self, pair: Pair) -> None:
        options = pair.manager.options()
        assert options.in_file["sm_priority"] == "14"
        assert options.in_file["sminfo_polling_timeout"] == "500"
        assert "log_file" not in options.in_file
        assert not options.is_stale
        conf = Path(options.config)
        before = conf.read_text()
        conf.write_text(before + "m_key 0x00000000deadbeef\nsm_key 0x1\n keep_pkey_indexes FALSE\n")
        os.utime(conf, (time.time() + 100, time.time() + 100))
        try:
            changed = pair.manager.options()
            assert (changed.keys, changed.is_stale) == ({"m_key": True, "sm_key": False}, True)
            assert changed.in_file["keep_pkey_indexes"] == "FALSE"
            raw = pair.manager._checked("options")
            assert b"deadbeef" not in raw
        finally:
            conf.write_text(before)


class TestReading:
    def test_every_port_and_its_leafs_copy_agree_with_smpquery(self, pair: Pair) -> None:
        observed = pair.settle(p0010=[port_guid(1), port_guid(3)], p0020=[port_guid(3), port_guid(4)])
        assert set(observed.end_ports) == {port_guid(index) for index in range(6)}
        assert len(observed.ports) == 8
        for port in observed.ports.values():
            assert port.is_read, port.error
            words = [str(port.lid)] if port.node_type == "CA" else [str(port.lid), "0"]
            assert port.pkeys == keys_by_smpquery(pair.fabric, *words)
            if port.node_type == "CA":
                assert port.leaf is not None
                index = HCAS.index(int(port.node_guid, 16))
                assert port.leaf.guid == f"0x{LEAVES[index // 3]:016x}"
                assert port.leaf.port == index % 3 + 1
                assert port.leaf.pkeys == keys_by_smpquery(pair.fabric, str(port.leaf.lid), str(port.leaf.port))
                text = pair.fabric.ask(1, "smpquery", "portinfo", str(port.leaf.lid), str(port.leaf.port))
                bits = dict(re.findall(r"^PartEnforce(Inb|Outb):\.*(\d)", text, re.MULTILINE))
                assert (port.leaf.enforce_in, port.leaf.enforce_out) == (bits["Inb"] == "1", bits["Outb"] == "1")
        assert holders(observed, 0x8010) == {port_guid(1), port_guid(3)}
        assert holders(observed, 0x8020) == {port_guid(3), port_guid(4)}

    def test_names_states_lids_and_both_sms(self, pair: Pair) -> None:
        observed = pair.settle()
        master = observed.ports[port_guid(MASTER)]  # type: ignore[index]
        assert {port.state for port in observed.end_ports.values()} == {"ACTIVE"}
        assert {port.phys for port in observed.end_ports.values()} == {"LinkUp"}
        assert {port.master_sm_lid for port in observed.ports.values()} == {master.lid}
        assert {str(port.guid) for port in observed.ports.values() if port.is_sm} == {
            port_guid(MASTER), port_guid(STANDBY),
        }  # fmt: skip
        assert {(str(sm.guid), sm.state, sm.priority) for sm in observed.sms} == {
            (port_guid(MASTER), "MASTER", 14), (port_guid(STANDBY), "STANDBY", 1),
        }  # fmt: skip
        assert master.description == "srv0 mlx5_0"
        assert master.capacity == 64
        text = pair.fabric.ask(1, "smpquery", "portinfo", str(master.lid))
        assert f"Lid:.............................{master.lid}" in text

    def test_list_and_own_discovery_find_the_same(self, pair: Pair) -> None:
        listed, discovered = pair.settle(p0030=[port_guid(2)]), pair.read("discovery")
        assert discovered.ports == listed.ports
        assert (listed.topology, discovered.topology) == ("list", "discovery")
        assert listed.list_mtime_ns == pair.master.list_file.stat().st_mtime_ns
        assert discovered.list_mtime_ns is None

    def test_a_port_that_refuses_its_table_is_unreadable_and_the_others_are_read(self, pair: Pair) -> None:
        pair.settle()
        pair.fabric.type(f'Error "H-{HCAS[2]:016x}"[1] 100 0x16')
        try:
            observed = pair.read()
        finally:
            pair.fabric.type(f'Error "H-{HCAS[2]:016x}"[1] 0 0x16')
        sick = observed.ports[port_guid(2)]  # type: ignore[index]
        assert (sick.reading, sick.pkeys) == ("unreadable", {})
        assert sick.error is not None
        assert "timeout" in sick.error
        assert observed.timeouts >= 3
        assert [str(port.guid) for port in observed.ports.values() if not port.is_read] == [port_guid(2)]

    def test_a_lid_that_answers_as_another_port_is_not_believed(self, pair: Pair, tmp_path: Path) -> None:
        observed = pair.settle()
        lids = [observed.ports[port_guid(index)].lid for index in (2, 3)]  # type: ignore[index]
        first, second = (f"LID:{lid:04X}" for lid in lids)
        text = pair.master.list_file.read_text()
        swapped = text.replace(first, "LID:????").replace(second, first).replace("LID:????", second)
        (tmp_path / "list").write_text(swapped)
        pair.master.set(f"LIST={tmp_path}/list")
        try:
            wrong = pair.read()
        finally:
            pair.master.set(f"LIST={pair.master.list_file}")
        unread = {str(port.guid): port.error for port in wrong.ports.values() if not port.is_read}
        assert set(unread) == {port_guid(2), port_guid(3)}
        assert unread[port_guid(2)] == f"LID {lids[1]} answers as port {port_guid(3)} of node 0x{HCAS[3]:016x}"

    def test_the_pace_is_kept(self, pair: Pair) -> None:
        reading = parse_reading(pair.manager.read_tables(topology="list", smps_per_s=100, timeout_s=30))
        # A window's worth may go out at once; a slow machine may only be slower.
        assert reading.seconds >= (reading.smps - 8) / 100

    def test_a_missing_and_a_foreign_list_are_named(self, pair: Pair, tmp_path: Path) -> None:
        (tmp_path / "foreign").write_text(pair.master.list_file.read_text() + "{ CA Ports:01 and so on }\n")
        try:
            pair.master.set(f"LIST={tmp_path}/missing")
            with pytest.raises(FileMissing, match="no sweep as master"):
                pair.read()
            pair.master.set(f"LIST={tmp_path}/foreign")
            with pytest.raises(FileUnreadable, match="is not as OpenSM"):
                pair.read()
        finally:
            pair.master.set(f"LIST={pair.master.list_file}")

    def test_a_list_that_does_not_come_to_rest_is_not_parsed(self, pair: Pair, tmp_path: Path) -> None:
        moving = tmp_path / "moving"
        moving.write_text(pair.master.list_file.read_text())
        pair.master.set(f"LIST={moving}")
        script = f"while :; do touch {moving}; sleep 0.05; done"
        with subprocess.Popen(["sh", "-c", script]) as toucher:
            try:
                with pytest.raises((FileUnreadable, CallTimedOut)):
                    pair.manager.read_tables(topology="list", timeout_s=1)
            finally:
                toucher.kill()
                pair.master.set(f"LIST={pair.master.list_file}")

    def test_readers_leave_no_litter_and_no_client_slot(self, pair: Pair) -> None:
        for _ in range(12):  # the simulator has ten slots
            pair.manager.sm_state()
        assert pair.fabric.litter() == []

    def test_a_reader_that_is_stopped_leaves_no_litter_either(self, pair: Pair) -> None:
        with pytest.raises((CallTimedOut, VerbFailed)) as caught:
            pair.manager.read_tables(topology="list", smps_per_s=5, timeout_s=1)
        assert isinstance(caught.value, CallTimedOut), caught.value
        wait_until(lambda: pair.fabric.litter() == [])


class TestBarrier:
    def test_without_it_a_stopped_masters_tables_are_stale_and_with_it_never(self, pair: Pair) -> None:
        """The design's deterministic case: the master stands still while the file is placed and the signal sent.

        So does the standby: it would take over from a master that answers no more.
        """
        before = pair.settle(p0040=[port_guid(1)])
        for opensm in (pair.standby_opensm, pair.opensm):
            os.kill(opensm.pid, signal.SIGSTOP)
        try:
            pair.place(p0040=[port_guid(2)])
            mark = pair.manager.reload()
            assert mark.activity == -1
            stale = pair.read()
            assert holders(stale, 0x8040) == holders(before, 0x8040) == {port_guid(1)}
            with pytest.raises(BarrierTimedOut, match="was not rewritten"):
                pair.manager.barrier(mark, timeout_s=1)
        finally:
            for opensm in (pair.opensm, pair.standby_opensm):
                os.kill(opensm.pid, signal.SIGCONT)
        settled = pair.manager.barrier(mark, timeout_s=20)
        assert settled.list_mtime_ns > mark.list_mtime_ns
        assert settled.waited_s >= 0.5
        assert holders(pair.read(), 0x8040) == {port_guid(2)}

    def test_moves_in_a_row_are_each_read_as_placed(self, pair: Pair) -> None:
        for turn in range(4):
            wanted = port_guid(1 + turn % 4)
            assert holders(pair.settle(p0050=[wanted]), 0x8050) == {wanted}

    def test_a_list_that_was_only_touched_is_no_sweep(self, pair: Pair) -> None:
        pair.settle()
        mark = pair.manager.reload()
        pair.manager.barrier(mark, timeout_s=20)
        state = pair.manager.sm_state()
        mark = replace(mark, list_mtime_ns=pair.master.list_file.stat().st_mtime_ns, activity=state.activity)
        os.utime(pair.master.list_file)
        # The standby's polling raises the activity count all the time, but not by one for each port in a second.
        with pytest.raises(BarrierTimedOut, match="the sweeps go on"):
            pair.manager.barrier(mark, timeout_s=1)

    def test_a_standby_has_no_barrier(self, pair: Pair) -> None:
        manager = pair.standby.locally()
        mark = manager.reload()
        with pytest.raises(NotMaster, match="STANDBY"):
            manager.barrier(mark, timeout_s=5)

    def test_another_process_than_the_marked_one_ends_it(self, pair: Pair) -> None:
        mark = pair.manager.reload()
        began = time.monotonic()
        with pytest.raises(OpenSMDiffers, match="ended after it was reloaded"):
            pair.manager.barrier(replace(mark, started=mark.started - 1), timeout_s=20)
        assert time.monotonic() - began < 10
        pair.manager.barrier(mark, timeout_s=20)

    def test_opensms_own_words_about_a_bad_file_are_in_the_log_since(self, pair: Pair) -> None:
        pair.settle()
        pair.master.partitions.write_text("Default=0x7fff : ALL=limited;\r\n")  # by hand, with CR: OpenSM rejects it
        mark = pair.manager.reload()
        pair.manager.barrier(mark, timeout_s=20)
        assert b"retrying with default config" in pair.manager.log_since(mark)
        assert {tuple(port.pkeys.values()) for port in pair.read().end_ports.values()} == {(0xFFFF,)}
        assert b"retrying" not in pair.manager.log_since(replace(mark, log_offset=pair.master.log.stat().st_size))
        pair.settle()


def test_each_line_of_a_reading_is_json_of_the_agreed_shape(pair: Pair) -> None:
    lines = [json.loads(line) for line in pair.manager.read_tables(topology="list", timeout_s=30).splitlines()]
    assert [line["kind"] for line in lines] == ["reading"] + ["port"] * 8 + ["sm"] * 2 + ["end"]
    assert set(lines[1]) == {
        "kind", "port_guid", "node_guid", "system_guid", "node_type", "port", "lid", "state", "phys", "master_sm_lid",
        "is_sm", "capacity", "pkeys", "leaf", "description", "reading", "error",
    }  # fmt: skip
    assert set(lines[-1]) == {"kind", "ports", "smps", "timeouts", "seconds"}
