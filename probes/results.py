"""Store what came of a run: the run's row, its pair, the judgement, incidents, comparisons; all in one transaction."""

from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import F, Q

from audit.actions import Action
from audit.record import record
from audit.values import SYSTEM
from probes import windows
from probes.accept import Numbers, accept
from probes.judgement import (
    HISTORY,
    Judgement,
    Measured,
    Rule,
    Thresholds,
    Verdict,
    failed,
    judge,
    opens_incident,
)
from probes.models import Incident, ProbeHost, ProbePair, ProbeRun, RolloutComparison
from probes.operations.incidents import incident_subject
from probes.operations.scopes import tenant_key_of
from probes.profiles import CONTIGUOUS, is_latency
from probes.terms import Kind, Order, Outcome, RunResult

BUSY_PAUSE: Final = timedelta(seconds=60)
LONGEST_PAUSE: Final = timedelta(minutes=30)
PEERS_FRESH: Final = timedelta(hours=24)
VERDICTS_KEPT: Final = 5


def drop(run: ProbeRun, *, reason: str, now: datetime) -> ProbeRun.State:
    """End a run that may not begin; it says nothing about the pair."""
    mine = ProbeRun.objects.filter(pk=run.pk, state=ProbeRun.State.RUNNING)
    mine.update(state=ProbeRun.State.DROPPED, finished_at=now, claimed_until=None, reason=reason)
    return ProbeRun.State.DROPPED


@transaction.atomic
def store(run: ProbeRun, *, order: Order, result: RunResult, now: datetime) -> ProbeRun.State:
    """Store `result` and what follows from it. A run that somebody else has ended meanwhile stays as it is."""
    result, numbers = accept(result, order=order)
    if not ProbeRun.objects.select_for_update().filter(pk=run.pk, state=ProbeRun.State.RUNNING).exists():
        return ProbeRun.State(ProbeRun.objects.values_list("state", flat=True).get(pk=run.pk))
    if result.outcome is Outcome.BUSY:
        return _defer(run, result, now)
    pair = _pair_of(run, now)
    judgement = failed(result.outcome, result.reason) if numbers is None else _judge(run, pair, numbers, now=now)
    state = ProbeRun.State.FAILED if numbers is None else ProbeRun.State.DONE
    run.pair = pair
    _write_run(run, state, result, numbers, judgement, now)
    _write_pair(pair, run, numbers, judgement, now)
    if run.kind == Kind.RDMA:
        RolloutComparison.objects.filter(
            scope=run.scope_id, sender=run.sender_id, target=run.target_id, profile=run.profile, after=None,
            given_up_at=None, asked_at__lte=run.started_at,
        ).update(after=run)  # fmt: skip
    opened = _incidents(pair, run, judgement, now)
    for incident in opened:
        record(
            action=Action.PROBE_INCIDENT_OPEN, actor=SYSTEM, subject=incident_subject(incident),
            after={"rule": incident.rule, "sentence": incident.sentence, "run": run.public_id},
            tenant_key=tenant_key_of(run.scope),
        )  # fmt: skip
    return state


def _defer(run: ProbeRun, result: RunResult, now: datetime) -> ProbeRun.State:
    """A busy port is no finding: the run is put off with what was seen, and a row of its own tries again later.

    Each time it is put off for twice as long. Whatever else waits for the busy host waits with it.
    """
    previous = ProbeRun.objects.filter(next_try=run).only("finished_at").first()
    waited = run.due_at - previous.finished_at if previous and previous.finished_at else BUSY_PAUSE / 2
    pause = min(LONGEST_PAUSE, max(BUSY_PAUSE, 2 * waited))
    busy = {"sender": [run.sender_id], "target": [run.target_id]}.get(result.at, [run.sender_id, run.target_id])
    ProbeHost.objects.filter(pk__in=busy).update(busy_until=now + pause)
    others = ProbeRun.objects.filter(Q(sender__in=busy) | Q(target__in=busy), state=ProbeRun.State.QUEUED)
    others.filter(due_at__lt=now + pause).update(due_at=now + pause, drop_at=F("drop_at") + pause)
    run.state, run.outcome, run.finished_at, run.claimed_until = ProbeRun.State.DEFERRED, Outcome.BUSY, now, None
    run.reason, run.advice, run.failed_at_end = result.reason[:2000], result.advice[:2000], _one_end(result.at)
    run.evidence, run.next_try = result.evidence, _next_try(run, due_at=now + pause)
    run.save()
    return ProbeRun.State.DEFERRED


def _next_try(run: ProbeRun, *, due_at: datetime) -> ProbeRun:
    """The same run once more, when the pause is over and no blackout window is on."""
    closed = windows.parse(run.scope.windows)
    if windows.is_closed(closed, due_at):
        due_at = windows.next_open(closed, due_at) or due_at
    return ProbeRun.objects.create(
        scope_id=run.scope_id, sender_id=run.sender_id, target_id=run.target_id, rail=run.rail, profile=run.profile,
        kind=run.kind, mode=run.mode, why=run.why, asked_by=run.asked_by, rollout_id=run.rollout_id, due_at=due_at,
        drop_at=due_at + (run.drop_at - run.due_at),
    )  # fmt: skip


def _one_end(at: str) -> str:
    """The failing end if it is one; the reason tells of both."""
    return at if at in ("sender", "target") else ""


def _pair_of(run: ProbeRun, now: datetime) -> ProbePair:
    """The series of the run, locked."""
    series = {
        "scope_id": run.scope_id, "sender_id": run.sender_id, "target_id": run.target_id, "rail": run.rail,
        "profile": run.profile, "kind": run.kind, "mode": run.mode,
    }  # fmt: skip
    pair, _ = ProbePair.objects.select_for_update().get_or_create(
        **series, defaults={"newest_at": now, "outcome": Outcome.PROTOCOL}
    )
    return pair


def _judge(run: ProbeRun, pair: ProbePair, numbers: Numbers, *, now: datetime) -> Judgement:
    latency = is_latency(run.profile)
    column = "p50_ns" if latency else "gbps"
    # Peers share an end: with all pairs of a scope a single run would read 260,000 rows at 512 hosts.
    peers = (
        ProbePair.objects.filter(
            Q(sender=run.sender_id) | Q(target=run.target_id),
            scope=run.scope_id, profile=run.profile, kind=run.kind, mode=run.mode, newest_at__gte=now - PEERS_FRESH,
        )
        .exclude(pk=pair.pk)
        .exclude(**{column: None})
        .values_list(column, flat=True)
    )  # fmt: skip
    return judge(
        Measured(
            gbps=None if latency else numbers.gbps,
            p50_ns=numbers.p50_ns if latency else None,
            pct_line=numbers.pct_line,
        ),
        thresholds=Thresholds.from_json(run.scope.thresholds),
        is_link_profile=run.profile == CONTIGUOUS,
        peers=list(peers),
        history=pair.recent[-HISTORY:],
    )


def _write_run(
    run: ProbeRun,
    state: ProbeRun.State,
    result: RunResult,
    numbers: Numbers | None,
    judgement: Judgement,
    now: datetime,
) -> None:
    run.state, run.outcome, run.finished_at, run.claimed_until = state, result.outcome, now, None
    run.reason, run.advice, run.failed_at_end = result.reason, result.advice[:2000], _one_end(result.at)
    run.evidence, run.verdict = result.evidence, judgement.verdict
    run.findings = [
        {"rule": reason.rule, "verdict": reason.verdict, "sentence": reason.sentence} for reason in judgement.reasons
    ]
    if numbers is not None:
        run.gbps, run.pct_line, run.samples = numbers.gbps, numbers.pct_line, numbers.samples
        run.p50_ns, run.p99_ns = numbers.p50_ns, numbers.p99_ns
        run.histogram = numbers.histogram.to_json()
        run.figures = {key: value for key, value in result.figures.items() if key != "histogram"}
        run.link_layer, run.is_software = numbers.link_layer, numbers.is_software
    run.save()


def _write_pair(pair: ProbePair, run: ProbeRun, numbers: Numbers | None, judgement: Judgement, now: datetime) -> None:
    pair.newest, pair.newest_at = run, now
    pair.outcome, pair.verdict = run.outcome, judgement.verdict
    pair.gbps, pair.pct_line, pair.p50_ns = run.gbps, run.pct_line, run.p50_ns
    pair.verdicts = [judgement.verdict.value, *pair.verdicts][:VERDICTS_KEPT]
    if numbers is not None:
        value = numbers.p50_ns if is_latency(run.profile) else numbers.gbps
        pair.recent = [*pair.recent, value][-HISTORY:]
    pair.save()


def _incidents(pair: ProbePair, run: ProbeRun, judgement: Judgement, now: datetime) -> list[Incident]:
    """Note what is bad on the open incidents of the pair; return those that were opened now."""
    unclosed = Incident.objects.filter(pair=pair, acknowledged_at=None)
    if judgement.verdict is not Verdict.BAD:
        unclosed.filter(recovered_at=None).update(recovered_at=now)
        return []
    known = {incident.rule: incident for incident in unclosed}
    is_serious = opens_incident([Verdict(verdict) for verdict in pair.verdicts])
    opened = []
    for reason in judgement.reasons:
        if reason.verdict is not Verdict.BAD:
            continue
        rule = Rule(reason.rule).value
        if rule in known:
            incident = known[rule]
            incident.times, incident.seen_at, incident.recovered_at = incident.times + 1, now, None
            incident.save(update_fields=["times", "seen_at", "recovered_at"])
        elif is_serious:
            opened.append(
                Incident.objects.create(
                    pair=pair, rule=rule, sentence=reason.sentence, run=run, opened_at=now, seen_at=now
                )
            )
    return opened
