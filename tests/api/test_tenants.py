"""What a tenant's program sees: its own, by public ids; of everybody else not even that they are there."""

import json
import re
from types import SimpleNamespace

import pytest
from django.http import Http404

from deploy.models import Rollout
from inventory.models import Port, Server
from partitions.api import Partitions, StagedChanges
from people.models import Tenant, TenantRole, User
from tests.api.callers import Caller, is_problem

pytestmark = pytest.mark.django_db
OWN = ("servers", "ports", "partitions", "memberships", "staged-changes")
PROVIDERS = (
    "subnets", "revisions", "rollouts", "drift", "plans/mine", "plans/all", "probes/scopes", "probes/runs",
    "probes/isolation", "audit/events", "audit/events/1",
)  # fmt: skip


@pytest.fixture
def canary(site):
    """The other tenant's things have names that stand nowhere else."""
    Tenant.objects.filter(pk=site.provider.bert.pk).update(name="Canary-tenant", slug="canary-slug")
    Server.objects.filter(pk=site.provider.servers[3].pk).update(hostname="canary-server", rack="canary-rack")
    type(site.research).objects.filter(pk=site.research.pk).update(name="canary-partition")
    site.provider.servers[0].hcas.first().ports.update(
        seen_description="canary-description", leaf_guid="0x00000000cafecafe"
    )
    return site


def test_a_tenant_sees_its_own_servers_ports_and_partitions(tenant, site):
    assert [item["hostname"] for item in tenant.items("servers")] == ["srv-001", "srv-002", "srv-003"]
    assert len(tenant.items("ports")) == 6
    assert [item["name"] for item in tenant.items("partitions")] == ["inference", "training"]
    assert len(tenant.items("memberships")) == 6


def test_it_gets_no_field_that_is_the_providers(tenant):
    assert set(tenant.items("servers")[0]) == {"id", "hostname", "reported_at"}
    assert set(tenant.items("ports")[0]) == {
        "guid", "server", "device", "number", "link_layer", "state", "rate_gbps", "is_missing",
    }  # fmt: skip
    assert set(tenant.items("partitions")[0]) == {"id", "name", "pkey", "tenant", "created_at", "retired_at"}


@pytest.mark.parametrize("address", PROVIDERS)
def test_what_is_the_providers_is_not_there(tenant, address):
    is_problem(tenant.get(address), 404, "not_found")
    everything = Caller(tenant.token.user, scopes=["deploy:read", "deploy:write", "probes:read", "audit:read"])
    is_problem(everything.get(address), 404, "not_found")


def test_it_changes_nothing_that_is_the_providers(tenant, site):
    everything = Caller(tenant.token.user, scopes=["partitions:read", "partitions:write", "deploy:write"])
    rollout = Rollout.objects.latest("pk").public_id
    for address in ("rollouts", "looks", *(f"rollouts/{rollout}/{act}" for act in ("cancel", "accept", "release"))):
        is_problem(everything.post(address, {}), 404, "not_found")


@pytest.mark.parametrize("kind", [Partitions, StagedChanges])
def test_what_operators_do_is_closed_to_it_also_where_nobody_derives_from_it(kind, tina, site):
    """The scope lets a tenant's people in; without `portal/api_moves.py` they find nothing there."""
    view = kind()
    view.request = SimpleNamespace(user=tina, auth=None)
    acts = {
        Partitions: (
            lambda: view.make(view.request, {}), lambda: view.rename(site.training, {}),
            lambda: view.retire(site.training),
        ),
        StagedChanges: (lambda: view.stage(view.request, {}), lambda: view.take_back(view.request, None)),
    }  # fmt: skip
    for act in acts[kind]:
        with pytest.raises(Http404):
            act()


def test_nothing_of_another_tenant_is_in_any_answer(tenant, operator, canary):
    """By lists, by ids it could have heard, by filters: the answer is that of something that does not exist."""
    other = canary.provider.servers[3]
    port = Port.objects.filter(hca__server=other).first()
    addresses = [
        *OWN, f"servers/{other.public_id}", f"partitions/{canary.research.public_id}", f"ports/{port.guid}",
        f"ports?server={other.public_id}", f"memberships?partition={canary.research.public_id}",
        "servers?hostname=canary-server", "servers?hostname_contains=canary", "partitions?name=canary-partition",
        f"partitions?tenant={canary.provider.bert.public_id}", "servers?rack=canary-rack", "servers?limit=1",
        *PROVIDERS,
    ]  # fmt: skip
    for address in addresses:
        said = tenant.get(address).content.decode()
        assert "canary" not in said.lower().replace(address.lower(), ""), address
        assert "cafecafe" not in said, address
    there, not_there = tenant.get(f"servers/{other.public_id}").json(), tenant.get("servers/222222222222").json()
    for body in (there, not_there):
        del body["request_id"], body["where"]
    assert there == not_there
    for query in ("servers?hostname=canary-server", f"ports?server={other.public_id}"):
        assert tenant.items(query) == []
        assert operator.items(query)


def test_no_number_of_a_row_a_revision_or_an_event_is_in_an_answer(tenant, canary):
    for address in OWN:
        for item in tenant.items(address):
            numbers = {name: value for name, value in item.items() if isinstance(value, int) and name != "number"}
            assert set(numbers) <= {"is_missing"}, numbers
            assert not re.search(r'"(pk|revision|event)"', json.dumps(item))


def test_a_server_that_leaves_is_seen_no_more(tenant, site):
    server = site.provider.servers[2]
    site.provider.settled_move(server, site.inference, None)
    assert server.hostname not in [item["hostname"] for item in tenant.items("servers")]
    is_problem(tenant.get(f"servers/{server.public_id}"), 404, "not_found")


def test_who_has_two_tenants_sees_both_and_nobody_elses(site, tina):
    TenantRole.objects.create(user=tina, tenant=site.provider.bert, role=TenantRole.Role.VIEWER)
    assert len(Caller(tina).items("servers")) == 4


def test_a_role_that_is_taken_is_taken_from_the_token_too(tenant, tina):
    TenantRole.objects.filter(user=tina).delete()
    is_problem(tenant.get("servers"), 404, "not_found")


def test_the_page_offers_a_tenant_only_what_a_tenant_can_use(tina, site, client_of, django_user_model):
    from fabricui import api  # noqa: F401  the rooms' scopes come with it
    from people.scopes import scopes_of

    assert [scope.name for scope in scopes_of(tina)] == [
        "activity:read", "inventory:read", "partitions:read", "partitions:write", "requests:comment", "requests:read",
        "requests:write",
    ]  # fmt: skip
    assert scopes_of(User.objects.create(username="nobody")) == []
    page = client_of(tina).get("/account/tokens/").content.decode()
    assert "inventory:read" in page
    assert "deploy:read" not in page


def test_it_cannot_ask_for_what_it_is_not_shown(tenant, operator):
    for name in ("rack", "tenant"):
        assert is_problem(tenant.get(f"servers?{name}=r1"), 400, "invalid")
        assert operator.get(f"servers?{name}=r1").status_code == 200
