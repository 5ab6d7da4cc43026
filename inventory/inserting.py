"""insert: many new rows at once, without what Django's compiler costs for each value of each row.

Only for the rows of a boot storm, where that was a quarter of all the work (ADR 32). The rows get no primary keys.
PostgreSQL gets them by COPY: an INSERT of thousands of values is taken apart and put together once by psycopg and
parsed once by the server, which cost more than the rows. Constraints, defaults and triggers are those of an INSERT.
"""

import json
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from django.db import models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.expressions import DatabaseDefault


def insert(model: type[models.Model], rows: Sequence[models.Model]) -> None:
    """Insert `rows`, new instances of `model` whose values are what its columns hold, in the current transaction."""
    if not rows:
        return
    connection = transaction.get_connection()
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    values_of = attrgetter(*(field.attname for field in fields))
    written = [(place, how) for place, field in enumerate(fields) if (how := _written(field, connection)) is not None]
    lines = [_line(values_of(row), written) for row in rows]
    quote = connection.ops.quote_name
    table, columns = quote(model._meta.db_table), ", ".join(quote(field.column) for field in fields)
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":  # prepares a statement once and takes row after row
            marks = ", ".join(["%s"] * len(fields))
            cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", lines)  # noqa: S608  names only
            return
        # Django lets errors of copy() through as psycopg's own, which no caller expects.
        with connection.wrap_database_errors, cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
            for line in lines:
                copy.write_row(line)


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
