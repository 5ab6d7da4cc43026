"""A tenant leaves: staged, rolled out, retired; nobody else's ports, partitions or work are touched."""

from datetime import timedelta

import pytest

from audit.models import Event
from audit.values import SYSTEM
from partitions import offboarding, operations, pkeys
from partitions.errors import MoveRefused, PartitionRefused
from partitions.models import Membership, Partition, StagedChange
from partitions.offboarding import Step, standing
from partitions.selection import Selection
from people import suspension
from people.errors import NoReason, NotOffboarded
from people.models import TenantRole, Token, User
from people.operations import create_tenant, create_token
from subnet.pkey import PKey
from tests.console.conftest import settled_site
from webhooks.models import Endpoint
from webhooks.operations import create_endpoint

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(db):
    """The settled site; one of Acme's servers shares the provider's storage, one of Bert's too."""
    found = settled_site()
    provider = found.provider
    for server in (provider.servers[0], provider.servers[3]):
        operations.stage_add(server=server, target=found.storage, actor=provider.olga)
    provider.settle(provider.roll_out(provider.olga, reason="storage"))
    return found


@pytest.fixture
def acme(site):
    return site.provider.acme


def suspended(tenant):
    suspension.suspend(tenant=tenant, actor=SYSTEM, reason="they leave")
    tenant.refresh_from_db()


def empty(site, tenant):
    return operations.stage_everybody_out(tenant=tenant, actor=site.provider.olga, reason="they leave")


def finish(site, tenant):
    return operations.finish_offboarding(tenant=tenant, actor=site.provider.olga, reason="they leave")


def members(**of):
    return set(Membership.objects.filter(**of).values_list("partition__name", "port__guid"))


def test_the_whole_way(site, acme):
    provider = site.provider
    person = User.objects.create(username="alice")
    TenantRole.objects.create(user=person, tenant=acme, role="ADMIN")
    create_token(person=person, name="ci", lifetime=timedelta(days=1), tenant=acme, actor=SYSTEM)
    create_endpoint(name="own", url="https://x.example.com/", kinds=["rollout"], tenant=acme, actor=SYSTEM)
    of_bert = members(partition__tenant=provider.bert) | members(port__hca__server=provider.servers[3])
    assert standing(acme).step is Step.SUSPEND
    suspended(acme)
    assert standing(acme).step is Step.STAGE

    ports = empty(site, acme)
    assert ports == 6  # three servers of two ports
    assert standing(acme) == offboarding.Offboarding(Step.ROLL_OUT, 2, 6, 6)
    assert members(partition__tenant=acme)  # nothing has happened yet
    plan = provider.plan(provider.otto, Selection.of_tenant(acme))
    assert len(plan.plan.affected) == 6  # exactly those, whoever staged them

    provider.settle(provider.roll_out(provider.otto, Selection.of_tenant(acme), reason="they leave"))
    assert standing(acme).step is Step.FINISH
    assert not members(partition__tenant=acme)
    assert not members(port__hca__server=provider.servers[0])  # out of the provider's storage too
    assert members(partition__tenant=provider.bert) | members(port__hca__server=provider.servers[3]) == of_bert

    assert finish(site, acme) == (2, 1, 1)
    acme.refresh_from_db()
    assert standing(acme).step is Step.OVER
    assert not Partition.objects.filter(tenant=acme).in_use().exists()
    assert not TenantRole.objects.filter(tenant=acme).exists()
    assert not Token.objects.filter(tenant=acme).exists()
    assert not Endpoint.objects.filter(tenant=acme).exists()
    assert Event.objects.filter(action="webhooks:endpoint:remove", tenant_key=acme.public_id).count() == 1
    event = Event.objects.latest("number")
    assert (event.action, event.reason) == ("people:tenant:offboard", "they leave")
    assert event.before == {"roles": [["alice", "ADMIN"]], "tokens": 1}
    for pkey in (0x2C41, 0x1B07):  # they cool down
        with pytest.raises(PartitionRefused, match="cools down"):
            pkeys.check(provider.subnet, PKey(pkey))
    with pytest.raises(NotOffboarded, match="already"):
        finish(site, acme)


def test_a_port_that_left_by_itself_keeps_no_key_of_what_was_shared(site, acme):
    provider, server = site.provider, site.provider.servers[0]
    provider.settled_move(server, site.training, None)
    assert {name for name, _ in members(port__hca__server=server)} == {"storage"}
    for partition in (site.training, site.inference):  # all the others go, one by one
        for other in {row.port.hca.server for row in Membership.objects.filter(partition=partition)}:
            provider.settled_move(other, partition, None)
    suspended(acme)
    assert standing(acme).step is Step.STAGE
    with pytest.raises(PartitionRefused, match="still is in storage"):
        finish(site, acme)
    assert Partition.objects.filter(tenant=acme).in_use().exists()  # all or nothing
    assert empty(site, acme) == 2
    StagedChange.objects.filter(partition__tenant=None).first().delete()  # as if it had been discarded
    assert standing(acme).step is Step.STAGE
    empty(site, acme)
    assert standing(acme).step is Step.ROLL_OUT
    provider.settle(provider.roll_out(provider.otto, Selection.of_tenant(acme), reason="they leave"))
    assert not members(port__hca__server=server)
    assert finish(site, acme)[0] == 2


def test_it_is_suspended_first_and_says_why(site, acme):
    for step in (empty, finish):
        with pytest.raises(NotOffboarded, match="Suspend Acme first"):
            step(site, acme)
    suspended(acme)
    with pytest.raises(NoReason):
        operations.stage_everybody_out(tenant=acme, actor=site.provider.olga, reason="")
    assert not StagedChange.objects.exists()


def test_nothing_is_retired_while_a_port_is_in_it(site, acme):
    suspended(acme)
    empty(site, acme)
    with pytest.raises(PartitionRefused, match="still has members"):
        finish(site, acme)
    acme.refresh_from_db()
    assert acme.offboarded_at is None
    assert Partition.objects.filter(tenant=acme).in_use().count() == 2


def test_what_an_operator_staged_stands_in_the_way(site, acme):
    suspended(acme)
    site.provider.move(site.provider.servers[0], site.training, site.inference, by=site.provider.otto)
    before = list(StagedChange.objects.values_list("pk", flat=True))
    with pytest.raises(MoveRefused, match="has staged") as refused:
        empty(site, acme)
    assert refused.value.rule == "another_person"
    assert list(StagedChange.objects.values_list("pk", flat=True)) == before


def test_what_its_own_people_staged_goes(site, acme):
    person = User.objects.create(username="alice", role="OPERATOR")  # stages as an operator would, for this test
    site.provider.move(site.provider.servers[0], site.training, site.inference, by=person)
    TenantRole.objects.create(user=person, tenant=acme, role="ADMIN")
    suspended(acme)
    assert empty(site, acme) == 6
    assert set(StagedChange.objects.values_list("by__username", "kind_to")) == {("olga", None)}


def test_somebody_who_is_on_the_way_in_is_named(site, acme):
    site.provider.move(site.provider.servers[5], None, site.training, by=site.provider.otto)
    suspended(acme)
    with pytest.raises(MoveRefused, match="into training"):
        empty(site, acme)


def test_a_running_rollout_is_waited_for(site, acme):
    site.provider.move(site.provider.servers[4], None, site.research)
    site.provider.roll_out(site.provider.olga, reason="under way")
    suspended(acme)
    with pytest.raises(MoveRefused, match="Wait until it has ended"):
        empty(site, acme)


def test_asked_for_twice_it_is_the_same(site, acme):
    suspended(acme)
    assert empty(site, acme) == empty(site, acme) == 6
    assert StagedChange.objects.filter(kind_to=None).count() == 8  # six in its own, two in the provider's


def test_it_can_be_undone_before_it_is_rolled_out(site, acme):
    suspended(acme)
    empty(site, acme)
    operations.undo(subnet=site.provider.subnet, actor=site.provider.olga)
    assert not StagedChange.objects.exists()


def test_a_tenant_without_anything_is_let_go_at_once(site):
    tenant = create_tenant(name="Nobody", actor=SYSTEM)
    suspended(tenant)
    assert standing(tenant).step is Step.FINISH
    assert finish(site, tenant) == (0, 0, 0)
