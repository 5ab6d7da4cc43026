"""The three statements of an append, written out: while they run, the head is locked and every other writer waits.

Django's query builder takes several times what the database does for them; nothing else in the room needs this.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final, NamedTuple

from django.db import connection

from audit.canonical import GENESIS
from audit.models import ChainHead, Event

THE_HEAD: Final = 1  # the id of the one ChainHead row

_COLUMNS: Final = [field for field in Event._meta.concrete_fields if not field.primary_key]
_INSERT: Final = (
    f"INSERT INTO audit_event ({', '.join(str(field.column) for field in _COLUMNS)}) "  # noqa: S608  names of our columns
    "VALUES "
)
_ROW: Final = f"({', '.join(['%s'] * len(_COLUMNS))})"
_AT_ONCE: Final = 500  # rows in one statement: SQLite takes 32,766 values, PostgreSQL 65,535
_MANY: Final = 4  # events of a boot storm; a change of a person makes one or two
_HEAD: Final = "SELECT number, hash, at, key_version FROM audit_chainhead WHERE id = %s"
_MOVE: Final = (
    "UPDATE audit_chainhead SET number = %s, hash = %s, at = %s, key_version = %s "
    "WHERE id = %s AND number = %s AND hash = %s"
)


class Head(NamedTuple):
    """What `ChainHead` holds of the newest event."""

    number: int
    hash: str
    at: datetime | None  # None before the first event, or when that has format 1
    key_version: int


def locked_head() -> Head:
    """Give the head, locked until the commit. One query; the first event of all makes the row.

    PostgreSQL locks the row. SQLite knows no row locks, but its transactions are IMMEDIATE (settings), so the
    whole database is already ours; the compare-and-swap in `move_head` stands even without either.
    """
    head = _head()
    if head is None:  # of two writers one inserts and the other waits for it here
        ChainHead.objects.bulk_create([ChainHead(pk=THE_HEAD, number=0, hash=GENESIS)], ignore_conflicts=True)
        head = _head()
        assert head is not None  # noqa: S101  it was made, by us or by another
    return head


def move_head(heads: Sequence[Head]) -> bool:
    """Let the head, which stands at the first of `heads`, go to each of the others; false when it stood elsewhere.

    The trigger lets it move by one number at a time.
    """
    moves = [
        [new.number, new.hash, _adapted(new.at), new.key_version, THE_HEAD, old.number, old.hash]
        for old, new in pairwise(heads)
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_MOVE, moves)
        return bool(cursor.rowcount == len(moves))


def insert(events: Sequence[Event]) -> None:
    """Insert chained events. Only `audit.record` calls this. Many at once get no row ids: nobody asks for those."""
    if len(events) >= _MANY and connection.vendor == "postgresql":
        _copy(events)
        return
    for at in range(0, len(events), _AT_ONCE):
        some = {event.number: event for event in events[at : at + _AT_ONCE]}
        values = [
            field.get_db_prep_save(getattr(event, field.attname), connection)
            for event in some.values()
            for field in _COLUMNS
        ]
        with connection.cursor() as cursor:
            cursor.execute(f"{_INSERT}{', '.join([_ROW] * len(some))} RETURNING id, number", values)
            for pk, number in cursor.fetchall():
                some[number].pk = pk
                some[number]._state.adding = False


def _copy(events: Sequence[Event]) -> None:
    """Insert by COPY: psycopg and the parser would else look at each of the values (ADR 34)."""
    statement = f"COPY audit_event ({', '.join(str(field.column) for field in _COLUMNS)}) FROM STDIN"
    # Django lets errors of copy() through as psycopg's own, which no caller expects.
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(statement) as copy:
        for event in events:
            copy.write_row([field.get_db_prep_save(getattr(event, field.attname), connection) for field in _COLUMNS])


def _head() -> Head | None:
    with connection.cursor() as cursor:
        lock = " FOR UPDATE" if connection.features.has_select_for_update else ""
        cursor.execute(f"{_HEAD}{lock}", [THE_HEAD])
        row = cursor.fetchone()
    if row is None:
        return None
    number, hash_, at, key_version = row
    return Head(number, hash_, at if at is None or at.tzinfo else at.replace(tzinfo=UTC), key_version)


def _adapted(at: datetime | None) -> str | datetime | None:
    adapted: str | datetime | None = connection.ops.adapt_datetimefield_value(at) if at is not None else None
    return adapted
