"""The tick on rows: due scopes, claims, lost runs, windows, rollouts, consent."""

import pytest

from audit.values import SYSTEM
from deploy.models import Fence, Rollout
from partitions.models import Membership
from probes import operations
from probes.models import ProbeHost, ProbePair, ProbeRun, ProbeScope, RolloutComparison
from probes.pairing import full_cycle
from probes.planning import tick
from probes.schedule import LoadMode, Why
from probes.settings_of_scope import ScopeSettings
from tests.probes.site import START, add_host, later, ok, probed

pytestmark = pytest.mark.django_db


def queued() -> list[ProbeRun]:
    return list(ProbeRun.objects.order_by("pk"))


def test_a_tick_queues_the_budget_once_and_notes_the_next_time(site):
    assert tick(now=START).queued == 4
    assert tick(now=START).queued == 0
    scope = ProbeScope.objects.get()
    assert scope.next_at == later(300)
    assert tick(now=later(299)).queued == 0
    ProbeRun.objects.update(state=ProbeRun.State.DROPPED)
    assert tick(now=later(301)).queued == 4
    assert ProbeScope.objects.get().next_at == later(600)


def test_a_worker_that_was_down_for_a_day_does_not_catch_up_all_ticks(site):
    tick(now=START)
    tick(now=later(86_400))
    assert ProbeScope.objects.get().next_at == later(86_400 + 300)


def test_each_profile_is_a_run_and_the_tcp_baseline_is_its_own(site):
    settings = ScopeSettings(is_enabled=True, profiles=("link", "lat"), budget=1, tcp_interface="eth0")
    operations.change_settings(scope=site.scope, settings=settings, actor=SYSTEM)
    ProbeScope.objects.update(next_at=START)
    tick(now=START)
    assert sorted((run.profile, run.kind) for run in queued()) == [("lat", "RDMA"), ("link", "RDMA"), ("link", "TCP")]


def test_ticks_cover_every_ordered_pair(site):
    for number in range(2 * full_cycle(range(4)) // 4):
        tick(now=later(300 * number))
        ProbeRun.objects.update(state=ProbeRun.State.DROPPED)
    # what is probed never counts as done here, so new hosts keep asking; the rounds reach all the same
    assert len({(run.sender_id, run.target_id) for run in queued()}) == full_cycle(range(4))


def test_what_begins_is_claimed_within_the_cap_and_nudged(site, settings, nudges, django_capture_on_commit_callbacks):
    settings.PROBES_AT_ONCE = 1
    tick(now=START)
    with django_capture_on_commit_callbacks(execute=True):
        assert tick(now=later(40)).begun == 1
    assert nudges.count("probes.tasks.run") == 1
    assert ProbeRun.objects.filter(state=ProbeRun.State.CLAIMED).count() == 1
    assert tick(now=later(41)).begun == 0


def test_a_host_is_in_one_run_at_a_time(site):
    tick(now=START)
    tick(now=later(40))
    going = ProbeRun.objects.filter(state=ProbeRun.State.CLAIMED)
    ends = [end for run in going for end in (run.sender_id, run.target_id)]
    assert len(ends) == len(set(ends))
    assert ends


def test_a_claim_that_nobody_took_up_waits_again(site):
    tick(now=START)
    tick(now=later(40))
    begun = set(ProbeRun.objects.filter(state=ProbeRun.State.CLAIMED).values_list("pk", flat=True))
    assert tick(now=later(40 + 61)).lost == len(begun)
    assert set(ProbeRun.objects.filter(state=ProbeRun.State.CLAIMED).values_list("pk", flat=True)) == begun


def test_a_run_whose_worker_died_has_failed_with_a_sentence(site):
    tick(now=START)
    ProbeRun.objects.update(state=ProbeRun.State.RUNNING, claimed_until=later(10))
    tick(now=later(11))
    for run in queued()[:4]:
        assert (run.state, run.outcome, run.gbps) == ("FAILED", "TIMED_OUT", None)
        assert "worker" in run.reason


def test_what_waited_too_long_is_dropped(site, settings):
    settings.PROBES_AT_ONCE = 1
    tick(now=START)
    ProbeScope.objects.update(is_enabled=False)
    ProbeRun.objects.exclude(pk=queued()[0].pk).update(drop_at=later(50))
    assert tick(now=later(60)).dropped == 3
    assert ProbeRun.objects.filter(state="DROPPED", reason__contains="in its time").count() == 3


def test_no_tick_in_a_blackout_window(site):
    hour = START.hour
    ProbeScope.objects.update(windows=f"{hour:02}:00-{hour:02}:59\n{hour:02}:59-{(hour + 1) % 24:02}:00")
    assert tick(now=START).queued == 0
    opens = ProbeScope.objects.get().next_at
    assert opens > START
    assert opens.minute == 0
    assert tick(now=opens).queued == 4


def test_no_tick_while_a_rollout_changes_the_tables(site):
    provider = site.provider
    provider.move(provider.servers[0], site.partition, None)
    rollout = provider.roll_out(provider.olga)
    assert Fence.objects.get().rollout == rollout
    assert tick(now=START).queued == 0
    provider.prove(rollout)
    Rollout.objects.update(state="PROVEN")
    assert tick(now=later(11)).queued > 0


def test_what_was_queued_before_a_rollout_waits_until_it_is_over(site):
    tick(now=START)
    provider = site.provider
    provider.move(provider.servers[0], site.partition, None)
    rollout = provider.roll_out(provider.olga)
    assert tick(now=later(40)).begun == 0
    provider.prove(rollout)
    assert tick(now=later(60)).begun > 0


def test_without_consent_nothing_is_probed_and_it_says_so(site):
    from probes.members import roll_of

    operations.set_consent(tenant=site.provider.acme, is_given=False, actor=SYSTEM)
    assert tick(now=START).queued == 0
    left_out = roll_of(site.scope).left_out
    assert [one.hostname for one in left_out] == ["srv-001", "srv-002", "srv-003", "srv-004"]
    assert "Acme has not consented" in left_out[0].sentence


def test_a_server_without_the_program_is_left_out(site):
    from probes.members import roll_of

    operations.withdraw_probe_host(host=site.hosts[1], actor=SYSTEM)
    ProbeHost.objects.filter(pk=site.hosts[2].pk).delete()
    roll = roll_of(site.scope)
    assert [member.host.server.hostname for member in roll.members] == ["srv-001", "srv-004"]
    assert ["withdrawn" in one.sentence for one in roll.left_out] == [True, False]


def test_two_limited_members_are_never_a_pair(site):
    Membership.objects.exclude(port__hca__server__hostname="srv-004").update(kind="limited")
    for number in range(4):
        tick(now=later(300 * number))
    full = site.hosts[3].pk
    assert queued()
    assert all(full in (run.sender_id, run.target_id) for run in queued())


def test_bad_pairs_and_new_hosts_come_first(site):
    for sender in range(4):
        for target in range(4):
            if sender != target:
                site.run(ok(), sender=sender, target=target)
    ProbePair.objects.filter(sender=site.hosts[2], target=site.hosts[0]).update(verdict="BAD")
    server = site.provider.server(9)
    site.provider.settled_move(server, None, site.partition)
    add_host(server, site.provider)
    ProbeRun.objects.all().delete()
    RolloutComparison.objects.all().delete()
    ProbeScope.objects.update(next_at=later(1000), budget=6)
    tick(now=later(1000))
    why = [run.why for run in queued()]
    assert why.count(Why.NEW) == 2
    assert why.count(Why.BAD) == 1
    assert why.count(Why.ROUND) == 3


def test_a_busy_host_is_planned_around(site):
    ProbeHost.objects.filter(pk=site.hosts[0].pk).update(busy_until=later(30))
    tick(now=START)
    assert all(site.hosts[0].pk not in (run.sender_id, run.target_id) for run in queued())


def test_scopes_share_the_budget(db, settings):
    site = probed(servers=6)
    settings.PROBE_PAIRS_PER_TICK = 4
    other = operations.create_probe_set(
        subnet=site.provider.subnet, name="roce", actor=SYSTEM,
        settings=ScopeSettings(is_enabled=True, profiles=("link",), budget=30, mode=LoadMode.QUIET),
    )  # fmt: skip
    for host in site.hosts[:3]:
        operations.add_to_probe_set(scope=other, host=host, actor=SYSTEM)
    ProbeScope.objects.update(next_at=START)
    tick(now=START)
    assert sorted(ProbeRun.objects.values_list("scope", flat=True)) == sorted([site.scope.pk] * 2 + [other.pk] * 2)


def test_rails_take_turns_when_all_are_asked_for(site):
    settings = ScopeSettings(is_enabled=True, profiles=("link",), budget=12, has_all_rails=True, mode=LoadMode.LOADED)
    operations.change_settings(scope=site.scope, settings=settings, actor=SYSTEM)
    ProbeScope.objects.update(next_at=START, position=11)
    rails = []
    for number in range(3):
        tick(now=later(400 * number))
        rails.append(ProbeScope.objects.get().rail)
        ProbeRun.objects.update(state=ProbeRun.State.DROPPED)
    assert set(rails) == {0, 1}


def test_a_tick_of_nothing_asks_little(db, django_assert_max_num_queries):
    with django_assert_max_num_queries(6):
        tick(now=START)


@pytest.mark.parametrize("servers", [4, 8])
def test_a_tick_asks_the_same_whatever_the_number_of_servers(db, servers, django_assert_max_num_queries):
    probed(servers=servers)
    with django_assert_max_num_queries(26):
        assert tick(now=START).queued == 4
