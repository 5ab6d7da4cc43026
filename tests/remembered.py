"""Rows that many tests begin with: made once in a while by the product, and copied into the database for the others.

What makes them takes half a second and thousands of tests ask for it. A copy is a minute old at most, because readings
of the fabric grow stale; by the clock of the wall too, which goes on while a machine is suspended, and which a test
may have stopped.
"""

import functools
import pickle
from collections.abc import Callable, Collection
from dataclasses import dataclass
from time import monotonic, time
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

LASTS_S = 60


@dataclass(frozen=True)
class Copy:
    """What was made: the object pickled, and the rows that came into being with it, by table."""

    made_at: tuple[float, float]  # seconds, by both clocks
    made: bytes
    rows: dict[str, tuple[list[str], list[tuple[Any, ...]]]]

    @property
    def is_fresh(self) -> bool:
        """Whether neither clock has gone on for more than a minute since."""
        return all(0 <= now - then < LASTS_S for now, then in zip(clocks(), self.made_at, strict=True))


def clocks() -> tuple[float, float]:
    """What no test stops: the seconds that this machine has run, and the wall's."""
    return monotonic(), time()


def remembered[Made](make: Callable[[], Made]) -> Callable[[], Made]:
    """`make`, whose rows are put back from a copy while it is fresh. On PostgreSQL it is called each time."""
    copies: list[Copy] = []

    @functools.wraps(make)
    def give() -> Made:
        if connection.vendor != "sqlite":
            return make()
        if abs(timezone.now().timestamp() - time()) > 1:
            return make()  # the test has a time of its own
        if copies and copies[0].is_fresh:
            if not is_empty(copies[0].rows):
                return make()
            put_back(copies[0])
            made: Made = pickle.loads(copies[0].made)  # noqa: S301  our own bytes
            return made
        before = everything()
        made = make()
        rows = {table: held for table, held in everything().items() if held != before[table]}
        if not any(before[table][1] for table in rows):  # else the test has rows of its own among them
            copies[:] = [Copy(clocks(), pickle.dumps(made), rows)]
        return made

    return give


def everything() -> dict[str, tuple[list[str], list[tuple[Any, ...]]]]:
    """Columns and rows of every table."""
    found = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608  our own names
            found[table] = [column[0] for column in cursor.description], cursor.fetchall()
    return found


def is_empty(tables: Collection[str]) -> bool:
    """Whether none of `tables` holds a row."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + " OR ".join(f'EXISTS (SELECT 1 FROM "{table}")' for table in tables))  # noqa: S608
        (found,) = cursor.fetchone()
    return not found


def put_back(copy: Copy) -> None:
    """Insert the rows of `copy`."""
    with transaction.atomic(), connection.cursor() as cursor:
        for table, (columns, rows) in copy.rows.items():
            names = ", ".join(f'"{column}"' for column in columns)
            cursor.executemany(
                f'INSERT INTO "{table}" ({names}) VALUES ({", ".join(["%s"] * len(columns))})',  # noqa: S608
                rows,
            )
