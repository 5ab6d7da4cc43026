"""A tenant's moves that do not go out by themselves: operators see them, with why and the way on."""

import pytest
from django.urls import reverse

from inventory.models import Port
from partitions.models import StagedChange
from people.models import Tenant, TenantRole
from portal import moves
from portal.left_to_operators import left_moves
from portal.models import Turn
from tests.portal import asked
from tests.portal.turning import advance, move


@pytest.fixture
def operator(portal, client_of):
    return client_of(portal.provider.olga)


def home(operator):
    return operator.get("/").content.decode()


def test_a_turn_that_is_left_to_an_operator_stands_on_home_and_on_the_page_of_requests(acme, operator):
    turn = move(acme)
    assert left_moves() == []  # it goes on by itself
    TenantRole.objects.filter(user=acme.seats["max"].person).delete()
    assert (advance(turn).state, Turn.objects.count()) == ("OPERATOR", 1)
    (left,) = left_moves()
    assert (left.tenant, left.servers) == (acme.acme, 1)
    for page in (home(operator), operator.get(reverse("portal:operator_requests")).content.decode()):
        assert "Whoever staged them may not act for it any more." in page
        assert left.plan in page
    plan = operator.get(left.plan).content.decode()
    assert "srv-001" in plan
    StagedChange.objects.all().delete()  # discarded, or rolled out
    assert left_moves() == []


def test_why_it_was_left_is_told_as_the_rooms_below_say_it(acme, operator):
    turn = move(acme)
    port = Port.objects.filter(hca__server=acme.provider.servers[0]).first()
    acme.provider.observe(unread=[str(port.guid)])
    assert advance(turn).state == "OPERATOR"
    page = operator.get(reverse("portal:operator_requests")).content.decode()
    assert "A port has no link or did not answer" in page
    assert str(port.guid) in page  # for operators; the tenant's page does not name it


def test_moves_that_always_wait_are_there_too_and_a_failed_rollout_is_not(portal, operator):
    moves.move(
        seat=portal.seats["max"], server=portal.provider.servers[0], source=portal.site.training,
        target=portal.site.inference,
    )  # fmt: skip
    assert not Turn.objects.exists()
    assert "Acme has staged moves of 1 server that wait for an operator." in home(operator)
    Tenant.objects.update(moves="ALONE")
    assert left_moves() == []  # the tenant has a button to try again


def test_what_an_operator_staged_is_not_a_tenants(portal):
    portal.provider.move(portal.provider.servers[0], portal.site.training, portal.site.inference)
    assert left_moves() == []


def test_home_counts_the_requests_that_wait(portal, operator, client_of, ada):
    assert "wait for an answer" not in home(operator)
    asked.more(portal)
    assert "1 request of a tenant waits for an answer." in home(operator)
    asked.more(portal)
    page = home(client_of(ada))  # an auditor sees it as well
    assert "2 requests of tenants wait for an answer." in page
    assert f'href="{reverse("portal:operator_requests")}"' in page


def test_a_tenant_finds_the_page_of_operators_nowhere(portal, client):
    made = asked.more(portal)
    assert client.get(reverse("portal:operator_requests")).status_code == 404
    assert client.get(reverse("portal:operator_request", args=[made.public_id])).status_code == 404
