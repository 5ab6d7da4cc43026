"""Before and after a rollout, for the pairs that it touched."""

import pytest
from django.utils import timezone

from audit import follow
from probes.models import ProbeRun, ProbeScope, RolloutComparison
from probes.planning import COMPARISON_WAITS, tick
from probes.schedule import Why
from tests.probes.site import ok

pytestmark = pytest.mark.django_db


@pytest.fixture
def rolled_out(site):
    """srv-001 gets another partition beside training; its pairs had a run before, but for those with srv-004."""
    for peer in (1, 2):
        site.run(ok(390), sender=0, target=peer, at=timezone.now())
    provider = site.provider
    storage = provider.partition("storage", None, 0x0100)
    from partitions import operations as partitions
    from subnet.pkey import Membership

    partitions.stage_add(server=provider.servers[0], target=storage, membership=Membership.LIMITED, actor=provider.olga)
    rollout = provider.roll_out(provider.olga, reason="storage")
    provider.settle(rollout)
    return site, rollout


def test_touched_pairs_are_asked_for_with_what_was_before(rolled_out):
    site, rollout = rolled_out
    rows = RolloutComparison.objects.filter(rollout=rollout)
    assert {(row.sender, row.target) for row in rows} == {
        (site.hosts[0], site.hosts[1]),
        (site.hosts[0], site.hosts[2]),
    }
    assert {row.before.gbps for row in rows} == {390}
    assert {row.after for row in rows} == {None}


def test_the_next_tick_probes_them_first_and_the_result_is_attached(rolled_out):
    site, rollout = rolled_out
    now = timezone.now()
    ProbeRun.objects.filter(state="QUEUED").delete()
    ProbeScope.objects.update(next_at=now)
    tick(now=now)
    asked = ProbeRun.objects.filter(why=Why.ROLLOUT)
    assert {run.rollout for run in asked} == {rollout}
    assert asked.count() == 2
    after = site.run(ok(300), sender=0, target=1, at=timezone.now())
    row = RolloutComparison.objects.get(target=site.hosts[1])
    assert row.after == after
    assert RolloutComparison.objects.get(target=site.hosts[2]).after is None


def test_an_event_that_comes_twice_asks_once(rolled_out):
    from audit.models import Event
    from probes import around_rollouts

    count = RolloutComparison.objects.count()
    around_rollouts.follow(Event.objects.filter(action="deploy:rollout:proven").last())
    follow.tick()
    assert RolloutComparison.objects.count() == count


def test_an_untouched_pair_is_not_asked_for(rolled_out):
    site, _ = rolled_out
    assert not RolloutComparison.objects.exclude(sender=site.hosts[0]).exists()


def test_a_missing_baseline_stays_missing(site):
    provider = site.provider
    server = provider.server(7)
    from tests.probes.site import add_host

    add_host(server, provider)
    provider.settled_move(server, None, site.partition)
    rows = RolloutComparison.objects.all()
    assert rows
    assert all(row.before is None for row in rows)


def test_a_comparison_that_nothing_answers_is_given_up(rolled_out):
    tick(now=timezone.now() + COMPARISON_WAITS * 1.1)
    assert not RolloutComparison.objects.filter(given_up_at=None).exists()
