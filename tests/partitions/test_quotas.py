"""How many servers a tenant may have: held at staging, and in the plan whatever staged the change."""

import pytest

from partitions import operations, quotas
from partitions.errors import MoveRefused
from partitions.models import StagedChange
from partitions.selection import Selection
from people.models import Tenant
from tests.console.conftest import settled_site


@pytest.fixture
def site(db):
    """Acme has srv-001 to srv-003 and may have three; srv-005 and srv-006 are free."""
    found = settled_site()
    limit(found, 3)
    return found


def limit(site, most):
    Tenant.objects.filter(pk=site.provider.acme.pk).update(most_servers=most)


def refused(plan):
    return [violation.sentence for violation in plan.refusals if violation.rule == "quota"]


def test_one_more_is_refused_with_what_where_and_how_to_mend_it(site):
    free = site.provider.servers[4]
    with pytest.raises(MoveRefused) as told:
        site.provider.move(free, None, site.training)
    assert told.value.rule == "quota"
    assert str(told.value) == (
        "Acme has 3 servers and may have 3, so srv-005 cannot come to it. Raise the number on the page of Acme first, "
        "or take another of its servers out."
    )
    assert not StagedChange.objects.exists()
    limit(site, 4)
    site.provider.move(free, None, site.training)
    limit(site, None)
    site.provider.move(site.provider.servers[5], None, site.training)


def test_its_own_servers_move_on_also_when_it_has_more_than_it_may(site):
    limit(site, 1)
    provider = site.provider
    provider.move(provider.servers[0], site.training, site.inference)
    operations.stage_add(server=provider.servers[1], target=site.inference, actor=provider.olga)
    assert refused(provider.plan(provider.olga)) == []


def test_who_leaves_makes_room_and_another_tenant_has_its_own(site):
    provider = site.provider
    provider.move(provider.servers[0], site.training, None)
    provider.move(provider.servers[4], None, site.training)
    provider.move(provider.servers[5], None, site.research)
    with pytest.raises(MoveRefused, match="Acme has 3 servers"):
        provider.move(provider.servers[5], site.research, site.training)


def test_of_many_the_first_come_as_far_as_there_is_room(site):
    limit(site, 4)
    free = site.provider.servers[4:6]
    moved = operations.stage_moves(moves=[(one, None) for one in free], target=site.training, actor=site.provider.olga)
    assert [bool(one.refusal) for one in moved] == [False, True]
    assert "Acme has 4 servers and may have 4, so srv-006" in moved[1].refusal


def test_the_plan_refuses_what_was_staged_before_the_number_was_lowered(site):
    limit(site, 5)
    provider = site.provider
    for server in provider.servers[4:6]:
        provider.move(server, None, site.training)
    assert refused(provider.plan(provider.olga)) == []
    limit(site, 4)
    (said,) = refused(provider.plan(provider.olga, Selection.everything()))
    assert "Acme has 3 servers and may have 4, so srv-005, srv-006 cannot come to it." in said
    with pytest.raises(MoveRefused, match="Acme has 3 servers"):
        provider.roll_out(provider.olga, reason="anyway")


def test_half_a_swap_is_refused_when_only_the_coming_half_goes_out(site):
    """Staged by two people, each half is fine on the board; a plan takes one half alone."""
    provider = site.provider
    provider.move(provider.servers[0], site.training, None, by=provider.otto)
    provider.move(provider.servers[4], None, site.training)
    assert refused(provider.plan(provider.olga)) != []
    assert refused(provider.plan(provider.olga, Selection.everything())) == []


def test_no_query_more_while_nobody_has_a_quota(site, django_assert_num_queries):
    provider = site.provider
    limit(site, None)
    provider.move(provider.servers[4], None, site.training)
    drawn = provider.plan(provider.olga)
    with django_assert_num_queries(0):
        assert list(quotas.too_many(drawn.changes, drawn.table, drawn.current, provider.subnet)) == []
