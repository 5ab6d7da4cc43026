"""The API's tenants: a program finds out which tenant is its own, and of nobody else's that it is there."""

import pytest
from django.utils import timezone

from people.models import Tenant, TenantRole
from tests.api.callers import Caller, is_problem
from tests.api.conftest import auditor, operator, site, tenant, tina

__all__ = ["auditor", "operator", "site", "tenant", "tina"]  # the same site and people
pytestmark = pytest.mark.django_db


def names(caller, address="tenants"):
    return [one["name"] for one in caller.items(address)]


def test_a_tenants_program_reads_its_own_alone(tenant, site):
    provider = site.provider
    Tenant.objects.filter(pk=provider.acme.pk).update(moves="ALONE", most_servers=5)
    (own,) = tenant.items("tenants")
    assert own == {
        "id": provider.acme.public_id, "name": str(provider.acme), "role": "MEMBER", "moves": "ALONE",
        "most_servers": 5, "most_partitions": 8, "most_rollouts_per_hour": 6,
    }  # fmt: skip
    assert tenant.get(f"tenants/{own['id']}").json() == own
    is_problem(tenant.get(f"tenants/{provider.bert.public_id}"), 404, "not_found")
    assert names(tenant, f"tenants?name={provider.bert}") == []
    assert tenant.post("partitions", {"name": "named", "tenant": own["id"]}).status_code == 201


def test_who_has_two_tenants_tells_them_apart(tina, site):
    TenantRole.objects.create(user=tina, tenant=site.provider.bert, role=TenantRole.Role.VIEWER)
    program = Caller(tina)
    assert {one["name"]: one["role"] for one in program.items("tenants?limit=1")} == {
        str(site.provider.acme): "MEMBER", str(site.provider.bert): "VIEWER",
    }  # fmt: skip
    is_problem(program.post("partitions", {"name": "x1"}), 400, "invalid")  # it has to name one
    narrow = Caller(tina, tenant=site.provider.bert)
    assert names(narrow) == [str(site.provider.bert)]


def test_operators_and_auditors_see_all_with_what_is_the_providers(operator, auditor, site):
    assert names(operator) == names(auditor) == sorted(map(str, Tenant.objects.all()))
    one = operator.get(f"tenants/{site.provider.acme.public_id}").json()
    assert (one["slug"], one["role"], one["suspended_at"]) == ("acme", None, None)


def test_one_that_is_suspended_is_not_there_for_its_people(tenant, tina, operator, site):
    own = site.provider.acme.public_id
    TenantRole.objects.create(user=tina, tenant=site.provider.bert, role=TenantRole.Role.VIEWER)
    Tenant.objects.filter(public_id=own).update(suspended_at=timezone.now())
    is_problem(tenant.get(f"tenants/{own}"), 404, "not_found")
    assert names(tenant) == [str(site.provider.bert)]
    assert operator.get(f"tenants/{own}").json()["suspended_at"]


def test_it_is_only_read_and_needs_its_scope(tenant, tina, site):
    own = f"tenants/{site.provider.acme.public_id}"
    for verb, address in (("POST", "tenants"), ("PATCH", own), ("DELETE", own)):
        is_problem(tenant.ask(verb, address, {"name": "x"}), 405, "method_not_allowed")
    is_problem(Caller(tina, scopes=["inventory:read"]).get("tenants"), 403, "not_for_this_token")


def test_it_asks_the_same_whatever_the_number_of_tenants(operator, site, django_assert_max_num_queries):
    Tenant.objects.bulk_create(Tenant(name=f"T{at:03}", slug=f"t{at}") for at in range(60))
    operator.get("tenants")
    with django_assert_max_num_queries(12):
        assert len(operator.get("tenants?limit=60").json()["items"]) == 60
