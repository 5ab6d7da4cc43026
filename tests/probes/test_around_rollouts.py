"""Before and after a rollout, for the pairs that it touched."""

import pytest
from django.utils import timezone

from audit import follow
from deploy.models import Fence
from inventory.models import Port
from partitions.default_rule import stage_default
from partitions.models import Membership as MembershipRow
from partitions.selection import Selection
from probes.around_rollouts import touched
from probes.members import roll_of
from probes.models import ProbeRun, ProbeScope, RolloutComparison
from probes.planning import COMPARISON_WAITS, tick
from probes.schedule import Why
from subnet.default import DefaultPartition
from subnet.guid import GUID
from subnet.member import Keyword, KeywordMember, Member
from subnet.pkey import Membership, PKey
from subnet.table import Partition, PartitionTable
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


ONE, OTHER, MANAGER = GUID("0x0002c90300000011"), GUID("0x0002c90300000021"), GUID("0x0002c903000000f1")
KEY = PKey(0x2C41)


def table(*partitions, **more):
    return PartitionTable(sm_ports=(MANAGER,), partitions=partitions, **more)


def by_keyword(*keywords, members=()):
    return Partition(KEY, "training", "acme", members, keywords=keywords)


ALL_CAS = KeywordMember(Keyword.ALL_CAS, Membership.FULL)
LIMITED_CAS = KeywordMember(Keyword.ALL_CAS, Membership.LIMITED)
SELF = KeywordMember(Keyword.SELF, Membership.FULL)
SWITCHES = KeywordMember(Keyword.ALL_SWITCHES, Membership.FULL)
OPEN = DefaultPartition(keywords=(KeywordMember(Keyword.ALL, Membership.FULL),))
EXCEPT_ONE = DefaultPartition(members=(Member(ONE, Membership.FULL),))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (table(), table(by_keyword(ALL_CAS)), {ONE, OTHER, MANAGER}),
        (table(by_keyword(ALL_CAS)), table(by_keyword(LIMITED_CAS)), {ONE, OTHER, MANAGER}),
        (table(), table(by_keyword(SELF)), {MANAGER}),
        (table(), table(by_keyword(SWITCHES)), set()),
        (
            table(by_keyword(ALL_CAS)),
            table(by_keyword(LIMITED_CAS, members=(Member(ONE, Membership.FULL),))),
            {OTHER, MANAGER},
        ),
        (table(default=OPEN), table(), {ONE, OTHER}),
        (table(), table(default=EXCEPT_ONE), {ONE}),
        (table(default=OPEN), table(default=OPEN), set()),
    ],
    ids=["keyword", "its kind", "SELF", "switches", "own line wins", "Default closed", "exception", "the same"],
)
def test_keywords_and_default_touch_the_ports_whose_keys_they_change(before, after, expected):
    assert touched(before, after, [ONE, OTHER, MANAGER]) == expected


def test_a_change_of_default_asks_for_the_pairs_of_the_server_it_changes(site):
    provider = site.provider
    port = Port.objects.filter(hca__server=site.hosts[3].server).order_by("guid").first()
    before = Fence.objects.get(subnet=provider.subnet).current.partition_table()
    RolloutComparison.objects.all().delete()
    stage_default(
        subnet=provider.subnet, keywords=before.default.keywords, members=[Member(port.guid, Membership.FULL)],
        actor=provider.olga, reason="storage",
    )  # fmt: skip
    provider.settle(provider.roll_out(provider.olga, Selection.everything(), reason="storage"))
    rows = list(RolloutComparison.objects.all())
    assert rows
    assert all(site.hosts[3] in (row.sender, row.target) for row in rows)


def test_a_partition_by_keyword_has_every_server_as_a_member(site):
    scope = site.scope
    MembershipRow.objects.filter(partition=site.partition).delete()
    assert not roll_of(scope).members
    type(site.partition).objects.update(keywords=[["ALL_CAS", "limited"]])
    scope.partition.refresh_from_db()
    members = roll_of(scope).members
    assert [member.host for member in members] == site.hosts
    assert roll_of(scope).limited(0) == {host.pk for host in site.hosts}
