"""Requests at one moment, on a database that really lets two people in: one wins, the other reads why."""

from functools import partial

import pytest
from django.conf import settings
from django.db import connection

from audit import follow
from audit.models import Event
from partitions.models import StagedChange
from partitions.selection import Selection
from people.models import Tenant
from portal import asking, deciding
from portal.errors import Refused
from portal.left_to_operators import left_moves
from portal.models import TenantRequest
from tests.console.conftest import settled_site
from tests.partitions import test_races
from tests.portal import asked
from tests.portal.conftest import Portal, people

pytestmark = [pytest.mark.pg, pytest.mark.django_db(transaction=True, available_apps=list(settings.INSTALLED_APPS))]


def together(*functions):
    """As of the races of partitions, with this room's refusals as results too."""

    def caught(function):
        try:
            return function()
        except Refused as refused:
            return refused
        finally:
            connection.close()

    return test_races.together(*(partial(caught, function) for function in functions))


def portal_of():
    site = settled_site()
    return Portal(site, people(site))


def won(results):
    """How many were not refused; each refusal is a sentence that says so."""
    refused = [one for one in results if isinstance(one, Exception)]
    assert all(isinstance(one, Refused) and "Nothing was" in str(one) for one in refused), results
    return len(results) - len(refused)


def test_two_operators_and_the_tenant_never_decide_one_request_twice():
    portal = portal_of()
    provider, site = portal.provider, portal.site
    for number in range(4):
        made = asked.more(portal, count=1, partition=site.training)
        free = provider.servers[4 + number % 2]
        ways = [
            partial(deciding.approve, request=made, actor=provider.olga, servers=[free], answer="yes"),
            partial(deciding.decline, request=made, actor=provider.otto, answer="no"),
            partial(asking.withdraw, seat=portal.seats["max"], request=made),
        ]
        assert won(together(*ways)) == 1
        now = asked.fresh(made)
        staged = StagedChange.objects.filter(port__hca__server=free).count()
        assert (staged > 0) == (now.state == "APPROVED")
        answers = Event.objects.filter(subject_key=made.public_id).exclude(action="portal:request:ask")
        assert [event.action.rpartition(":")[2] for event in answers] == [
            {"APPROVED": "approve", "DECLINED": "decline", "WITHDRAWN": "withdraw"}[now.state]
        ]
        StagedChange.objects.all().delete()


def test_one_server_of_the_pool_goes_to_one_tenant():
    portal = portal_of()
    provider, site = portal.provider, portal.site
    free = provider.servers[4]
    for _ in range(3):
        ours = asked.more(portal, count=1, partition=site.training)
        theirs = asking.ask_more_servers(
            seat=portal.seats["bruno"], subnet=provider.subnet, count=1, why="x", partition=site.research
        )
        results = together(
            partial(deciding.approve, request=ours, actor=provider.olga, servers=[free]),
            partial(deciding.approve, request=theirs, actor=provider.otto, servers=[free]),
        )
        assert won(results) == 1
        assert StagedChange.objects.values("partition__tenant").distinct().count() == 1
        assert TenantRequest.objects.filter(state="OPEN").count() == 1
        StagedChange.objects.all().delete()
        TenantRequest.objects.update(state="DONE")


def test_the_last_place_of_a_quota_is_given_once():
    """Two requests of one tenant, two servers, two partitions, one place: the tenant is held while it is counted."""
    portal = portal_of()
    provider, site = portal.provider, portal.site
    for _ in range(3):
        made = [asked.more(portal, count=1, partition=one) for one in (site.training, site.inference)]
        Tenant.objects.filter(pk=portal.acme.pk).update(most_servers=4)  # it has three
        results = together(
            partial(deciding.approve, request=made[0], actor=provider.olga, servers=[provider.servers[4]]),
            partial(deciding.approve, request=made[1], actor=provider.otto, servers=[provider.servers[5]]),
        )
        assert won(results) == 1
        assert StagedChange.objects.values("port__hca__server").distinct().count() == 1
        StagedChange.objects.all().delete()
        TenantRequest.objects.update(state="DONE")
        Tenant.objects.filter(pk=portal.acme.pk).update(most_servers=None)


def test_nobody_asks_twice_for_the_same_server():
    portal = portal_of()
    for _ in range(3):
        assert won(together(partial(asked.back, portal, 0), partial(asked.back, portal, 0, who="mia"))) == 1
        TenantRequest.objects.update(state="DONE")


def test_every_kind_goes_all_the_way_there_too():
    """The queries of pools, returns, storage and of what is done are other ones there than on SQLite."""
    portal = portal_of()
    provider, site = portal.provider, portal.site
    made = [asked.more(portal, count=1, partition=site.training), asked.back(portal, 2), asked.storage(portal)]
    assert list(deciding.pool(made[0])) == provider.servers[4:6]
    deciding.approve(request=made[0], actor=provider.olga, servers=[provider.servers[4]])
    for one in made[1:]:
        deciding.approve(request=one, actor=provider.olga)
    provider.settle(provider.roll_out(provider.olga, Selection.of_tenant(portal.acme), reason="requests"))
    follow.tick()
    assert [asked.fresh(one).state for one in made] == ["DONE"] * 3
    assert left_moves() == []
