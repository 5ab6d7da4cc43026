"""A pytest plugin that watches every transaction of every test: what the product writes, it records, or the test fails.

A write counts as the product's when the innermost frame of ours, passing over models and querysets, is in a room; what
a test or `lab/pictures` writes to set its scene is its own business. Each connection keeps a stack of open blocks; a
write is judged when the outermost block of the product's ends, and at once outside of any.
"""

import functools
import re
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import pytest

from tests.audited import EXEMPT, EXEMPT_COLUMNS

ROOT = Path(__file__).resolve().parent.parent
ROOMS = (
    "fabricui",
    "portal",
    "console",
    "probes",
    "partitions",
    "deploy",
    "inventory",
    "webhooks",
    "people",
    "audit",
    "lab",
)
SCENES = ROOT / "lab" / "pictures"
PASSED_OVER = ("models.py", "querysets.py", "fields.py", "trail_watch.py")
WRITE = re.compile(
    r'\s*(?:INSERT(?:\s+OR\s+\w+)?\s+INTO|REPLACE\s+INTO|UPDATE|DELETE\s+FROM|COPY)\s+"?(\w+)"?', re.IGNORECASE
)
COLUMN = re.compile(r'"(\w+)" = ')


@dataclass(eq=False)
class Block:
    """One open transaction or savepoint: what was written in it, and whether an event was."""

    writes: list[str] = field(default_factory=list)
    has_event: bool = False


class Watch:
    """What was written without an event, while it is armed."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.armed = False
        self._stacks = threading.local()

    def stack(self, alias: str) -> list[Block]:
        """The open blocks of this thread's connection."""
        stacks: dict[str, list[Block]] = self._stacks.__dict__
        return stacks.setdefault(alias, [])

    def statement(self, alias: str, sql: str) -> None:
        """Look at one statement that was executed."""
        if not self.armed:
            return
        match = WRITE.match(sql)
        if match is None:
            return
        table = match[1].lower()
        stack = self.stack(alias)
        if table == "audit_event":
            if stack:
                stack[-1].has_event = True
            return
        if not _is_audited(table, sql):
            return
        where = product_frame(sys._getframe(1))
        if where is None:
            return
        told = f"{table}: {where}"
        if stack:
            stack[-1].writes.append(told)
        else:
            self.found.append(f"{told} (outside a transaction)")

    def spooled(self) -> None:
        """An event was written beside the trail: it stands in for one in the blocks that are open."""
        for stack in self._stacks.__dict__.values():
            if stack:
                stack[-1].has_event = True

    def left(self, alias: str, *, is_kept: bool) -> None:
        """The innermost block has ended; without an error it belongs to the one around it, or is judged."""
        stack = self.stack(alias)
        if not stack:
            return
        block = stack.pop()
        if not is_kept:
            return
        if stack:
            stack[-1].writes += block.writes
            stack[-1].has_event |= block.has_event
        elif not block.has_event:
            self.found += block.writes


def _is_audited(table: str, sql: str) -> bool:
    if table in EXEMPT or not table.startswith(tuple(f"{room}_" for room in ROOMS)):
        return False
    verb = sql.split(maxsplit=1)[0].lower()
    if table in EXEMPT_COLUMNS and verb in ("insert", "delete"):
        return verb not in EXEMPT_COLUMNS[table][0]
    if table in EXEMPT_COLUMNS and verb == "update":
        # Row ids stand in the conditions of a bulk update: SET "x" = CASE WHEN "t"."id" = 1 THEN …
        changed = set(COLUMN.findall(sql.partition(" WHERE ")[0])) - {"id"}
        return not changed <= EXEMPT_COLUMNS[table][0]
    return True


@functools.cache
def _whose(filename: str) -> str:
    """Which part of the project a file is of: a room, "tests", or "" for what is not ours or is passed over."""
    path = Path(filename)
    if not path.is_relative_to(ROOT) or ".venv" in path.parts or path.name in PASSED_OVER:
        return ""
    if path.is_relative_to(SCENES):
        return "tests"
    top = path.relative_to(ROOT).parts[0]
    return top if top in ROOMS or top == "tests" else ""


def product_frame(frame: FrameType | None) -> str | None:
    """The place in the product that writes, or None when it is a test that does."""
    while frame is not None:
        filename = frame.f_code.co_filename
        whose = _whose(filename)
        if whose:
            is_setting = whose == "tests" or "/migrations/" in filename
            return None if is_setting else f"{Path(filename).relative_to(ROOT)}:{frame.f_lineno}"
        frame = frame.f_back
    return None


WATCH = Watch()


@pytest.fixture(scope="session", autouse=True)
def _trail_watched() -> object:
    """Look at every statement of every connection, and at where each block begins and ends."""
    from django.db import transaction
    from django.db.backends.utils import CursorWrapper

    from audit import spool

    execute, executemany = CursorWrapper.execute, CursorWrapper.executemany
    append = spool._append
    enter, leave = transaction.Atomic.__enter__, transaction.Atomic.__exit__

    def watched_execute(self, sql, params=None):
        done = execute(self, sql, params)
        WATCH.statement(self.db.alias, sql)
        return done

    def watched_executemany(self, sql, param_list):
        done = executemany(self, sql, param_list)
        WATCH.statement(self.db.alias, sql)
        return done

    def watched_copy(self, sql):
        WATCH.statement(self.db.alias, sql)
        return self.cursor.copy(sql)

    def watched_append(line):
        append(line)
        WATCH.spooled()

    def watched_enter(self):
        enter(self)
        if getattr(self, "_from_testcase", False):
            return
        WATCH.stack(transaction.get_connection(self.using).alias).append(Block())

    def watched_leave(self, exc_type, exc_value, traceback):
        connection = transaction.get_connection(self.using)
        is_kept = exc_type is None and not connection.needs_rollback
        try:
            leave(self, exc_type, exc_value, traceback)
        except BaseException:
            is_kept = False
            raise
        finally:
            if not getattr(self, "_from_testcase", False):
                WATCH.left(connection.alias, is_kept=is_kept)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CursorWrapper, "execute", watched_execute)
        patch.setattr(CursorWrapper, "executemany", watched_executemany)
        patch.setattr(CursorWrapper, "copy", watched_copy, raising=False)
        patch.setattr(spool, "_append", watched_append)
        patch.setattr(transaction.Atomic, "__enter__", watched_enter)
        patch.setattr(transaction.Atomic, "__exit__", watched_leave)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> object:
    """Arm the watch for the test itself, and fail it for what the product wrote without an event."""
    WATCH.found.clear()
    WATCH.armed = True
    try:
        result = yield
    finally:
        WATCH.armed = False
    if WATCH.found and not item.get_closest_marker("unrecorded"):
        told = "\n  ".join(sorted(set(WATCH.found)))
        pytest.fail(f"written without an event in the same transaction (tests/audited.py):\n  {told}", pytrace=False)
    return result
