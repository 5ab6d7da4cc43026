"""Canaries: texts that stand in every secret of a test, and the places in which none of them may ever be seen."""

from __future__ import annotations

import contextlib
import logging
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.db import connection

from fabricui.json_lines import JSONLines

# What a table must hold in clear: Django looks sessions up by their key.
KEPT = {"django_session.session_key": ("session key",)}


@dataclass
class Canaries:
    """Secrets by what they are, and what was seen of them where nobody should see one."""

    known: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def make(self, what: str, length: int = 40) -> str:
        """A secret of our own that is like no other text."""
        return self.note(what, f"canary-{secrets.token_hex(length // 2)}")

    def note(self, what: str, text: str) -> str:
        """A secret that the product made."""
        assert len(text) >= 10, f"{what} is too short to be looked for"
        self.known[what] = text
        return text

    def look(self, where: str, text: str | bytes, *, but: tuple[str, ...] = ()) -> None:
        """Look through a text that may be read by others; `but` names what it was made to show."""
        clear = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        for what, canary in self.known.items():
            if canary in clear and what not in but:
                self.seen.add(f"{what} in {where}")

    def look_through_tables(self) -> int:
        """Look through every column of every row; return how many values there were."""
        values = 0
        with connection.cursor() as cursor:
            for table in connection.introspection.table_names(cursor):
                cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608  a name from the database
                columns = [column[0] for column in cursor.description]
                for row in cursor.fetchall():
                    for column, value in zip(columns, row, strict=True):
                        values += 1
                        held = bytes(value) if isinstance(value, bytes | memoryview) else str(value)
                        self.look(f"{table}.{column}", held, but=KEPT.get(f"{table}.{column}", ()))
        return values


class Lines(logging.Handler):
    """Everything that is logged, at any level, as JSON lines."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(JSONLines())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@contextlib.contextmanager
def everything_logged() -> Iterator[list[str]]:
    """The lines of all loggers, also of those that are quiet otherwise, but for the statements of the database."""
    handler, root = Lines(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    quiet = logging.getLogger("django.db.backends")
    was = quiet.level
    quiet.setLevel(logging.INFO)
    try:
        yield handler.lines
    finally:
        quiet.setLevel(was)
        root.setLevel(level)
        root.removeHandler(handler)


def shown_once(pattern: str, response) -> str:
    """The secret on the page that shows it this once."""
    found = re.search(pattern, response.content.decode())
    assert found, response.content.decode()[-2000:]
    return found[1] if found.groups() else found[0]
