"""How fast a plan is drawn up and a file is written and read back, for one moved server on a large fabric."""

import argparse
import gc
import random
import statistics
import time
from collections.abc import Callable

from lab.bench import Bench, Figures
from subnet.guid import GUID
from subnet.observed import ObservedFabric, PortReading, SeenSM
from subnet.partitions_conf import NEWEST, Header, digest, parse_strict, render, table_digest
from subnet.pkey import DEFAULT, LAST_USABLE, Membership, PKey, entry
from subnet.plan import diff
from subnet.table import Member, Partition, PartitionTable

PORTS_PER_SERVER = 8
SERVERS_PER_PARTITION = 10
GROWTH = (1_000, 10_000, 40_000)  # ports
SM_PORTS = (GUID("0x0002c903000a0001"), GUID("0x0002c903000b0001"))
_CAPACITY = 128


def a_table(ports: int, *, moved: bool = False) -> PartitionTable:
    """Servers of 8 ports, ten servers a partition, ten partitions a tenant, beside a shared storage partition.

    Everything drawn by a fixed seed. `moved` puts the first server into the second partition.
    """
    chance = random.Random(20260101)  # noqa: S311  the same fabric in each run
    servers = ports // PORTS_PER_SERVER
    partitions = max(2, servers // SERVERS_PER_PARTITION)
    pkeys = chance.sample(range(1, LAST_USABLE), partitions + 1)
    guids = [GUID(f"0x{0x0002C90300000000 + 16 * at:016x}") for at in range(1, servers * PORTS_PER_SERVER + 1)]
    chance.shuffle(guids)
    members: list[list[Member]] = [[] for _ in range(partitions)]
    labels: dict[GUID, str] = {}
    for server in range(servers):
        place = server % partitions
        if moved and server == 0:
            place = 1
        for guid in guids[server * PORTS_PER_SERVER : (server + 1) * PORTS_PER_SERVER]:
            members[place].append(Member(guid, Membership.FULL))
            labels[guid] = f"srv-{server:05}.hall-1"
    storage = Partition(
        PKey(pkeys[-1]), "storage", None, tuple(Member(guid, Membership.LIMITED) for guid in guids[::10])
    )
    return PartitionTable(
        sm_ports=SM_PORTS,
        partitions=(
            storage,
            *(
                Partition(PKey(pkeys[at]), f"group-{at}", f"tenant-{at // 10}", tuple(held))
                for at, held in enumerate(members)
            ),
        ),
        labels=labels,
    )


def a_fabric(table: PartitionTable) -> ObservedFabric:
    """Every port of `table`, holding what it says, each key at the next index."""
    ports: dict[GUID, PortReading] = {}
    for lid, guid in enumerate([*SM_PORTS, *table.labels], start=1):
        keys = table.keys_of(guid, "CA")
        entries = {0: entry(DEFAULT, keys.pop(DEFAULT))}
        entries |= {at: entry(*key) for at, key in enumerate(keys.items(), start=1)}
        ports[guid] = PortReading(
            guid=guid, node_guid=guid, system_guid=None, node_type="CA", number=1, lid=lid, state="ACTIVE",
            phys="LinkUp", master_sm_lid=1, is_sm=guid in SM_PORTS, capacity=_CAPACITY, pkeys=entries, leaf=None,
            description="", reading="read", error=None,
        )  # fmt: skip
    masters = (SeenSM(SM_PORTS[0], 1, "MASTER", 5, 1),)
    return ObservedFabric(ports, masters, "list", 1, 1, 0.0, 0)


def measure_plan(arguments: argparse.Namespace) -> Figures:
    """Seconds of one plan with impact and index prediction, and how they grow with the ports."""

    def one(ports: int) -> Callable[[], object]:
        current, wanted = a_table(ports), a_table(ports, moved=True)
        seen = a_fabric(current)
        # Fresh tables each time: nothing that a table looks up lazily may be left from the run before.
        stored, planned = current.to_json(), wanted.to_json()
        return lambda: diff(PartitionTable.from_json(stored), PartitionTable.from_json(planned), seen)

    return _figures(arguments, one, "plan")


def measure_render(arguments: argparse.Namespace) -> Figures:
    """Seconds of rendering, strict parsing and both digests, and how they grow with the ports."""

    def one(ports: int) -> Callable[[], object]:
        table = a_table(ports, moved=True)
        header = Header("hall-1", 7, "0" * 64, layout=NEWEST)

        def run() -> None:
            data = render(table, header)
            parse_strict(data)
            digest(data)
            table_digest(table)

        return run

    return _figures(arguments, one, "render")


def _figures(arguments: argparse.Namespace, one: Callable[[int], Callable[[], object]], name: str) -> Figures:
    ports = arguments.servers * arguments.hcas
    wall, cpu = _seconds(one(ports), arguments.runs)
    figures: dict[str, float] = {"ports": ports, f"{name}_s": round(wall, 4), f"{name}_cpu_s": round(cpu, 4)}
    for size in GROWTH:
        _, seconds = _seconds(one(size), arguments.runs)
        figures[f"us_per_port_at_{size // 1000}k"] = round(seconds / size * 1e6, 3)
    # n log n would grow by log 40k / log 1k = 1.5 a port.
    figures["growth_per_port"] = round(figures["us_per_port_at_40k"] / figures["us_per_port_at_1k"], 2)
    return figures


def _seconds(run: Callable[[], object], runs: int) -> tuple[float, float]:
    """Median wall and least processor seconds of `runs` runs after one that does not count.

    Other work on the machine only ever adds to processor time (caches), so the least of it is what the job takes.
    """
    run()
    walls, cpus = [], []
    for _ in range(runs):
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return statistics.median(walls), min(cpus)


PLAN = Bench(
    measure=measure_plan,
    targets={"plan_s": "<= 1.0"},
    what="Planning the move of one server, with impact and index prediction",
    servers=5000,
)
RENDER = Bench(
    measure=measure_render,
    targets={"render_s": "<= 0.5"},
    what="Rendering, strict parsing and digests",
    servers=5000,
)
