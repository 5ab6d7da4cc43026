"""What a result becomes: a number only if it is whole, else a failed run with its reason; an incident if it lasts."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, transaction

from audit.models import Event
from audit.values import SYSTEM
from probes import operations, running
from probes.advice import advice_for
from probes.models import Incident, ProbeHost, ProbePair, ProbeRun, ProbeScope
from probes.planning import runs_of_pair, tick
from probes.schedule import Why
from probes.terms import Kind, Outcome, RunResult
from tests.probes.site import START, evidence, later, lost, ok

pytestmark = pytest.mark.django_db


def test_a_whole_result_becomes_a_number(site):
    run = site.run(ok(390.0))
    assert (run.state, run.outcome, run.gbps, run.pct_line) == ("DONE", "OK", 390.0, 97.5)
    assert run.samples == 1200
    assert run.p50_ns == pytest.approx(21_000, rel=0.0625)
    assert run.evidence["checksum"]["sent"] == "ab" * 32
    pair = ProbePair.objects.get()
    assert (pair.newest, pair.gbps, pair.verdict, pair.recent) == (run, 390.0, "GOOD", [390.0])


def without(name: str) -> RunResult:
    return ok(evidence={key: value for key, value in evidence().items() if key != name})


def figures(**changed) -> RunResult:
    result = ok()
    return replace(result, figures=result.figures | changed)


REFUSED = {
    "no backend": lambda: ok(evidence=evidence(sender={"device": "mlx5_0"})),
    "another checksum": lambda: ok(evidence=evidence(checksum={"sent": "a", "held": "b"})),
    "half a checksum": lambda: ok(evidence=evidence(checksum={"sent": "a"})),
    "an end that is a text": lambda: ok(evidence=evidence(target="mlx5_0")),
    "no sender": lambda: without("sender"),
    "no target": lambda: without("target"),
    "no checksum": lambda: without("checksum"),
    "no evidence": lambda: ok(evidence={}),
    "more completions than a row can count": lambda: figures(histogram=[[10, 1 << 31]]),
    "no completions": lambda: figures(histogram=[]),
    "a histogram of nonsense": lambda: figures(histogram=[[1, -5]]),
    "a rate that is no number": lambda: figures(gbps="fast"),
    "an infinite rate": lambda: figures(gbps=float("inf")),
    "a rate of 0": lambda: figures(gbps=0),
    "a TCP result": lambda: ok(kind=Kind.TCP, outcome=Outcome.TCP_OK),
    "RDMA that says TCP_OK": lambda: ok(outcome=Outcome.TCP_OK),
    "no figures": lambda: ok(figures={}),
}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, "fast", True, None])
def test_a_figure_that_no_database_holds_is_left_out(site, value):
    run = site.run(figures(post_ns=value, mmsgs=0.25))
    assert run.state == "DONE"
    assert "post_ns" not in run.figures
    assert run.figures["mmsgs"] == 0.25


@pytest.mark.parametrize("outcome", [Outcome.PEER_LOST, Outcome.BUSY])
def test_words_of_a_host_that_no_database_takes_are_made_plain(site, outcome):
    said = "lost\0 \ud800" + "x" * 3000
    run = site.run(replace(lost(outcome), reason=said, evidence={"failure": {"\udfff": said}}))
    assert run.reason.startswith("lost ?x")
    assert len(run.reason) == 2000
    assert "\0" not in str(run.evidence)


@pytest.mark.parametrize("what", REFUSED)
def test_a_result_that_is_not_whole_is_a_failed_run(site, what):
    run = site.run(REFUSED[what]())
    assert (run.state, run.outcome) == ("FAILED", "REFUSED_EVIDENCE")
    assert (run.gbps, run.pct_line, run.p50_ns, run.samples, run.figures, run.histogram) == (
        None,
        None,
        None,
        0,
        {},
        {},
    )
    assert run.reason
    assert ProbePair.objects.get().recent == []


@pytest.mark.parametrize("outcome", [one for one in Outcome if one not in (Outcome.OK, Outcome.TCP_OK, Outcome.BUSY)])
def test_every_other_outcome_is_a_failed_run_with_advice(site, outcome):
    run = site.run(replace(lost(outcome), figures={"gbps": 390.0}))
    assert (run.state, run.outcome, run.gbps, run.figures) == ("FAILED", outcome, None, {})
    assert (run.advice, run.failed_at_end) == (advice_for(outcome), "target")


def test_the_table_itself_refuses_a_number_of_a_failed_run(site):
    run = site.run(lost())
    with pytest.raises(IntegrityError), transaction.atomic():
        ProbeRun.objects.filter(pk=run.pk).update(gbps=390)
    with pytest.raises(IntegrityError), transaction.atomic():
        ProbeRun.objects.filter(pk=run.pk).update(state="DONE")
    run = site.run(ok())
    with pytest.raises(IntegrityError), transaction.atomic():
        ProbeRun.objects.filter(pk=run.pk).update(kind="TCP")


LOADED = {"load_pct": 34.1, "load_gbps": 136.4, "load_s": 1.0, "limit_pct": 20}


def busy():
    return replace(lost(Outcome.BUSY), reason="others send 136 Gb/s", evidence={"failure": LOADED})


def test_a_busy_port_puts_the_run_off_with_the_figure_and_finds_nothing(site):
    run = site.run(busy(), at=START)
    assert (run.state, run.outcome, run.failed_at_end) == ("DEFERRED", "BUSY", "target")
    assert run.evidence["failure"] == LOADED
    assert not ProbePair.objects.exists()
    assert not Incident.objects.exists()
    assert ProbeHost.objects.get(pk=site.hosts[1].pk).busy_until == later(60)
    assert ProbeHost.objects.get(pk=site.hosts[0].pk).busy_until is None


def test_the_next_try_of_a_run_that_was_put_off_is_a_row(site):
    run = site.run(busy(), at=START, why=Why.NOW)
    again = run.next_try
    assert (again.state, again.due_at, again.drop_at) == ("QUEUED", later(60), run.drop_at + timedelta(seconds=60))
    for name in ("scope", "sender", "target", "profile", "kind", "mode", "why", "rail"):
        assert getattr(again, name) == getattr(run, name)


def test_each_time_it_is_put_off_for_twice_as_long_up_to_half_an_hour(site):
    run, at, pauses = site.run(busy(), at=START), START, []
    for _ in range(7):
        pauses.append((run.next_try.due_at - at).total_seconds())
        at = run.next_try.due_at
        ProbeRun.objects.filter(pk=run.next_try_id).update(state="CLAIMED")
        running.run(run_id=run.next_try_id, measure=lambda *_: busy(), clock=lambda at=at: at)
        run = ProbeRun.objects.get(pk=run.next_try_id)
    assert pauses == [60, 120, 240, 480, 960, 1800, 1800]


def test_what_else_waits_for_a_busy_host_waits_with_it_and_is_not_lost(site):
    rows = runs_of_pair(
        site.scope, sender=site.hosts[1].pk, target=site.hosts[2].pk, why=Why.ROUND, now=START, due_at=START
    )
    rows += runs_of_pair(
        site.scope, sender=site.hosts[2].pk, target=site.hosts[3].pk, why=Why.ROUND, now=START, due_at=START
    )
    ProbeRun.objects.bulk_create(rows)
    waits = rows[0].drop_at - START
    site.run(busy(), at=START)
    its, another = (ProbeRun.objects.get(pk=row.pk) for row in rows)
    assert (its.due_at, its.drop_at) == (later(60), later(60) + waits)
    assert another.due_at == START


def test_no_next_try_falls_into_a_blackout_window(site):
    ProbeScope.objects.update(windows="Mon 00:00-24:00")
    monday = datetime(2026, 1, 5, tzinfo=UTC)
    site.scope.refresh_from_db()
    run = site.run(busy(), at=monday - timedelta(seconds=30))
    assert run.next_try.due_at == monday + timedelta(days=1)


def test_software_has_no_share_of_the_line(site):
    soft = evidence()
    soft["sender"] |= {"device": "rxe0", "is_software": True, "link_layer": "Ethernet"}
    run = site.run(ok(evidence=soft))
    assert (run.is_software, run.pct_line, run.gbps, run.link_layer) == (True, None, 390.0, "Ethernet")
    assert run.verdict == "GOOD"  # a rate of software is not held against the line


def test_a_tcp_baseline_is_a_series_of_its_own(site):
    operations.change_settings(
        scope=site.scope, settings=replace_settings(site.scope, tcp_interface="eth0"), actor=SYSTEM
    )
    site.scope.refresh_from_db()
    tcp = RunResult(
        outcome=Outcome.TCP_OK, kind=Kind.TCP, evidence=evidence(kind="TCP"), figures={"gbps": 9.4},
    )  # fmt: skip
    site.run(ok())
    run = site.run(tcp, kind=Kind.TCP)
    assert (run.state, run.pct_line, run.gbps) == ("DONE", None, 9.4)
    assert sorted(ProbePair.objects.values_list("kind", flat=True)) == ["RDMA", "TCP"]


def replace_settings(scope, **changed):
    from probes.settings_of_scope import ScopeSettings

    return replace(ScopeSettings.of(scope), **changed)


def test_a_host_cannot_fill_the_database(site):
    run = site.run(ok(evidence=evidence() | {"noise": ["x\0" * 10_000] * 10_000, "deep": [[[[[[[[1]]]]]]]]}))
    assert run.state == "DONE"
    assert len(str(run.evidence)) < 60_000
    assert "\0" not in str(run.evidence)


def test_a_drop_against_its_own_history_is_judged(site):
    for number in range(8):
        site.run(ok(390 + number % 3), at=later(number))
    run = site.run(ok(300), at=later(10))
    assert run.verdict == "BAD"
    assert {finding["rule"] for finding in run.findings} == {"line", "history"}


def test_peers_share_an_end(site):
    for target in (1, 2, 3):
        site.run(ok(392), sender=0, target=target)
    assert site.run(ok(361), sender=0, target=1).verdict == "GOOD"  # two peers are no group
    site.run(ok(361), sender=2, target=3)
    assert site.run(ok(361), sender=0, target=1).verdict == "GOOD"  # and that one shares no end
    site.run(ok(361), sender=2, target=1)
    assert site.run(ok(361), sender=0, target=1).verdict == "WARN"


def test_two_bad_runs_of_three_open_one_incident_that_stays(site):
    site.run(ok(390))
    site.run(ok(200))
    assert not Incident.objects.exists()
    bad = site.run(ok(200))
    incident = Incident.objects.get()
    assert (incident.rule, incident.run, incident.times) == ("line", bad, 1)
    assert Event.objects.filter(action="probes:incident:open").count() == 1
    site.run(lost())
    site.run(ok(200))
    assert Incident.objects.get(rule="line").times == 2
    site.run(ok(390))
    site.run(ok(390))
    incident.refresh_from_db()
    assert incident.recovered_at is not None
    assert incident.acknowledged_at is None


def test_a_person_closes_an_incident_and_a_new_one_can_open(site):
    from people.actor import actor_of

    olga = actor_of(site.provider.olga)
    for _ in range(2):
        site.run(lost())
    incident = Incident.objects.get()
    with pytest.raises(operations.incidents.ProbeRefused, match="what you found"):
        operations.acknowledge_incident(incident=incident, actor=olga, note=" ")
    operations.acknowledge_incident(incident=incident, actor=olga, note="Cable swapped.")
    with pytest.raises(operations.incidents.ProbeRefused, match="Olga"):
        operations.acknowledge_incident(incident=incident, actor=olga, note="Again.")
    event = Event.objects.order_by("number").last()
    assert (event.action, event.reason, event.actor_name) == ("probes:incident:acknowledge", "Cable swapped.", "Olga")
    site.run(lost())
    assert Incident.objects.filter(acknowledged_at=None).count() == 1


def test_a_run_is_run_once(site):
    tick(now=START)
    tick(now=later(40))
    run = ProbeRun.objects.filter(state="CLAIMED").first()
    measured = []

    def measure(*_):
        measured.append(1)
        assert running.run(run_id=run.pk, measure=measure) is None
        return ok()

    assert running.run(run_id=run.pk, measure=measure) == "DONE"
    assert running.run(run_id=run.pk, measure=measure) is None
    assert measured == [1]


def test_consent_is_asked_again_before_a_run(site):
    tick(now=START)
    tick(now=later(40))
    run = ProbeRun.objects.filter(state="CLAIMED").first()
    operations.set_consent(tenant=site.provider.acme, is_given=False, actor=SYSTEM)
    assert running.run(run_id=run.pk, measure=lambda *_: pytest.fail("it reached a host")) == "DROPPED"
    run.refresh_from_db()
    assert "Acme has not consented" in run.reason


def test_a_bug_in_the_worker_fails_the_run_and_is_told(site):
    tick(now=START)
    tick(now=later(40))
    run = ProbeRun.objects.filter(state="CLAIMED").first()

    def broken(*_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        running.run(run_id=run.pk, measure=broken)
    run.refresh_from_db()
    assert (run.state, run.outcome) == ("FAILED", "HOST_ERROR")
    assert "ZeroDivisionError" in run.reason


def test_a_run_that_was_given_up_meanwhile_stays_given_up(site):
    tick(now=START)
    tick(now=later(40))
    run = ProbeRun.objects.filter(state="CLAIMED").first()

    def measure(*_):
        tick(now=later(40_000))
        return ok()

    assert running.run(run_id=run.pk, measure=measure, clock=lambda: later(41)) == "FAILED"
    run.refresh_from_db()
    assert (run.outcome, run.gbps) == ("TIMED_OUT", None)


def test_the_order_names_the_ports_the_key_and_a_new_seed(site):
    from probes.orders import order_of

    tick(now=START)
    row = ProbeRun.objects.whole().first()
    order = order_of(row)
    assert order.pkey == 0x2C41
    assert order.sender.device == "mlx5_0"
    assert order.sender.port_guid.startswith("0x0002c904")
    assert order.sender.node_guid != order.target.node_guid
    assert order_of(row).seed != order.seed
    assert (order.ack_timeout, order.transfer_timeout_s) == (14, 30.0)
    ProbeScope.objects.update(is_patient=True)
    order = order_of(ProbeRun.objects.whole().first())
    assert (order.ack_timeout, order.transfer_timeout_s) == (18, 60.0)


def test_run_now_queues_both_ways_and_is_recorded(site, nudges, django_capture_on_commit_callbacks):
    from people.actor import actor_of

    ProbeScope.objects.update(is_enabled=False)
    with django_capture_on_commit_callbacks(execute=True):
        runs = operations.run_now(
            scope=site.scope, sender=site.hosts[0], target=site.hosts[1], actor=actor_of(site.provider.olga)
        )
    assert [(run.sender, run.target, run.why) for run in runs] == [
        (site.hosts[0], site.hosts[1], Why.NOW),
        (site.hosts[1], site.hosts[0], Why.NOW),
    ]
    assert "probes.tasks.tick" in nudges
    assert Event.objects.order_by("number").last().action == "probes:scope:run-now"
    quick = operations.run_now(scope=site.scope, actor=actor_of(site.provider.olga))
    assert len(quick) == 2
    with pytest.raises(operations.now.ProbeRefused, match="no pair"):
        operations.run_now(scope=site.scope, sender=site.hosts[0], target=site.hosts[0], actor=SYSTEM)
    with pytest.raises(operations.now.ProbeRefused, match="or neither"):
        operations.run_now(scope=site.scope, sender=site.hosts[0], actor=SYSTEM)
    operations.set_consent(tenant=site.provider.acme, is_given=False, actor=SYSTEM)
    with pytest.raises(operations.now.ProbeRefused, match="consented"):
        operations.run_now(scope=site.scope, actor=SYSTEM)
