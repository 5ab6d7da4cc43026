"""The tick: queue what is due, let go of what is lost, begin what may begin. Safe to run at any time, twice at once.

Every timer is a row: `ProbeScope.next_at`, `ProbeRun.due_at`, `drop_at` and `claimed_until`. The choices are made by
`probes.schedule`; here are its rows.
"""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef

from audit import nudge
from deploy.models import RUNNING, Fence
from probes import windows
from probes.judgement import Verdict
from probes.members import Roll, roll_of
from probes.models import ProbeHost, ProbePair, ProbeRun, ProbeScope, RolloutComparison
from probes.pairing import full_cycle
from probes.schedule import (
    Asked,
    Going,
    LoadMode,
    ScopeState,
    TickPlan,
    Waiting,
    Why,
    dispatch,
    first_peers,
    plan,
    stale_after_s,
)
from probes.terms import Kind, Outcome

CLAIM_LASTS: Final = timedelta(seconds=60)  # handed to the worker's queue, and not begun since
ROLLOUT_PAUSE: Final = timedelta(seconds=10)
COMPARISON_WAITS: Final = timedelta(hours=1)
LEAST_WAIT: Final = timedelta(minutes=10)  # a queued run is dropped no earlier
NEW_HOST_PEERS: Final = 2
LOOKED_AT: Final = 2000  # waiting runs a tick considers
GOING: Final = (ProbeRun.State.CLAIMED, ProbeRun.State.RUNNING)
_URGENT_FIRST: Final = {why.value: place for place, why in enumerate(Why)}


@dataclass(frozen=True, slots=True)
class Tick:
    """What one tick did."""

    queued: int = 0
    begun: int = 0
    dropped: int = 0
    lost: int = 0


def tick(*, now: datetime) -> Tick:
    """One tick of all scopes."""
    lost = _let_go_of_lost(now)
    dropped = _drop_late(now)
    queued = _queue_due(now)
    begun = _begin(now)
    return Tick(queued=queued, begun=begun, dropped=dropped, lost=lost)


def _let_go_of_lost(now: datetime) -> int:
    """Runs whose worker is gone: a claimed one waits again, a running one has failed."""
    claimed = ProbeRun.objects.filter(state=ProbeRun.State.CLAIMED, claimed_until__lt=now)
    count = claimed.update(state=ProbeRun.State.QUEUED, claimed_until=None)
    running = ProbeRun.objects.filter(state=ProbeRun.State.RUNNING, claimed_until__lt=now)
    return count + running.update(
        state=ProbeRun.State.FAILED,
        outcome=Outcome.TIMED_OUT,
        finished_at=now,
        reason="The worker that ran it ended before it could store what it found.",
        advice="Nothing needs doing on the hosts: their programs end by themselves. Is the worker of queue probe up?",
    )


def _drop_late(now: datetime) -> int:
    late = ProbeRun.objects.filter(state=ProbeRun.State.QUEUED, drop_at__lt=now)
    RolloutComparison.objects.filter(after=None, given_up_at=None, asked_at__lt=now - COMPARISON_WAITS).update(
        given_up_at=now
    )
    return late.update(
        state=ProbeRun.State.DROPPED,
        finished_at=now,
        reason="It could not begin in its time: hosts or worker busy.",
    )


def _queue_due(now: datetime) -> int:
    """Queue the pairs of the scopes whose tick has come, and note when the next one comes."""
    if not ProbeScope.objects.due(now).exists():  # a plain read: on SQLite a transaction takes the write lock
        return 0
    with transaction.atomic():
        due = list(ProbeScope.objects.due(now).select_for_update(of=("self",)).named().order_by("next_at", "pk"))
        held = set(Fence.objects.filter(rollout__state__in=RUNNING).values_list("subnet", flat=True))
        ready: list[tuple[ProbeScope, Roll]] = []
        for scope in due:
            scope.next_at = _next(scope, now)
            closed = windows.parse(scope.windows)
            if windows.is_closed(closed, now):
                scope.next_at = windows.next_open(closed, now)
            elif scope.subnet_id in held:
                scope.next_at = now + ROLLOUT_PAUSE  # its tables are changing: a result would say nothing
            else:
                ready.append((scope, roll_of(scope)))
        drawn = plan([state_of(scope, roll, now) for scope, roll in ready], budget=settings.PROBE_PAIRS_PER_TICK)
        runs = _rows(drawn, dict(ready), now)
        ProbeRun.objects.bulk_create(runs, batch_size=500)
        for scope, roll in ready:
            _advance(scope, roll, drawn.positions[scope.pk])
        ProbeScope.objects.bulk_update(due, ["next_at", "position", "rail"])
    return len(runs)


def _next(scope: ProbeScope, now: datetime) -> datetime:
    """The next tick, on the scope's own grid if it is not far behind."""
    interval = timedelta(seconds=scope.interval_s)
    wanted = (scope.next_at or now) + interval
    return wanted if wanted > now else now + interval


def _advance(scope: ProbeScope, roll: Roll, position: int) -> None:
    """Move the pointer; when a cycle is over, it is the next rail's turn."""
    rails = max((len(member.rails) for member in roll.members), default=1) if scope.has_all_rails else 1
    cycle = max(1, full_cycle([member.host.pk for member in roll.members]))
    scope.rail = (scope.rail + position // cycle - scope.position // cycle) % max(1, rails)
    scope.position = position % cycle


def state_of(scope: ProbeScope, roll: Roll, now: datetime) -> ScopeState:
    """A scope as the planner sees it. A few indexed queries, none that reads all pairs."""
    hosts = [member.host.pk for member in roll.members]
    waiting = ProbeRun.objects.filter(scope=scope, state__in=(ProbeRun.State.QUEUED, *GOING))
    return ScopeState(
        key=scope.pk,
        hosts=hosts,
        position=scope.position,
        budget=scope.budget,
        asked=_asked(scope, hosts, now),
        limited=roll.limited(scope.rail),
        busy=frozenset(
            member.host.pk
            for member in roll.members
            if member.host.busy_until is not None and member.host.busy_until > now
        ),
        queued=set(waiting.values_list("sender", "target")),
    )


def _asked(scope: ProbeScope, hosts: list[int], now: datetime) -> list[Asked]:
    """Pairs out of turn: after rollouts, of new hosts, bad ones, stale ones; a few times the budget of each."""
    few = 4 * scope.budget
    comparisons = RolloutComparison.objects.filter(scope=scope, after=None, given_up_at=None).order_by("asked_at")
    asked = [Asked((one, other), Why.ROLLOUT) for one, other in comparisons.values_list("sender", "target")[:few]]
    pairs = ProbePair.objects.filter(scope=scope, mode=scope.mode, kind=Kind.RDMA)
    is_known = Exists(pairs.filter(sender=OuterRef("pk"))) | Exists(pairs.filter(target=OuterRef("pk")))
    for host in ProbeHost.objects.filter(pk__in=hosts).exclude(is_known).values_list("pk", flat=True)[:few]:
        asked += [Asked(pair, Why.NEW) for pair in first_peers(hosts, host, most=NEW_HOST_PEERS)]
    old = now - timedelta(
        seconds=stale_after_s(hosts=len(hosts), budget=scope.budget, interval_s=scope.interval_s, profiles=1)
    )
    oldest_first = pairs.order_by("newest_at").values_list("sender", "target")
    asked += [Asked((one, other), Why.BAD) for one, other in oldest_first.filter(verdict=Verdict.BAD)[:few]]
    asked += [Asked((one, other), Why.STALE) for one, other in oldest_first.filter(newest_at__lt=old)[:few]]
    return asked


def _rows(drawn: TickPlan, scopes: dict[ProbeScope, Roll], now: datetime) -> list[ProbeRun]:
    """One run for each planned pair and profile, begun a little apart so that not all hosts connect at once."""
    by_key = {scope.pk: scope for scope in scopes}
    rollouts = {
        (scope, sender, target): rollout
        for scope, sender, target, rollout in RolloutComparison.objects.filter(
            scope__in=by_key, after=None, given_up_at=None
        )
        .order_by("-asked_at")
        .values_list("scope", "sender", "target", "rollout")
    }
    runs: list[ProbeRun] = []
    for pair in drawn.pairs:
        scope = by_key[pair.scope]
        rollout = rollouts.get((pair.scope, pair.sender, pair.target)) if pair.why is Why.ROLLOUT else None
        runs += runs_of_pair(
            scope, sender=pair.sender, target=pair.target, why=pair.why, now=now, rollout=rollout,
            due_at=now + timedelta(seconds=random.uniform(0, min(10.0, scope.interval_s / 10))),  # noqa: S311  jitter
        )  # fmt: skip
    return runs


def runs_of_pair(
    scope: ProbeScope,
    *,
    sender: int,
    target: int,
    why: Why,
    now: datetime,
    due_at: datetime,
    asked_by: str = "",
    rollout: int | None = None,
) -> list[ProbeRun]:
    """The unsaved runs of one visit to a pair: each profile, and the TCP baseline where an interface is named."""
    kinds = [(profile, Kind.RDMA) for profile in scope.profiles]
    if scope.tcp_interface:
        kinds.append(("link", Kind.TCP))
    drop_at = due_at + max(LEAST_WAIT, timedelta(seconds=2 * scope.interval_s))
    return [
        ProbeRun(
            scope=scope, sender_id=sender, target_id=target, rail=scope.rail, profile=profile, kind=kind,
            mode=scope.mode, why=why, asked_by=asked_by, rollout_id=rollout, due_at=due_at, drop_at=drop_at,
        )
        for profile, kind in kinds
    ]  # fmt: skip


def _begin(now: datetime) -> int:
    """Claim the runs that may begin, and hand them to the worker."""
    held = Fence.objects.filter(rollout__state__in=RUNNING).values("subnet")
    # A run that meets a changing table would fail for it, and be taken for a finding about the pair.
    waiting = ProbeRun.objects.filter(state=ProbeRun.State.QUEUED, due_at__lte=now).exclude(scope__subnet__in=held)
    if not waiting.exists():
        return 0
    with transaction.atomic():
        # Only one tick at a time chooses, or two could each put the same host into a run of their own.
        list(ProbeScope.objects.select_for_update().order_by("pk").values_list("pk", flat=True))
        rows = waiting.order_by("due_at", "pk").values_list("pk", "scope", "sender", "target", "mode", "why")
        ready = sorted(rows[:LOOKED_AT], key=lambda row: _URGENT_FIRST[row[5]])  # stable: then by due time
        going = ProbeRun.objects.filter(state__in=GOING).values_list("scope", "sender", "target", "mode")
        chosen = dispatch(
            [Waiting(pk, scope, one, other, LoadMode(mode)) for pk, scope, one, other, mode, _ in ready],
            [Going(scope, one, other, LoadMode(mode)) for scope, one, other, mode in going],
            at_once=settings.PROBES_AT_ONCE,
        )
        claimed = ProbeRun.objects.filter(pk__in=chosen, state=ProbeRun.State.QUEUED)
        claimed.update(state=ProbeRun.State.CLAIMED, claimed_until=now + CLAIM_LASTS)
        for run in chosen:
            transaction.on_commit(lambda run=run: nudge.task("probes.tasks.run", {"run_id": run}), robust=True)  # type: ignore[misc]
    return len(chosen)
