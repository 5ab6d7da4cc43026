"""What the database itself refuses, to somebody with a SQL prompt."""

import pytest
from django.conf import settings
from django.db import DatabaseError, connection, transaction

from audit.models import ChainHead, Event
from tests.audit.events import record_many

pytestmark = pytest.mark.django_db

EVERYWHERE = [
    "UPDATE audit_event SET reason = 'other' WHERE number = 2",
    "UPDATE audit_event SET number = 7 WHERE number = 2",
    "DELETE FROM audit_event WHERE number = 2",
    "DELETE FROM audit_event",
    "DELETE FROM audit_chainhead",
    "UPDATE audit_chainhead SET number = 1",
    "UPDATE audit_chainhead SET number = 3",
    "UPDATE audit_chainhead SET id = 2",
]
COLUMNS = ", ".join(f.column for f in Event._meta.concrete_fields if f.column != "id")
OTHER = COLUMNS.replace("reason", "'other'")
SQLITE_ONLY = [
    "INSERT OR REPLACE INTO audit_event SELECT * FROM audit_event WHERE number = 2",
    # another row id, the same number
    f"REPLACE INTO audit_event (id, {COLUMNS}) SELECT 99, {OTHER} FROM audit_event WHERE number = 2",  # noqa: S608
]
ON_POSTGRESQL = settings.DATABASES["default"]["ENGINE"].endswith("postgresql")
POSTGRESQL_ONLY = ["TRUNCATE audit_event", "TRUNCATE audit_chainhead"]


def assert_refused(sql: str) -> None:
    with pytest.raises(DatabaseError, match=r"append-only|one event at a time|never removed"), transaction.atomic():
        connection.cursor().execute(sql)


def trail() -> list[dict[str, object]]:
    return [*Event.objects.order_by("number").values(), *ChainHead.objects.values()]


@pytest.mark.parametrize("sql", EVERYWHERE + (POSTGRESQL_ONLY if ON_POSTGRESQL else SQLITE_ONLY))
def test_raw_sql_is_refused(sql):
    record_many(3)
    before = trail()
    assert_refused(sql)
    assert trail() == before


def test_appending_goes_on_after_a_refusal():
    record_many(2)
    assert_refused("DELETE FROM audit_event")
    assert record_many(1)[0].number == 3
