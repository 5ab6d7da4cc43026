"""What every test may ask for: the named people, clients that are signed in, and what was nudged.

Olga is an operator, Ada an auditor; Alice (administrator) and Bob (member) belong to the tenant Acme, Charlie to
nobody: he is the stranger who must not learn what exists.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from django.conf import settings as django_settings

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.test import Client

    from people.models import Tenant, User

PASSWORD = "a long enough password"


def pytest_configure() -> None:
    """Look static files up when they are asked for: each test client would list all of them otherwise."""
    django_settings.WHITENOISE_AUTOREFRESH = True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests that need PostgreSQL to the lane that has one (DATABASE_URL names it), long ones to --long."""
    if not os.environ.get("FABRICUI_TEST_LONG"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("long")])
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    if django_settings.DATABASES["default"]["ENGINE"].endswith("postgresql"):
        return
    left = [item for item in items if item.get_closest_marker("pg")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("pg")]


@contextlib.contextmanager
def _without_triggers(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Switch off every trigger of every room, as only the owner of a database can, and on again."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
            triggers = cursor.fetchall()
            off = [f'DROP TRIGGER "{name}"' for name, _ in triggers]
            on = [sql for _, sql in triggers]
        else:
            cursor.execute("SELECT DISTINCT tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal")
            tables = [table for (table,) in cursor.fetchall()]
            off = [f"ALTER TABLE {table} DISABLE TRIGGER USER" for table in tables]
            on = [f"ALTER TABLE {table} ENABLE TRIGGER USER" for table in tables]
        for sql in off:
            cursor.execute(sql)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            for sql in on:
                cursor.execute(sql)


@pytest.fixture(scope="session", autouse=True)
def _flush_past_the_triggers() -> Iterator[None]:
    """Let Django empty the tables after a test with `transaction=True`; append-only tables refuse it, rightly."""
    from django.db import connection
    from django.test import TransactionTestCase

    teardown = TransactionTestCase._fixture_teardown

    def teardown_as_owner(self: TransactionTestCase) -> None:
        with _without_triggers(connection):
            teardown(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", teardown_as_owner)
        yield


@pytest.fixture(autouse=True)
def _quick_and_alone(settings) -> None:
    """Hash passwords quickly, and give each test a cache of its own (a configured Redis is not ours to empty)."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    alone = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": secrets.token_hex(8)}
    settings.CACHES = {"default": alone}


@pytest.fixture(autouse=True)
def nudges(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tasks that were nudged; no broker is asked."""
    from audit import nudge

    names: list[str] = []
    monkeypatch.setattr(nudge, "task", lambda name, kwargs, **_: names.append(name))
    return names


def _person(username: str, role: str = "NONE") -> User:
    from people.models import User

    return User.objects.create_user(
        username=username, password=PASSWORD, first_name=username.capitalize(), role=User.Role(role)
    )


@pytest.fixture
def olga(db: None) -> User:
    """An operator."""
    return _person("olga", "OPERATOR")


@pytest.fixture
def ada(db: None) -> User:
    """An auditor."""
    return _person("ada", "AUDITOR")


@pytest.fixture
def charlie(db: None) -> User:
    """A stranger: signed in, but nobody's."""
    return _person("charlie")


@pytest.fixture
def acme(db: None) -> Tenant:
    """A tenant."""
    from people.models import Tenant

    return Tenant.objects.create(name="Acme", slug="acme")


@pytest.fixture
def alice(acme: Tenant) -> User:
    """The administrator of Acme."""
    from people.models import TenantRole

    person = _person("alice")
    TenantRole.objects.create(user=person, tenant=acme, role=TenantRole.Role.ADMIN)
    return person


@pytest.fixture
def bob(acme: Tenant) -> User:
    """Alice's colleague, a member of Acme."""
    from people.models import TenantRole

    person = _person("bob")
    TenantRole.objects.create(user=person, tenant=acme, role=TenantRole.Role.MEMBER)
    return person


@pytest.fixture
def client_of() -> Callable[[User], Client]:
    """Make a client in which a person is signed in."""
    from django.test import Client

    def client_of(person: User) -> Client:
        client = Client()
        client.force_login(person, backend="allauth.account.auth_backends.AuthenticationBackend")
        return client

    return client_of
