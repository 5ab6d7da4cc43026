"""`./run bench register`: a boot storm of servers that nobody knows yet, against one machine, on both databases.

A registration is the whole of it: a server enrols with a token and reports its ports, each over a connection of its
own, while 255 others do the same. The door is started as `./run up` starts it. Afterwards every port must stand in the
database under its own server: `lost` counts servers of which that is not so. `growth` compares what a registration
costs (processor time of door, broker and database) when 20,000 servers are there with 1,000; the servers in between
are rows put straight into the tables. `cpu_ms` is the same time for one registration, without that of the servers that
send (`sender_ms`), and `unchanged_…` is the report of every hour, which says nothing new and must write no event.
"""

import argparse
import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

from lab import register_rows, register_storm
from lab.bench import Bench, Figures
from lab.register_door import RegisterDoor, door

SMALL, LARGE, WINDOW = 1_000, 20_000, 500  # servers at which a registration's cost is compared, and over how many
_PORTS = (
    "SELECT p.guid, s.hostname FROM inventory_port p"
    " LEFT JOIN inventory_hca h ON h.id = p.hca_id LEFT JOIN inventory_server s ON s.id = h.server_id"
)


@dataclass(frozen=True)
class Database:
    """An empty database and a way to ask it for rows."""

    url: str
    pid: int | None  # of its server, which costs processor time of its own

    def ports(self) -> dict[str, str]:
        """Every port GUID and the host name of the server it stands under."""
        return dict(self._rows(_PORTS))

    def events(self) -> int:
        """How many events the trail has."""
        return int(self._rows("SELECT count(*) FROM audit_event")[0][0])

    def _rows(self, statement: LiteralString) -> list[Any]:
        if self.url.startswith("sqlite"):
            with contextlib.closing(sqlite3.connect(self.url.removeprefix("sqlite://"))) as database:
                return database.execute(statement).fetchall()
        import psycopg

        with psycopg.connect(self.url) as database:
            return database.execute(statement).fetchall()


def measure(arguments: argparse.Namespace) -> Figures:
    """Registrations a second on SQLite and PostgreSQL, how many were lost, and how the cost of one grows."""
    figures: dict[str, float] = {"servers": arguments.servers, "ports": arguments.servers * arguments.hcas}
    lost = 0
    for name, database in (("sqlite", _sqlite()), ("postgresql", _postgresql())):
        with database as found, door(found.url, uses=100_000, database_pid=found.pid) as opened:
            lost += _measure_one(name, found, opened, arguments, figures)
    figures["lost"] = lost
    return figures


def _measure_one(
    name: str, database: Database, opened: RegisterDoor, arguments: argparse.Namespace, figures: dict[str, float]
) -> int:
    servers, hcas = arguments.servers, arguments.hcas
    small, window = min(SMALL, servers // 2), min(WINDOW, max(1, servers // 4))
    parts = [range(small), range(small, small + window), range(small + window, servers)]
    storms = [register_storm.run(opened, part, hcas=hcas) for part in parts]
    figures[f"{name}_per_s"] = round(servers / sum(storm.seconds for storm in storms), 1)
    figures[f"{name}_cpu_ms"] = round(sum(storm.cpu_s for storm in storms) / servers * 1e3, 2)
    figures[f"{name}_sender_ms"] = round(sum(storm.client_s for storm in storms) / servers * 1e3, 2)
    figures[f"{name}_longest_s"] = round(max(storm.longest_s for storm in storms), 2)
    figures[f"{name}_tries_again"] = sum(storm.tries_again for storm in storms)
    events = database.events()
    hourly = register_storm.again(opened, parts[1], hcas=hcas)
    figures[f"{name}_unchanged_per_s"] = round(window / hourly.seconds, 1)
    figures[f"{name}_unchanged_cpu_ms"] = round(hourly.cpu_s / window * 1e3, 2)
    figures[f"{name}_unchanged_events"] = database.events() - events
    last = range(LARGE - window, LARGE)
    register_rows.fill(database.url, range(servers, last.start), hcas=hcas)
    large = register_storm.run(opened, last, hcas=hcas)
    figures[f"{name}_growth"] = round(large.cpu_s / storms[1].cpu_s, 2)
    found = database.ports()
    lost: int = servers + window - sum(storm.answered for storm in [*storms, large])
    for number in (*range(servers), *last):
        here = register_storm.hostname(number)
        lost += any(found.get(guid) != here for guid in register_storm.port_guids(number, hcas))
    return lost


@contextlib.contextmanager
def _sqlite() -> Iterator[Database]:
    with tempfile.TemporaryDirectory(prefix="fabricui-storm-") as folder:
        yield Database(url=f"sqlite://{Path(folder) / 'storm.sqlite3'}", pid=None)


@contextlib.contextmanager
def _postgresql() -> Iterator[Database]:
    import psycopg

    from lab.postgresql import cluster

    with cluster() as url:
        folder = url.partition("?host=")[2]
        with psycopg.connect(url.replace("/fabricui?", "/postgres?"), autocommit=True) as database:
            database.execute("CREATE DATABASE fabricui")
        pid = int((Path(folder) / "data" / "postmaster.pid").read_text().splitlines()[0])
        yield Database(url=url, pid=pid)


BENCH = Bench(
    measure=measure,
    targets={
        "sqlite_per_s": ">= 60",
        "postgresql_per_s": ">= 150",
        "lost": "<= 0",
        "sqlite_unchanged_events": "<= 0",
        "postgresql_unchanged_events": "<= 0",
        "sqlite_growth": "<= 1.3",
        "postgresql_growth": "<= 1.3",
    },
    what="A boot storm: enrolling and registering",
    servers=5000,
)
