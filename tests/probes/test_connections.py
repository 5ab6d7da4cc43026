"""What docs/connections.md says was checked here: P_Key tables, LIDs and paths in four scenarios, with two real OpenSM.

A connection that stands uses an index of its port's P_Key table and the LIDs of both ports. So it can go on only if
these stay, and must be dropped if its entry goes. Whether the HCA does so only hardware shows.
"""

from dataclasses import dataclass

import pytest

from remote.manager_host import ManagerHost
from remote.path_record import Answer
from subnet.guid import GUID
from subnet.observed import parse_reading
from tests.remote.mini_fabric import mini_fabric, port_guid
from tests.remote.sites import Host, make_key, wait_until

pytestmark = [pytest.mark.contract, pytest.mark.xdist_group("connections-fabric")]

MASTER, STANDBY = 0, 5
ONE, TWO, THREE, FOUR = (GUID(port_guid(hca)) for hca in (1, 2, 3, 4))
ACME, BERT = 0x10, 0x20


def file(acme: dict[str, str], bert: dict[str, str]) -> bytes:
    lines = ["Default=0x7fff, ipoib, defmember=limited :\n ALL=limited,\n ALL_SWITCHES=full,"]
    lines += [f" {port_guid(MASTER)}=full,\n {port_guid(STANDBY)}=full,\n SELF=full;"]
    for name, pkey, members in (("acme", ACME, acme), ("bert", BERT, bert)):
        lines.append(f"{name}=0x{pkey:04x} : {', '.join(f'{guid}={kind}' for guid, kind in members.items())};")
    return ("\n".join(lines) + "\n").encode()


@dataclass
class Fabric:
    """Both manager hosts, and the process of the master."""

    master: Host
    standby: Host
    process: object
    asked: ManagerHost

    def settle(self, acme: dict[str, str], bert: dict[str, str]) -> None:
        for host in (self.master, self.standby):
            host.partitions.write_bytes(file(acme, bert))
        self.asked.barrier(self.asked.reload(), timeout_s=60)

    def ports(self) -> dict[GUID, tuple[int, dict[int, int]]]:
        """LID and table of every HCA port."""
        read = parse_reading(self.asked.read_tables(topology="discovery", timeout_s=60))
        return {guid: (port.lid, dict(port.pkeys)) for guid, port in read.ports.items() if port.node_type == "CA"}

    def path(self, one: GUID, other: GUID) -> tuple[Answer, int]:
        [answer] = self.asked.path_records([(one, other)], timeout_s=30).answers
        return answer.answer, int(answer.pkey or "0", 16) & 0x7FFF


@pytest.fixture
def fabric(tmp_path):
    """Acme has ONE and TWO, Bert THREE; FOUR is nobody's. A reload has come to its end."""
    key = tmp_path / "key"
    make_key(key)
    with mini_fabric(tmp_path / "fabric") as running:
        hosts = [running.manager_host(name, hca, key.with_suffix(".pub")) for name, hca in (("m1", 0), ("m2", 5))]
        for host in hosts:
            host.partitions.write_bytes(file({ONE: "full", TWO: "full"}, {THREE: "full"}))
        process = running.start_opensm(hosts[0], MASTER, priority=14)
        wait_until(lambda log=hosts[0].log: log.exists() and "SUBNET UP" in log.read_text(), within_s=90)
        running.start_opensm(hosts[1], STANDBY, priority=1)
        wait_until(lambda log=hosts[1].log: log.exists() and "STANDBY" in log.read_text(), within_s=90)
        asked = hosts[0].locally()
        asked.barrier(asked.reload(), timeout_s=30)
        yield Fabric(hosts[0], hosts[1], process, asked)


def index_of(table: dict[int, int], pkey: int) -> int:
    [index] = [index for index, entry in table.items() if entry & 0x7FFF == pkey]
    return index


def test_a_member_added_elsewhere_leaves_every_other_port_as_it_was(fabric):
    before = fabric.ports()
    fabric.settle({ONE: "full", TWO: "full", FOUR: "full"}, {THREE: "full"})
    after = fabric.ports()
    assert after.pop(FOUR) != before.pop(FOUR)
    assert after == before
    assert fabric.path(ONE, TWO) == fabric.path(ONE, FOUR) == (Answer.FOUND, ACME)


def test_a_server_that_moved_away_loses_its_entry_and_its_peers_keep_theirs(fabric):
    before = fabric.ports()
    left = index_of(before[TWO][1], ACME)
    fabric.settle({ONE: "full"}, {THREE: "full", TWO: "full"})
    after = fabric.ports()
    lid, table = after.pop(TWO)
    assert lid == before.pop(TWO)[0]
    assert after == before
    # The freed index is empty: the new key has another one, so what used the old one is in no partition now.
    assert left not in table
    assert index_of(table, BERT) != left
    assert fabric.path(ONE, TWO)[0] is Answer.REFUSED
    assert fabric.path(THREE, TWO) == (Answer.FOUND, BERT)


def test_full_and_limited_change_in_place_and_two_limited_ones_have_no_path(fabric):
    index = index_of(fabric.ports()[TWO][1], ACME)
    fabric.settle({ONE: "full", TWO: "limited"}, {THREE: "full"})
    assert fabric.ports()[TWO][1][index] == ACME
    assert fabric.path(ONE, TWO) == (Answer.FOUND, ACME)
    fabric.settle({ONE: "limited", TWO: "limited"}, {THREE: "full"})
    assert fabric.path(ONE, TWO)[0] is Answer.REFUSED
    fabric.settle({ONE: "full", TWO: "full"}, {THREE: "full"})
    assert fabric.ports()[TWO][1][index] == ACME | 0x8000


def test_a_takeover_changes_no_table_and_no_lid_and_the_new_sa_answers_alike(fabric):
    pairs = [(ONE, TWO), (ONE, THREE), (TWO, ONE)]
    before, told = fabric.ports(), [fabric.path(*pair) for pair in pairs]
    fabric.process.terminate()
    fabric.process.wait(30)
    fabric.asked = fabric.standby.locally()
    wait_until(lambda: fabric.asked.sm_state().state == "MASTER", within_s=60)
    wait_until(lambda: "SUBNET UP" in fabric.standby.log.read_text(), within_s=60)
    assert fabric.ports() == before
    assert [fabric.path(*pair) for pair in pairs] == told
    assert fabric.asked.path_records(pairs[:1], timeout_s=30).sm_guid == port_guid(STANDBY)
