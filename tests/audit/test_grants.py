"""FabricUI's account on PostgreSQL, with the rights that we document and no more: a real role."""

import pytest
from django.db import DatabaseError, connection, transaction

from audit import chain, grants
from tests.audit.events import record_many

pytestmark = [pytest.mark.pg, pytest.mark.django_db]


@pytest.fixture
def app_role(db):
    """An account that owns nothing and may do what is granted; gone with the test's transaction."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE fabricui_app")
        for statement in grants.statements("fabricui_app"):
            cursor.execute(statement)
        cursor.execute("SET LOCAL ROLE fabricui_app")
    yield
    with connection.cursor() as cursor:
        cursor.execute("RESET ROLE")


def test_the_account_records_and_verifies(app_role):
    record_many(3)
    assert chain.verify().is_sound
    assert chain.verify().events == 3


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE audit_event SET reason = 'other'",
        "DELETE FROM audit_event",
        "TRUNCATE audit_event",
        "ALTER TABLE audit_event DISABLE TRIGGER USER",
        "DROP TRIGGER audit_event_refuse ON audit_event",
        "DELETE FROM audit_chainhead",
        "UPDATE audit_seal SET number = 1",
        "DELETE FROM audit_seal",
    ],
)
def test_and_changes_nothing_of_the_trail(app_role, sql):
    record_many(2)
    with pytest.raises(DatabaseError, match=r"permission denied|must be owner"), transaction.atomic():
        connection.cursor().execute(sql)
    assert chain.verify().is_sound


@pytest.mark.parametrize("name", ["fabricui; DROP TABLE audit_event", "Fabric", "", "1x"])
def test_what_is_no_plain_name_is_no_role(name):
    with pytest.raises(ValueError, match="no plain name"):
        grants.statements(name)
