"""The tenant's page: suspend, let in again, let go; for administrators, asked again who they are."""

import pytest
from django.urls import reverse

from partitions.models import StagedChange
from partitions.selection import Selection
from people.models import User

STEPS = ("suspend", "resume", "empty", "finish")


@pytest.fixture
def boss(db):
    return User.objects.create_user(username="boss", first_name="Boss", role="ADMIN")


@pytest.fixture
def admin(boss, client_of):
    return client_of(boss)


def press(client, tenant, step, reason="they leave"):
    return client.post(reverse(f"console:tenant_{step}", args=[tenant.public_id]), {"reason": reason}, follow=True)


def test_an_administrator_goes_all_the_way(site, admin):
    provider, tenant = site.provider, site.provider.acme
    page = admin.get(reverse("console:tenant", args=[tenant.public_id])).content.decode()
    assert "Suspend the tenant" in page
    assert "Let its people in again" not in page
    assert "on the fabric nothing changed" in press(admin, tenant, "suspend").content.decode()
    assert "6 ports are staged to leave" in press(admin, tenant, "empty").content.decode()
    page = admin.get(reverse("console:tenant", args=[tenant.public_id])).content.decode()
    assert f"?selection=tenant:{tenant.public_id}" in page
    refused = press(admin, tenant, "finish")
    assert refused.status_code == 409
    assert "still has members" in refused.content.decode()
    provider.settle(provider.roll_out(provider.olga, Selection.of_tenant(tenant), reason="they leave"))
    assert "2 partitions retired" in press(admin, tenant, "finish").content.decode()
    page = admin.get(reverse("console:tenant", args=[tenant.public_id])).content.decode()
    assert "Let go at" in page
    assert "Suspend" not in page


def test_it_can_be_taken_back(site, admin):
    tenant = site.provider.acme
    press(admin, tenant, "suspend")
    assert "may sign in again" in press(admin, tenant, "resume").content.decode()


@pytest.mark.parametrize("step", STEPS)
def test_operators_and_auditors_cannot(site, operator, auditor, step):
    for client in (operator, auditor):
        assert press(client, site.provider.acme, step).status_code == 404
    site.provider.acme.refresh_from_db()
    assert site.provider.acme.suspended_at is None


@pytest.mark.parametrize("step", STEPS)
def test_each_asks_why_and_who(site, admin, step, settings):
    tenant = site.provider.acme
    if step != "suspend":
        press(admin, tenant, "suspend")
    assert press(admin, tenant, step, reason=" ").status_code == 409
    settings.FRESH_LOGIN_MIN = 15
    assert "Leave it, and do nothing" in press(admin, tenant, step).content.decode()
    assert not StagedChange.objects.filter(kind_to=None).exists()


def test_an_auditor_reads_how_it_stands(site, auditor, admin):
    press(admin, site.provider.acme, "suspend")
    page = auditor.get(reverse("console:tenant", args=[site.provider.acme.public_id])).content.decode()
    assert "its servers go on in their partitions" in page
    assert "Let its people in again" not in page
