"""The provider of the console's tests, and programs of its people."""

import pytest

from people.models import TenantRole, User
from tests.api.callers import Caller
from tests.console.conftest import settled_site


@pytest.fixture
def site(db):
    return settled_site()


@pytest.fixture
def operator(site):
    """Olga's program."""
    return Caller(site.provider.olga)


@pytest.fixture
def auditor(site, ada):
    return Caller(ada)


@pytest.fixture
def tina(site):
    """A member of Acme."""
    person = User.objects.create(username="tina", first_name="Tina")
    TenantRole.objects.create(user=person, tenant=site.provider.acme, role=TenantRole.Role.MEMBER)
    return person


@pytest.fixture
def tenant(tina):
    return Caller(tina)


@pytest.fixture
def stranger(site, charlie):
    return Caller(charlie, scopes=["inventory:read", "deploy:read", "deploy:write"])
