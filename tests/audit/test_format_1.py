"""A trail that was begun before there were codes: its rows go through the migrations, verify, and are continued.

`tests/data/audit_format_1/events.jsonl` was written by FabricUI as it was then, not by the code under test.
"""

import json
from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from audit import anchors, keyring, standing, triggers, watch
from audit import verifier as kinds
from audit.chain import verify
from audit.models import ChainHead, Event
from audit.standing import State
from tests.audit.conftest import own_files
from tests.audit.events import record_many
from tests.audit.test_chain import judged

__all__ = ["judged", "own_files"]

EVENTS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "audit_format_1" / "events.jsonl").read_text().splitlines()
]
BEFORE = [("audit", "0002_append_only")]


def migrate(target) -> None:
    MigrationExecutor(connection).migrate(target)


def newest():
    return [leaf for leaf in MigrationExecutor(connection).loader.graph.leaf_nodes() if leaf[0] == "audit"]


def write(rows) -> None:
    """Put the rows into the tables of then, in the order of their numbers."""
    names = list(rows[0])
    insert = f"INSERT INTO audit_event ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})"  # noqa: S608
    head = "INSERT INTO audit_chainhead (id, number, hash) VALUES (1, %s, %s)"
    with connection.cursor() as cursor:
        for row in rows:
            cursor.execute(insert, list(row.values()))
        cursor.execute(head, [rows[-1]["number"], rows[-1]["hash"]])


@pytest.fixture
def begun_then(transactional_db):
    """A database with the trail of then, brought to the tables of now; the old tables were really there."""
    migrate(BEFORE)
    try:
        columns = {field.name for field in _columns()}
        assert "format" not in columns
        write(EVENTS)
    finally:
        migrate(newest())


def _columns():
    with connection.cursor() as cursor:
        return connection.introspection.get_table_description(cursor, "audit_event")


@pytest.mark.django_db(transaction=True)
def test_it_verifies_is_continued_and_sealed(begun_then, judged):
    report = judged()
    assert (report.is_sound, report.events, report.last_hash) == (True, len(EVENTS), EVENTS[-1]["hash"])
    assert not keyring.path().exists()  # nothing was under a key, and none was made to look at it

    record_many(3)
    first = Event.objects.get(number=len(EVENTS) + 1)
    assert (first.format, first.previous_hash, first.key_version) == (2, EVENTS[-1]["hash"], 1)
    report = judged()
    assert (report.is_sound, report.events) == (True, len(EVENTS) + 3)
    seal, _ = anchors.seal(now=timezone.now())
    assert seal is not None
    watch.every_minute()
    assert standing.standing(now=timezone.now()).state is State.VERIFIED


@pytest.mark.django_db(transaction=True)
def test_its_rows_are_guarded_and_an_edit_of_one_is_found(begun_then, judged):
    with connection.cursor() as cursor, pytest.raises(Exception, match="append-only"):
        cursor.execute("UPDATE audit_event SET reason = 'x' WHERE number = 2")
    record_many(1)
    triggers.drop(connection)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE audit_event SET actor_name = 'Nobody' WHERE number = 2")
    try:
        assert (judged().broken_at, judged().kind) == (2, kinds.EDITED)
    finally:
        triggers.create(connection)
        triggers.create_format_2(connection)


@pytest.mark.django_db(transaction=True)
def test_the_head_of_then_is_continued_and_not_begun_again(begun_then):
    head = ChainHead.objects.get()
    assert (head.number, head.hash, head.at, head.key_version) == (len(EVENTS), EVENTS[-1]["hash"], None, 0)
    assert verify(since=2).is_sound
