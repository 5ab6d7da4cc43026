"""Events that somebody bent by hand: the verifier says where, and never ends in a traceback."""

import json

import pytest
from django.db import connection

from audit import chain, export, keyring, triggers, verifier
from tests.audit.events import record_many

DEEP: dict = {}
for _ in range(500):
    DEEP = {"a": DEEP}
ODD = (None, 7, -1, 1.5, True, "", "x", "\ud800", float("nan"), [], {"a": []}, {"a": float("inf")}, DEEP)

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", [*verifier.HASHED_2, "hash", "mac"])
def test_an_export_edited_to_odd_types_is_told_and_never_a_traceback(tmp_path, name):
    record_many(5)
    lines = "".join(export.whole()).splitlines(keepends=True)
    exported = tmp_path / "trail.jsonl"
    for odd in (
        None,
        7,
        -1,
        1.5,
        True,
        "",
        "x",
        "\ud800",
        float("nan"),
        [],
        {"a": []},
        {"a": float("inf")},
        DEEP,
        "gone",
    ):
        event = json.loads(lines[3])
        if odd == event[name]:
            continue
        event[name] = odd
        if odd == "gone":
            del event[name]
        exported.write_text("".join([*lines[:3], json.dumps(event) + "\n", *lines[4:]]), encoding="utf-8")
        for ring in (None, {1: b"k" * 32}):
            report = verifier.verify_export(exported, ring=ring)
            # Without the keys nobody can tell a wrong code.
            assert report.is_sound is (name == "mac" and ring is None and isinstance(odd, str) and odd != "gone"), odd
            assert report.is_sound or name == "number" or report.broken_at in (1, 3, 4), (odd, report.sentence)


def test_a_hash_that_is_no_hex_is_told_even_where_the_key_is_another(monkeypatch):
    record_many(4)
    triggers.drop(connection)
    connection.cursor().execute("UPDATE audit_event SET hash = 'no hash' WHERE number = 3")
    monkeypatch.setattr(keyring, "load", lambda: {1: b"k" * 32})
    report = chain.verify()
    assert (report.broken_at, report.kind) == (1, verifier.KEY)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("after", "1e999"), ("before", '"\\ud800"'), ("reason", b"\x00\xff"),
        ("at", "yesterday"), ("at", 7), ("hash", b"\x00"), ("action", 7), ("previous_hash", 1.5), ("format", "two"),
        ("key_version", "x"),
    ],
)  # fmt: skip
def test_a_row_bent_to_what_no_column_should_hold_is_told(column, value):
    record_many(4)
    triggers.drop(connection)
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE audit_event SET {column} = %s WHERE number = 3", [value])  # noqa: S608  names only
    report = chain.verify()
    assert (report.broken_at, report.is_sound) == (3, False)
