"""insert and update: many rows at once, without what Django's compiler costs for each value of each row.

Only for the rows of a boot storm, where that was a quarter of all the work (ADR 32).
PostgreSQL gets new rows by COPY: an INSERT of thousands of values is taken apart and put together once by psycopg and
parsed once by the server, which cost more than the rows. Constraints, defaults and triggers are those of an INSERT.
"""

import json
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from django.db import models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.expressions import DatabaseDefault


def insert(model: type[models.Model], rows: Sequence[models.Model], *, with_keys: bool = False) -> None:
    """Insert `rows`, new instances of `model` whose values are what its columns hold, in the current transaction.

    They get primary keys only `with_keys`. Columns that Django fills at the first save (`auto_now_add`) are filled.
    """
    if not rows:
        return
    connection = transaction.get_connection()
    if with_keys:
        for row, key in zip(rows, _new_keys(model, len(rows), connection), strict=True):
            row.pk = key
    fields = [field for field in model._meta.concrete_fields if with_keys or not field.primary_key]
    for field in fields:
        if getattr(field, "auto_now_add", False):
            for row in rows:
                field.pre_save(row, True)
    values_of = attrgetter(*(field.attname for field in fields))
    written = [(place, how) for place, field in enumerate(fields) if (how := _written(field, connection)) is not None]
    lines = [_line(values_of(row), written) for row in rows]
    quote = connection.ops.quote_name
    table, columns = quote(model._meta.db_table), ", ".join(quote(field.column) for field in fields)
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":  # prepares a statement once and takes row after row
            marks = ", ".join(["%s"] * len(fields))
            cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", lines)  # noqa: S608  names only
        else:
            # Django lets errors of copy() through as psycopg's own, which no caller expects.
            with connection.wrap_database_errors, cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                for line in lines:
                    copy.write_row(line)
    if with_keys:
        for row in rows:
            row._state.adding, row._state.db = False, connection.alias


def _new_keys(model: type[models.Model], count: int, connection: BaseDatabaseWrapper) -> Sequence[int]:
    """Primary keys that nobody has or gets. SQLite's transactions are IMMEDIATE, so nobody else counts meanwhile."""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
            last = (cursor.fetchone() or (0,))[0]
            return range(last + 1, last + 1 + count)
        numbers = "SELECT nextval(pg_get_serial_sequence(%s, %s)) FROM generate_series(1, %s)"
        cursor.execute(numbers, [table, model._meta.pk.column, count])
        return [key for (key,) in cursor.fetchall()]


def update(model: type[models.Model], rows: Sequence[models.Model], *, columns: Sequence[str]) -> None:
    """Write `columns` (names of fields) of `rows`, which are in the database, in one statement each way."""
    if not rows:
        return
    connection = transaction.get_connection()
    quote = connection.ops.quote_name
    key = model._meta.pk
    assert key is not None  # noqa: S101  every model has one
    fields: list[Any] = [*(model._meta.get_field(name) for name in columns), key]
    table, own = quote(model._meta.db_table), quote(key.column)
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            written = [(place, how) for place, one in enumerate(fields) if (how := _written(one, connection))]
            values_of = attrgetter(*(field.attname for field in fields))
            marks = ", ".join(f"{quote(field.column)} = %s" for field in fields[:-1])
            lines = [_line(values_of(row), written) for row in rows]
            cursor.executemany(f"UPDATE {table} SET {marks} WHERE {own} = %s", lines)  # noqa: S608  names only
            return
        # One value holds all rows: psycopg and the parser would else look at each value of each row.
        types = ", ".join(f"{quote(field.column)} {field.rel_db_type(connection)}" for field in fields)
        news = ", ".join(f"{quote(field.column)} = news.{quote(field.column)}" for field in fields[:-1])
        statement = (
            f"UPDATE {table} SET {news} FROM jsonb_to_recordset(%s::jsonb) AS news({types}) "  # noqa: S608
            f"WHERE {table}.{own} = news.{own}"
        )
        told = [{field.column: getattr(row, field.attname) for field in fields} for row in rows]
        cursor.execute(statement, [json.dumps(told, default=_moment)])


def _moment(value: Any) -> str:
    """A time as PostgreSQL reads it; nothing else in our columns is unknown to JSON."""
    return str(value.isoformat())


def _line(values: tuple[Any, ...], written: Sequence[tuple[int, Callable[[Any], Any]]]) -> list[Any]:
    line = list(values)
    for place, how in written:
        line[place] = how(line[place])
    return line


def _written(field: Any, connection: BaseDatabaseWrapper) -> Callable[[Any], Any] | None:
    """How a value of `field` is given to the database; None where it is given as it is."""
    if isinstance(field, models.DateTimeField):
        return connection.ops.adapt_datetimefield_value
    if isinstance(field, models.JSONField):
        return lambda value: None if value is None else json.dumps(value)
    if isinstance(field, models.CharField):
        default: Any = field.db_default
        return lambda value: _text(value, default if isinstance(default, str) else None)
    return None


def _text(value: Any, default: str | None) -> str | None:
    """`value` as text, as Django's choices and our GUIDs are too; `default` where Django left it to the column."""
    if isinstance(value, DatabaseDefault):
        return default
    return None if value is None else str(value)
