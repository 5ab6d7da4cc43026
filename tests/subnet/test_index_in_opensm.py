"""Predictions beside the real OpenSM: random moves in one running process, wraps, toggles, and takeovers.

Every port of a small lab goes its own random way through the same files; after each file the tables are read behind
the barrier and compared with what was predicted from the tables before.
"""

import random
from dataclasses import dataclass, field

import pytest

from lab import breaking
from lab.layout import wait_until
from lab.settling import settle
from lab.site import Site
from remote.manager_host import ManagerHost
from remote.ssh import SSHShell
from subnet.guid import GUID
from subnet.index import PortHistory, Prediction, predict
from subnet.observed import ObservedFabric, parse_reading
from subnet.partitions_conf import NO_PARENT, Header, render
from subnet.pkey import Membership, PKey
from subnet.table import Member, Partition, PartitionTable

pytestmark = pytest.mark.contract

FULL, LIMITED = Membership.FULL, Membership.LIMITED
CAPACITY = 64  # of every HCA in the simulator
Keys = dict[PKey, Membership]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    with Site.up(tmp_path_factory.mktemp("lab") / "site", servers=6, hcas=2, owned=True) as site:
        bench = Bench(site)
        yield bench
        bench.close()


class Bench:
    """The lab with a connection to both manager hosts: put a file in place, have it read, see what became of it."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.ports = [guid for box in site.fabric.servers for guid in box.port_guids]
        self.sm_ports = tuple(manager.port_guid for manager in site.managers)
        self.revision = 1
        self.shells = []
        self.hosts = {manager.name: self._host(manager) for manager in site.managers}

    def _host(self, manager) -> ManagerHost:
        shell = SSHShell(
            address=manager.address, port=manager.ssh_port, user=manager.user, key_file=self.site.manager_key,
            host_key=manager.host_key,
        )  # fmt: skip
        self.shells.append(shell)
        return ManagerHost(manager.name, shell, manager.wrapper_digest, manager.reader_digest)

    def close(self) -> None:
        for shell in self.shells:
            shell.close()

    def place(self, wanted: dict[GUID, Keys]) -> None:
        """Rename a file that gives each port its keys into place on both manager hosts."""
        members: dict[PKey, list[Member]] = {}
        for guid, keys in wanted.items():
            for pkey, membership in keys.items():
                members.setdefault(pkey, []).append(Member(guid, membership))
        partitions = tuple(Partition(pkey, f"p{int(pkey):04x}", None, tuple(who)) for pkey, who in members.items())
        self.revision += 1
        table = PartitionTable(sm_ports=self.sm_ports, partitions=partitions)
        data = render(table, Header(subnet="lab", revision=self.revision, parent=NO_PARENT))
        for manager in self.site.managers:
            beside = manager.partitions_file.with_suffix(".new")
            beside.write_bytes(data)
            beside.replace(manager.partitions_file)

    def read(self, manager: str) -> dict[GUID, dict[int, int]]:
        """Have the master read its file; the tables of the servers' ports once its sweep is over."""
        host = self.hosts[manager]
        host.barrier(host.reload(), timeout_s=20)
        fabric: ObservedFabric = parse_reading(host.read_tables(topology="list", timeout_s=20))
        for guid in self.ports:
            assert fabric.ports[guid].is_read
            assert fabric.ports[guid].capacity == CAPACITY
        return {guid: dict(fabric.ports[guid].pkeys) for guid in self.ports}

    def start_afresh(self) -> None:
        """Two new OpenSM processes, the first the master; the second was never one."""
        for manager in self.site.managers:
            breaking.restart_opensm(self.site, manager.name)
        self.site.wait_for_master("sm-a")
        # A MAD that ibsim lost would keep the first sweep from ending: the lab starts them anew then.
        settle(self.site, quiet_s=0.5)


@dataclass
class Way:
    """The way of one port: the tables it held since its OpenSM process began, and where it goes next.

    `style` says how the next keys are drawn: a few of a small pool as in daily work, ever new ones until the table
    wraps, full and limited in turn, or more than the table holds.
    """

    style: str
    chance: random.Random
    tables: list[dict[int, int]] = field(default_factory=list)
    keys: Keys = field(default_factory=dict)
    next_key: int = 0x100
    script: list[Keys] = field(default_factory=list)

    def draw(self) -> Keys:
        """The keys of the next file: the next of the script, if there is one."""
        if self.script:
            return self.script.pop(0)
        kept = {pkey: how for pkey, how in self.keys.items() if self.chance.random() < 0.7}
        if self.style == "new":
            count = self.chance.randint(6, 14)
            fresh = range(self.next_key, self.next_key + count)
            self.next_key += count
            kept = dict(list(kept.items())[-20:]) | {PKey(0x100 + key % 0x60): self._membership() for key in fresh}
        elif self.style == "toggle":
            kept = {pkey: self.chance.choice((FULL, LIMITED)) for pkey in kept}
        elif self.style == "overfull":
            kept |= {PKey(self.chance.randrange(1, 0x7FFF)): FULL for _ in range(self.chance.randint(20, 40))}
        few = {PKey(self.chance.randrange(0x40, 0x4C)): self._membership() for _ in range(self.chance.randint(0, 3))}
        self.keys = few | kept
        return self.keys

    def _membership(self) -> Membership:
        return LIMITED if self.style in ("toggle", "new") and self.chance.random() < 0.5 else FULL

    def predict(self, keys: Keys) -> Prediction:
        """What the next file should make of the port's table."""
        history = PortHistory(tables=tuple(self.tables), is_whole=True)
        return predict(self.tables[-1], CAPACITY, keys, LIMITED, history=history)


STYLES = ("few", "few", "new", "new", "toggle", "toggle", "overfull", "few", "new", "toggle", "overfull", "few")


def compare(way: Way, prediction, table: dict[int, int], places) -> None:
    """Every survivor at its index, every new key where `places` says, nothing else."""
    for index, number in prediction.survivors.items():
        assert table.get(index) == number, (way.style, index, hex(number), table)
    for number, indexes in places.items():
        found = {index for index, held in table.items() if held == number}
        assert found <= indexes, (way.style, hex(number), found, indexes)
        assert len(found) == min(1, len(indexes)), (way.style, hex(number), found, indexes)
    assert sorted(table.values()) == sorted(
        [*prediction.survivors.values(), *(number for number, indexes in places.items() if indexes)]
    )


def begin(bench: Bench, seed: int) -> dict[GUID, Way]:
    """Fresh processes, Default alone on every port, and a way for each."""
    bench.place({})
    bench.start_afresh()
    tables = bench.read("sm-a")
    return {
        guid: Way(style, random.Random(f"{seed} {number}"), [tables[guid]])  # noqa: S311  a seeded way
        for number, (guid, style) in enumerate(zip(bench.ports, STYLES, strict=True))
    }


def step(bench: Bench, ways: dict[GUID, Way], manager: str) -> dict[GUID, object]:
    """One more file, read by the running master; each port's new keys have exactly one index."""
    drawn = {guid: way.draw() for guid, way in ways.items()}
    predicted = {guid: way.predict(drawn[guid]) for guid, way in ways.items()}
    bench.place(drawn)
    tables = bench.read(manager)
    for guid, way in ways.items():
        prediction = predicted[guid]
        assert all(len(indexes) <= 1 for indexes in prediction.new.values())
        compare(way, prediction, tables[guid], prediction.new)
        way.tables.append(tables[guid])
    return predicted


def test_random_moves_in_one_running_opensm(bench):
    ways = begin(bench, 2)
    kinds = set()
    for _ in range(10):
        for prediction in step(bench, ways, "sm-a").values():
            kinds |= {hazard.kind for hazard in prediction.hazards}
    # The ways were not too tame: some table wrapped, and some was too small.
    assert {"table_full", "table_nearly_full", "freed_index_reused", "wrap_defect"} <= kinds


def test_a_key_toggled_before_the_wrap_takes_turns_with_another(bench):
    """The wrap defect (ground truth: OpenSM, 5.4): two keys in one slot, sweep by sweep, other slots free."""
    ways = begin(bench, 1)
    guid, way = next(iter(ways.items()))
    key, heir = PKey(0x10), PKey(0x11)
    filling = {PKey(number): FULL for number in range(0x200, 0x23E)}
    for keys in ({key: FULL}, {key: LIMITED}, {key: LIMITED} | filling, {heir: FULL} | filling):
        prediction = way.predict(keys)
        bench.place({guid: keys})
        way.tables.append(bench.read("sm-a")[guid])
        compare(way, prediction, way.tables[-1], prediction.new)
    assert way.tables[1] == {0: 0x7FFF, 1: 0x8010}
    assert way.tables[-1][1] == 0x8011
    del filling[PKey(0x200)]
    keys = {key: FULL, heir: FULL} | filling
    prediction = way.predict(keys)
    assert [(hazard.kind, hazard.keys) for hazard in prediction.hazards][-1] == ("wrap_defect", (0x8011, 0x8010))
    bench.place({guid: keys})
    seen = [bench.read("sm-a")[guid] for _ in range(4)]
    assert {table[1] for table in seen} == {0x8010, 0x8011}
    assert all(set(table) == set(range(64)) - {2} for table in seen)
    for number in (0x8010, 0x8011):
        assert prediction.new[number] == {1}


def test_a_port_that_left_and_came_back_is_met_anew(bench):
    """The process forgets a port that is not there during a sweep: the index that was freed last is the next."""
    ways = begin(bench, 3)
    hca = bench.site.fabric.servers[0].hcas[0]
    way = ways[hca.port_guid]
    first, second, third = PKey(0x21), PKey(0x22), PKey(0x23)
    for keys in ({first: FULL, second: FULL}, {first: FULL}):
        bench.place({hca.port_guid: keys})
        way.tables.append(bench.read("sm-a")[hca.port_guid])
    breaking.cut_link(bench.site, hca)
    wait_until(lambda: hca.port_guid not in bench.site.lids(), timeout_s=20, what="the port to be gone")
    breaking.restore_link(bench.site, hca)
    wait_until(lambda: hca.port_guid in bench.site.lids(), timeout_s=20, what="the port to be back")
    prediction = way.predict({first: FULL, third: FULL})
    assert prediction.new == {0x8023: {3}}
    bench.place({hca.port_guid: {first: FULL, third: FULL}})
    table = bench.read("sm-a")[hca.port_guid]
    assert table == {0: 0x7FFF, 1: 0x8021, 2: 0x8023}
    compare(way, prediction, table, prediction.acceptable)
    reused = [hazard for hazard in prediction.hazards if hazard.kind == "freed_index_reused_after_takeover"]
    assert [(hazard.keys, hazard.index) for hazard in reused] == [((0x8022, 0x8023), 2)]


def test_moves_go_on_across_takeovers(bench):
    """Three takeovers: by the standby, by a new process, and by one that was the master before.

    The last one remembers its first turn, which can set two keys on one slot without any wrap.
    """
    ways = begin(bench, 4)
    scripted = bench.ports[0]
    one, two, three = ({PKey(number): FULL} for number in (0x21, 0x22, 0x23))
    ways[scripted].script = [{}, {}, {}, {}, one | two | three, one, one, one | three]
    sharing = bench.ports[1]
    four, five, six = ({PKey(number): FULL} for number in (0x31, 0x32, 0x33))
    ways[sharing].script = [{}, {}, {}, {}, four | five, four, four | six, four | five | six]
    for _ in range(3):
        step(bench, ways, "sm-a")
    drawn = {guid: way.draw() for guid, way in ways.items()}
    predicted = {guid: way.predict(drawn[guid]) for guid, way in ways.items()}
    bench.place(drawn)
    breaking.kill_opensm(bench.site, "sm-a")
    bench.site.wait_for_master("sm-b")
    tables = bench.read("sm-b")
    for guid, way in ways.items():
        compare(way, predicted[guid], tables[guid], predicted[guid].after_takeover)
        way.tables = [tables[guid]]
    # What the new master remembers begins with its first sweep.
    for _ in range(2):
        step(bench, ways, "sm-b")
    turns = {guid: list(way.tables) for guid, way in ways.items()}
    # A handover by a living master, with the same file: for a moment two masters sweep, and nobody's keys move.
    breaking.start_opensm(bench.site, "sm-a")
    bench.site.wait_for_master("sm-a")
    tables = bench.read("sm-a")
    for guid, way in ways.items():
        assert tables[guid] == way.tables[-1], way.style
        way.tables = [tables[guid]]
    step(bench, ways, "sm-a")
    drawn = {guid: way.draw() for guid, way in ways.items()}
    bench.place(drawn)
    breaking.kill_opensm(bench.site, "sm-a")
    bench.site.wait_for_master("sm-b")
    tables = bench.read("sm-b")
    for guid, way in ways.items():
        # What sm-b made in its first turn, and what sm-a made of it while sm-b stood by.
        held = (*turns[guid], *way.tables)
        by_others = frozenset(range(len(turns[guid]), len(held)))
        history = PortHistory(tables=held, is_whole=True, by_others=by_others)
        prediction = predict(way.tables[-1], CAPACITY, drawn[guid], LIMITED, history=history)
        if not any(hazard.kind == "wrap_defect" for hazard in prediction.hazards):
            compare(way, prediction, tables[guid], prediction.new)
    # A process that was master before does not meet the ports anew: this key goes where it stood then.
    way = ways[scripted]
    assert tables[scripted] == {0: 0x7FFF, 1: 0x8021, 3: 0x8023}
    assert way.predict(drawn[scripted]).after_takeover == {0x8023: {2}}
    # And a slot that was given away meanwhile is given to the key that is remembered for it, in turns.
    assert {bench.read("sm-b")[sharing][2] for _ in range(4)} == {0x8032, 0x8033}
    breaking.start_opensm(bench.site, "sm-a")
    bench.site.wait_for_master("sm-a")
