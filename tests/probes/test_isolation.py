"""Checks of isolation as rows: what is asked for, what the SA's answers make of it, and how loud a leak is."""

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from django.utils import timezone

from audit.models import Event
from audit.values import SYSTEM
from deploy import operations as deploy
from deploy.models import Fence, Rollout
from inventory.models import Port
from people.actor import actor_of
from probes import isolation, operations, path_checks
from probes.errors import ProbeRefused
from probes.models import Incident, IsolationCheck
from probes.operations.isolation import store
from probes.verdict import Isolation, Judged
from remote.errors import Unreachable
from remote.path_record import Answer, PathAnswer, PathAnswers
from subnet.guid import GUID
from tests.partitions.site import SM_PORTS, build

pytestmark = pytest.mark.django_db


@dataclass
class SA:
    """A manager host whose SA answers as the current table says; `leaking` pairs have a path all the same."""

    subnet: object
    name: str = "m1"
    entry: str = "0xffff"
    sm: str = SM_PORTS[0]
    leaking: set = field(default_factory=set)
    silent: set = field(default_factory=set)
    error: Exception | None = None
    asked: list = field(default_factory=list)
    meanwhile: object = None

    def path_records(self, pairs, *, timeout_s):
        self.asked.append(list(pairs))
        if self.error:
            raise self.error
        assert len(pairs) <= 64
        held = Fence.objects.get(subnet=self.subnet).current.partition_table()
        tenancy = isolation.Tenancy.of(held)
        asker = dict(zip(("m1", "m2"), SM_PORTS, strict=True))[self.name]
        answers = []
        for one, other in pairs:
            key = 0x7FFF if self.entry == "0xffff" and asker in (one, other) else tenancy.shared_key(one, other)
            if {one, other} & self.silent:
                answers.append(PathAnswer(one, other, Answer.UNANSWERED, why="timeout"))
            elif (key is None or self.entry != "0xffff") and (one, other) not in self.leaking:
                answers.append(PathAnswer(one, other, Answer.REFUSED))
            else:
                answers.append(PathAnswer(one, other, Answer.FOUND, pkey=f"{key or 0x7FFF:#06x}", slid=1, dlid=2))
        if self.meanwhile:
            self.meanwhile()
        return PathAnswers(asker, self.entry, 1, self.sm, tuple(answers))


@dataclass
class Site:
    provider: object
    training: object
    berts: object
    rollout: object = None

    def run(self, *hosts):
        @contextmanager
        def connect(subnet):
            yield hosts

        return path_checks.run(subnet_id=self.provider.subnet.pk, connect=connect)

    @property
    def sa(self):
        return SA(self.provider.subnet)


@pytest.fixture
def site(db):
    """srv-001 to srv-003 in Acme's training, srv-004 and srv-005 in Bert's; then srv-001 moves to Bert's."""
    provider = build()
    training = provider.partition("training", provider.acme, 0x2C41)
    berts = provider.partition("berts", provider.bert, 0x2C42)
    for number, target in ((1, training), (2, training), (3, training), (4, berts), (5, berts)):
        provider.move(provider.server(number), None, target)
    provider.settle(provider.roll_out(provider.olga, reason="first"))
    IsolationCheck.objects.all().delete()
    return Site(provider, training, berts, move(provider, to="bert"))


def move(provider, *, to):
    """srv-001 to another tenant, as it must be: one revision takes it away, the next one gives it."""
    mine = set(Port.objects.filter(hca__server=provider.servers[0]).values_list("guid", flat=True))
    now = Fence.objects.get(subnet=provider.subnet).current.partition_table().partitions
    members = tuple(member for partition in now for member in partition.members if member.guid in mine)
    without = tuple(
        replace(partition, members=tuple(one for one in partition.members if one.guid not in mine)) for partition in now
    )
    there = tuple(
        replace(partition, members=partition.members + members) if partition.tenant == to else partition
        for partition in without
    )
    IsolationCheck.objects.filter(rollout=roll_out(provider, without)).delete()  # of these the others are told
    return roll_out(provider, there)


def roll_out(provider, partitions):
    parent = Fence.objects.get(subnet=provider.subnet).current
    table = replace(parent.partition_table(), partitions=partitions)
    revision = deploy.propose(subnet=provider.subnet, table=table, parent=parent, actor=SYSTEM)
    rollout = deploy.start(revision=revision, observation=provider.observe(), actor=SYSTEM)
    provider.settle(rollout)
    return Rollout.objects.get(pk=rollout.pk)


def verdicts():
    return set(IsolationCheck.objects.values_list("verdict", flat=True))


class TestAsking:
    def test_a_rollout_that_moves_a_server_between_tenants_is_followed_by_checks_both_ways(self, site):
        rows = list(IsolationCheck.objects.all())
        assert rows
        assert {row.rollout for row in rows} == {site.rollout}
        assert {(row.plane, row.state, row.cause) for row in rows} == {("CONTROL", "QUEUED", "ROLLOUT")}
        moved, left = site.provider.servers[0], set(site.provider.servers[1:3])
        others = ({row.sender for row in rows} | {row.target for row in rows}) - {moved}
        assert others
        assert others <= left
        pairs = {(row.sender_guid, row.target_guid) for row in rows}
        assert {(two, one) for one, two in pairs} == pairs
        there = next(row for row in rows if row.sender == moved)
        assert (there.sender_tenant, there.target_tenant) == ("bert", "acme")

    def test_one_that_takes_it_away_is_followed_by_checks_with_its_former_neighbours(self, site):
        provider = site.provider
        now = Fence.objects.get(subnet=provider.subnet).current.partition_table().partitions
        mine = set(Port.objects.filter(hca__server=provider.servers[1]).values_list("guid", flat=True))
        gone = roll_out(
            provider,
            tuple(replace(one, members=tuple(m for m in one.members if m.guid not in mine)) for one in now),
        )
        rows = IsolationCheck.objects.filter(rollout=gone)
        neighbours = {row.target for row in rows if row.sender == provider.servers[1]}
        assert provider.servers[2] in neighbours
        # Of the other tenant whoever was drawn: srv-001, which went there, as well as those that were there.
        assert neighbours & {provider.servers[0], *provider.servers[3:5]}

    def test_an_event_that_comes_twice_asks_once(self, site):
        count = IsolationCheck.objects.count()
        isolation.follow(Event.objects.filter(action="deploy:rollout:proven").latest("number"))
        assert IsolationCheck.objects.count() == count

    def test_a_rollout_that_moves_nobody_between_tenants_asks_for_nothing(self, site):
        IsolationCheck.objects.all().delete()
        provider = site.provider
        more = provider.partition("more", provider.acme, 0x2C43)
        provider.settled_move(provider.servers[1], site.training, more)
        assert not IsolationCheck.objects.exists()

    def test_the_schedule_samples_strangers_once_an_interval(self, site, settings):
        IsolationCheck.objects.all().delete()
        settings.PROBE_ISOLATION_PAIRS = 3
        now = timezone.now()
        isolation.tick(now=now)
        assert IsolationCheck.objects.filter(cause="SCHEDULE").count() == 6
        isolation.tick(now=now + timedelta(seconds=settings.PROBE_ISOLATION_INTERVAL_S - 1))
        assert IsolationCheck.objects.count() == 6
        isolation.tick(now=now + timedelta(seconds=settings.PROBE_ISOLATION_INTERVAL_S + 1))
        assert IsolationCheck.objects.count() == 12

    def test_a_person_asks_now_and_the_trail_says_so(self, site):
        IsolationCheck.objects.all().delete()
        rows = operations.check_now(subnet=site.provider.subnet, actor=actor_of(site.provider.olga))
        assert rows
        assert {row.asked_by for row in rows} == {"Olga"}
        assert Event.objects.latest("number").action == "probes:isolation:check-now"

    def test_nobody_to_keep_apart_is_said(self, db):
        with pytest.raises(ProbeRefused, match="nobody has to be kept apart"):
            operations.check_now(subnet=build().subnet, actor=SYSTEM)

    def test_what_waits_is_nudged_to_the_queue_that_may_and_not_while_a_rollout_runs(self, site, nudged):
        IsolationCheck.objects.update(asked_at=timezone.now())
        isolation.tick(now=timezone.now())
        assert ("probes.tasks.ask_for_paths", {"subnet_id": site.provider.subnet.pk}) in nudged
        nudged.clear()
        hold(site)
        isolation.tick(now=timezone.now())
        assert nudged == []

    def test_what_waits_too_long_is_dropped_and_what_a_dead_worker_had_waits_again(self, site):
        now = timezone.now()
        IsolationCheck.objects.update(asked_at=now, state="RUNNING", claimed_until=now - timedelta(seconds=1))
        isolation.tick(now=now)
        assert set(IsolationCheck.objects.values_list("state", flat=True)) == {"QUEUED"}
        isolation.tick(now=now + timedelta(hours=2))
        assert "DROPPED" in set(IsolationCheck.objects.filter(rollout=site.rollout).values_list("state", flat=True))


def test_only_the_account_that_reaches_manager_hosts_asks_the_sa():
    from fabricui.celery import app

    assert app.conf.task_routes["probes.tasks.ask_for_paths"] == {"queue": "observe"}
    assert app.conf.task_routes["probes.tasks.attempt"] == {"queue": "probe"}
    assert "probes.tasks.check_isolation" in {entry["task"] for entry in app.conf.beat_schedule.values()}


def hold(site):
    Rollout.objects.filter(pk=site.rollout.pk).update(state=Rollout.State.PLACING)
    Fence.objects.update(rollout=site.rollout)


@pytest.fixture
def nudged(monkeypatch):
    asked = []
    monkeypatch.setattr("audit.nudge.task", lambda name, kwargs: asked.append((name, kwargs)))
    return asked


class TestAskingTheSA:
    def test_strangers_without_a_path_are_isolated_with_their_controls_as_evidence(self, site):
        sa = site.sa
        assert site.run(sa) == IsolationCheck.objects.count()
        assert verdicts() == {"ISOLATED"}
        row = IsolationCheck.objects.first()
        assert row.evidence["asker_default_entry"] == "0xffff"
        assert row.evidence["answer"]["answer"] == "refused"
        for controls in (row.evidence["controls_before"], row.evidence["controls_after"]):
            assert {one["answer"] for one in controls} == {"found"}
            about = {one[end] for one in controls for end in ("source", "target")}
            assert {row.sender_guid, row.target_guid, SM_PORTS[0]} <= about
            assert len(controls) == 4
        assert not Incident.objects.exists()

    def test_a_path_between_strangers_is_a_leak(self, site):
        row = IsolationCheck.objects.first()
        pair = GUID(row.sender_guid), GUID(row.target_guid)
        sa = site.sa
        sa.leaking = {pair}
        site.run(sa)
        assert IsolationCheck.objects.get(verdict="LEAK").pk == row.pk
        incident = Incident.objects.get()
        assert (incident.leak, incident.rule, incident.pair) == (row, "leak", None)
        event = Event.objects.get(action="probes:isolation:leak")
        assert event.after["rollout"] == site.rollout.public_id
        assert event.tenant_key == ""

    def test_a_limited_asker_proves_nothing_and_another_one_is_asked(self, site):
        limited = SA(site.provider.subnet, entry="0x7fff")
        site.run(limited)
        assert verdicts() == {"INCONCLUSIVE"}
        IsolationCheck.objects.update(state="QUEUED", verdict="")
        site.run(SA(site.provider.subnet, entry="0x7fff"), SA(site.provider.subnet, name="m2"))
        assert verdicts() == {"ISOLATED"}
        assert IsolationCheck.objects.first().evidence["asked_from"] == "m2"

    def test_a_port_that_the_sa_does_not_answer_about_is_inconclusive(self, site):
        sa = site.sa
        gone = GUID(IsolationCheck.objects.first().sender_guid)
        sa.silent = {gone}
        site.run(sa)
        for row in IsolationCheck.objects.all():
            expected = "INCONCLUSIVE" if gone in (row.sender_guid, row.target_guid) else "ISOLATED"
            assert row.verdict == expected

    def test_without_any_path_between_two_others_nothing_is_believed(self, site):
        sa = site.sa
        row = IsolationCheck.objects.first()
        two = {GUID(row.sender_guid), GUID(row.target_guid)}
        held = isolation.tenancy_now(site.provider.subnet)[0]
        sa.silent = {guid for guid in held.keys if guid not in two}
        site.run(sa)
        row.refresh_from_db()
        assert (row.verdict, "succeeded before" in row.sentence) == ("INCONCLUSIVE", True)

    def test_the_sa_of_a_foreign_sm_proves_nothing(self, site):
        sa = site.sa
        sa.sm = "0x00000000000000aa"
        site.run(sa)
        assert verdicts() == {"INCONCLUSIVE"}

    def test_no_host_that_answers_is_inconclusive_with_the_reason(self, site):
        sa = site.sa
        sa.error = Unreachable("Manager host m1 does not answer.", host="m1")
        site.run(sa)
        assert verdicts() == {"INCONCLUSIVE"}
        assert "m1 does not answer" in IsolationCheck.objects.first().sentence

    def test_nothing_is_asked_while_a_rollout_runs(self, site):
        hold(site)
        sa = site.sa
        assert site.run(sa) == 0
        assert sa.asked == []
        assert set(IsolationCheck.objects.values_list("state", flat=True)) == {"QUEUED"}

    def test_what_was_heard_while_a_rollout_began_is_thrown_away(self, site):
        sa = site.sa
        sa.meanwhile = lambda: Fence.objects.update(generation=99)
        assert site.run(sa) == 0
        assert set(IsolationCheck.objects.values_list("state", "verdict")) == {("QUEUED", "")}

    def test_who_may_talk_by_now_is_not_asked_about(self, site):
        provider = site.provider
        move(provider, to="acme")
        IsolationCheck.objects.exclude(rollout=site.rollout).delete()
        assert site.run(site.sa) == 0
        assert set(IsolationCheck.objects.values_list("state", flat=True)) == {"DROPPED"}

    def test_any_number_of_checks_fits_into_calls_of_64(self, site):
        made = [IsolationCheck(sender_guid=f"0x{one:016x}", target_guid=f"0x{one + 1000:016x}") for one in range(1, 60)]
        portions = list(path_checks.calls(made))
        assert [row for some in portions for row in some] == made
        for some in portions:
            ports = {guid for row in some for guid in (row.sender_guid, row.target_guid)}
            assert len(some) + 4 * len(ports) <= 64


LEAK = Judged(Isolation.LEAK, False, "The SA gives a path between the two.")
FINE = Judged(Isolation.ISOLATED, False, "No path.")


class TestAlarm:
    def store(self, row, judged):
        IsolationCheck.objects.filter(pk=row.pk).update(state="RUNNING", verdict="")
        return store(row, judged=judged, evidence={}, now=timezone.now())

    def test_a_leak_stays_until_a_person_acknowledges_it_also_when_it_is_gone(self, site):
        row = IsolationCheck.objects.first()
        self.store(row, LEAK)
        self.store(row, LEAK)
        incident = Incident.objects.get()
        assert incident.times == 2
        self.store(row, FINE)
        incident.refresh_from_db()
        assert incident.recovered_at is not None
        assert incident.acknowledged_at is None
        self.store(row, LEAK)
        incident.refresh_from_db()
        assert (incident.recovered_at, incident.times) == (None, 3)
        operations.acknowledge_incident(
            incident=incident, actor=actor_of(site.provider.olga), note="SM's file was edited"
        )
        self.store(row, LEAK)
        assert Incident.objects.filter(acknowledged_at=None).count() == 1
        assert Incident.objects.count() == 2
        assert Event.objects.filter(action="probes:isolation:leak").count() == 4

    @pytest.mark.parametrize("said", [float("nan"), float("inf"), "\0", "\ud800", ["x" * 999] * 999])
    def test_no_answer_of_a_server_keeps_a_leak_untold(self, site, said):
        row = IsolationCheck.objects.first()
        IsolationCheck.objects.filter(pk=row.pk).update(state="RUNNING")
        judged = replace(LEAK, sentence=f"{LEAK.sentence} {said}")
        assert store(row, judged=judged, evidence={"attempt": {"kernel": said, str(said): 1}}, now=timezone.now())
        assert (IsolationCheck.objects.get(pk=row.pk).verdict, Incident.objects.count()) == ("LEAK", 1)

    def test_an_inconclusive_check_calls_nothing_good_again(self, site):
        row = IsolationCheck.objects.first()
        self.store(row, LEAK)
        self.store(row, Judged(Isolation.INCONCLUSIVE, False, "No control."))
        assert Incident.objects.get().recovered_at is None

    def test_a_verdict_that_comes_after_the_check_is_over_is_not_stored(self, site):
        row = IsolationCheck.objects.first()
        assert store(row, judged=LEAK, evidence={}, now=timezone.now()) is False
        assert not Incident.objects.exists()


def test_old_checks_are_removed_but_for_what_opened_an_incident(site):
    now = timezone.now()
    isolation.tick(now=now)
    rows = list(IsolationCheck.objects.order_by("pk")[:5])
    IsolationCheck.objects.exclude(pk__in=[row.pk for row in rows]).delete()
    ages = ((31, "SCHEDULE", FINE), (29, "SCHEDULE", FINE), (31, "ROLLOUT", FINE), (731, "ROLLOUT", FINE))
    for row, (days, cause, judged) in zip(rows, [*ages, (800, "SCHEDULE", LEAK)], strict=True):
        IsolationCheck.objects.filter(pk=row.pk).update(
            state="RUNNING", cause=cause, asked_at=now - timedelta(days=days), rollout=None
        )
        store(row, judged=judged, evidence={}, now=now)
    assert isolation.forget(now=now, runs_kept_days=30, days_kept_days=730) == 2
    assert set(IsolationCheck.objects.all()) == {rows[1], rows[2], rows[4]}
