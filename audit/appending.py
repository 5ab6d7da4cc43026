"""The three statements of an append, written out: while they run, the head is locked and every other writer waits.

Django's query builder takes several times what the database does for them; nothing else in the room needs this.
"""

from datetime import UTC, datetime
from typing import Final, NamedTuple

from django.db import connection

from audit.canonical import GENESIS
from audit.models import ChainHead, Event

THE_HEAD: Final = 1  # the id of the one ChainHead row

_COLUMNS: Final = [field for field in Event._meta.concrete_fields if not field.primary_key]
_INSERT: Final = (
    f"INSERT INTO audit_event ({', '.join(str(field.column) for field in _COLUMNS)}) "  # noqa: S608  names of our columns
    f"VALUES ({', '.join(['%s'] * len(_COLUMNS))}) RETURNING id"
)
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


def move_head(old: Head, new: Head) -> bool:
    """Let the head stand at `new`; false when it does not stand at `old` any more."""
    with connection.cursor() as cursor:
        cursor.execute(_MOVE, [new.number, new.hash, _adapted(new.at), new.key_version, THE_HEAD, old.number, old.hash])
        return bool(cursor.rowcount == 1)


def insert(event: Event) -> None:
    """Insert the event. Only `audit.record.record` calls this."""
    values = [field.get_db_prep_save(getattr(event, field.attname), connection) for field in _COLUMNS]
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, values)
        (event.pk,) = cursor.fetchone()
    event._state.adding = False


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
