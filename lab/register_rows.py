"""Rows of servers that never registered, to see what a registration costs beside very many of them."""

import contextlib
import itertools
import json
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from lab.register_storm import hostname, port_guids

_TABLES = ("inventory_server", "inventory_hca", "inventory_port")


def fill(url: str, numbers: Iterable[int], *, hcas: int) -> None:
    """Put servers `numbers` into the database at `url`, made after one that has registered there."""
    with _connected(url) as (connection, mark):
        first = {table: _first_row(connection, table) for table in _TABLES}
        ids = {table: itertools.count(_last_id(connection, table) + 1) for table in _TABLES}
        rows: dict[str, list[dict[str, Any]]] = {table: [] for table in _TABLES}
        for number in numbers:
            server = next(ids["inventory_server"])
            names = {"id": server, "public_id": f"f{number:011}", "hostname": hostname(number), "report": None}
            rows["inventory_server"].append(first["inventory_server"] | names)
            for guid in port_guids(number, hcas):
                hca, node = next(ids["inventory_hca"]), guid[:-1] + "0"
                its = {"id": hca, "server_id": server, "node_guid": node, "system_image_guid": node}
                rows["inventory_hca"].append(first["inventory_hca"] | its)
                port = {"id": next(ids["inventory_port"]), "hca_id": hca, "guid": guid}
                rows["inventory_port"].append(first["inventory_port"] | port)
        for table in _TABLES:
            columns = list(first[table])
            places = ", ".join([mark] * len(columns))
            statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608  names of columns
            lines = [[_plain(row[column]) for column in columns] for row in rows[table]]
            connection.cursor().executemany(statement, lines)
            if mark == "%s":
                connection.execute(
                    f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}"  # noqa: S608
                )
        connection.commit()
        if mark == "%s":
            connection.execute("ANALYZE")  # as autovacuum would have by then
            connection.commit()


@contextlib.contextmanager
def _connected(url: str) -> Iterator[tuple[Any, str]]:
    """A connection, and how it marks a parameter."""
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite://"), timeout=60)) as connection:
            yield connection, "?"
        return
    import psycopg

    with psycopg.connect(url) as connection:
        yield connection, "%s"


def _first_row(connection: Any, table: str) -> dict[str, Any]:
    cursor = connection.cursor()
    cursor.execute(f"SELECT * FROM {table} ORDER BY id LIMIT 1")  # noqa: S608
    return dict(zip((column[0] for column in cursor.description), cursor.fetchone(), strict=True))


def _plain(value: Any) -> Any:
    """`value` as it goes in again: psycopg gives JSON as lists and objects, and would take a list for an array."""
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def _last_id(connection: Any, table: str) -> int:
    cursor = connection.cursor()
    cursor.execute(f"SELECT max(id) FROM {table}")  # noqa: S608
    return int(cursor.fetchone()[0])
