"""The watch itself: what it lets pass, what it finds, and that its lists name what there is."""

import pytest
from django.apps import apps
from django.db import transaction

from audit.values import SYSTEM
from people import operations
from people.models import Tenant
from tests.audited import EXEMPT, EXEMPT_COLUMNS
from tests.trail_watch import WATCH, _is_audited

pytestmark = pytest.mark.django_db


def the_product_writes(monkeypatch, **patched):
    for name, value in patched.items():
        monkeypatch.setattr(operations, name, value)
    operations.create_tenant(name="Acme", actor=SYSTEM)


@pytest.mark.unrecorded
def test_a_write_without_an_event_is_found(monkeypatch):
    the_product_writes(monkeypatch, record=lambda **_: None)
    assert [told.partition(" ")[0] for told in WATCH.found] == ["people_tenant:"]
    assert "people/operations.py" in WATCH.found[0]


@pytest.mark.unrecorded
def test_an_event_in_another_transaction_is_no_excuse(monkeypatch):
    tenants = Tenant.objects
    monkeypatch.setattr(operations, "record", lambda **_: None)
    operations.create_tenant(name="Acme", actor=SYSTEM)
    monkeypatch.undo()
    operations.create_tenant(name="Globex", actor=SYSTEM)
    assert tenants.count() == 2
    assert len(WATCH.found) == 1


def test_a_write_with_its_event_passes_and_so_does_one_that_is_rolled_back(monkeypatch):
    the_product_writes(monkeypatch)

    def fail(**_):
        raise ZeroDivisionError

    monkeypatch.setattr(operations, "record", fail)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        operations.create_tenant(name="Globex", actor=SYSTEM)
    assert WATCH.found == []


def test_what_a_test_writes_itself_is_its_own_business():
    Tenant.objects.create(name="Acme", slug="acme")
    assert WATCH.found == []


def test_the_lists_name_tables_and_columns_that_there_are():
    tables = {model._meta.db_table: {f.column for f in model._meta.concrete_fields} for model in apps.get_models()}
    assert set(EXEMPT) <= set(tables)
    for table, (columns, reason) in EXEMPT_COLUMNS.items():
        assert columns - {"insert", "delete"} <= tables[table], table
        assert reason
    assert _is_audited("people_tenant", 'INSERT INTO "people_tenant" ("name") VALUES (%s)')
    assert not _is_audited("people_user", 'UPDATE "people_user" SET "last_login" = %s WHERE "people_user"."id" = %s')
    assert _is_audited("people_user", 'UPDATE "people_user" SET "last_login" = %s, "role" = %s WHERE "id" = %s')
