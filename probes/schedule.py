"""What one tick does, as two pure steps: `plan` says which pairs are queued, `dispatch` which queued ones begin now.

Rules, in order: nothing begins on a host that is in another run, nor more than the caps allow; partitions take turns;
what a person, a rollout, a new host, a bad or a stale pair asks for goes before the rounds, which always keep a share
of the budget, so that no crowd of bad pairs ends the coverage of the others.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Final

from probes.pairing import Pair, full_cycle, take

QUIET_AT_ONCE: Final = 2  # pairs of a scope in mode quiet: a baseline must not meet other probes


class LoadMode(StrEnum):
    """How busy the fabric is kept: `quiet` for baselines, `loaded` as under real use. Never one series (kvprobe 5)."""

    QUIET = "quiet"
    LOADED = "loaded"


class Why(StrEnum):
    """Why a pair is probed; the order is that of urgency."""

    NOW = "NOW"  # a person pressed the button
    ROLLOUT = "ROLLOUT"  # a rollout touched it: the after of a comparison
    NEW = "NEW"  # a host that was never probed here
    BAD = "BAD"  # its last run was bad
    STALE = "STALE"  # not probed for long
    ROUND = "ROUND"  # its turn


_URGENCY: Final = {why: place for place, why in enumerate(Why)}


@dataclass(frozen=True, slots=True)
class Asked:
    """A pair that is asked for out of turn."""

    pair: Pair
    why: Why


@dataclass(frozen=True, slots=True)
class ScopeState:
    """A partition or probe set as the planner sees it. `key` names it; hosts are ids in an order that stays.

    `limited` are hosts that hold the P_Key as limited members: two of them cannot talk. `busy` ones are left out this
    time; `queued` are ordered pairs that wait already and count into the budget.
    """

    key: int
    hosts: Sequence[int]
    position: int
    budget: int  # pairs a tick
    asked: Sequence[Asked] = ()
    limited: Collection[int] = frozenset()
    busy: Collection[int] = frozenset()
    queued: Collection[Pair] = frozenset()


@dataclass(frozen=True, slots=True)
class PlannedPair:
    """One pair to be queued."""

    scope: int
    sender: int
    target: int
    why: Why


@dataclass(frozen=True, slots=True)
class TickPlan:
    """What to queue, and the new position of each scope's rounds: it grows, and a cycle is over at each multiple."""

    pairs: tuple[PlannedPair, ...] = ()
    positions: Mapping[int, int] = field(default_factory=dict)


def plan(scopes: Sequence[ScopeState], *, budget: int) -> TickPlan:
    """Choose the pairs of one tick: at most `budget` over all scopes, at most each scope's own.

    `budget` is dealt out one pair at a time to the scopes in turn, so a small partition gets its full share beside
    a large one.
    """
    wishes = {scope.key: min(max(0, scope.budget - len(scope.queued)), full_cycle(scope.hosts)) for scope in scopes}
    shares = _deal(wishes, budget)
    pairs: list[PlannedPair] = []
    positions: dict[int, int] = {}
    for scope in scopes:
        chosen, positions[scope.key] = _choose(scope, shares[scope.key])
        pairs += chosen
    return TickPlan(tuple(pairs), positions)


def _deal(wishes: Mapping[int, int], budget: int) -> dict[int, int]:
    """Share `budget` as evenly as the wishes allow; what one scope does not want goes to the others."""
    shares = dict.fromkeys(wishes, 0)
    left = max(0, budget)
    hungry = [key for key, wish in wishes.items() if wish > 0]
    while left and hungry:
        each = max(1, left // len(hungry))
        for key in hungry:
            given = min(each, wishes[key] - shares[key], left)
            shares[key] += given
            left -= given
        hungry = [key for key in hungry if shares[key] < wishes[key]]
    return shares


def _choose(scope: ScopeState, share: int) -> tuple[list[PlannedPair], int]:
    """The pairs of one scope, and where its rounds go on."""
    hosts = set(scope.hosts)
    taken: set[Pair] = set(scope.queued)
    chosen: list[PlannedPair] = []

    def is_possible(pair: Pair) -> bool:
        sender, target = pair
        return (
            sender != target
            and pair not in taken
            and sender in hosts
            and target in hosts
            and sender not in scope.busy
            and target not in scope.busy
            and not (sender in scope.limited and target in scope.limited)
        )

    def add(pair: Pair, why: Why) -> None:
        taken.add(pair)
        chosen.append(PlannedPair(scope.key, pair[0], pair[1], why))

    asked = sorted(scope.asked, key=lambda item: _URGENCY[item.why])  # stable: first come, first served
    # A person and a rollout wait for their answer; the others may take half of what is left.
    for item in asked:
        if len(chosen) < share and item.why in (Why.NOW, Why.ROLLOUT) and is_possible(item.pair):
            add(item.pair, item.why)
    most = len(chosen) + (share - len(chosen) + 1) // 2
    for item in asked:
        if len(chosen) < most and item.why not in (Why.NOW, Why.ROLLOUT) and is_possible(item.pair):
            add(item.pair, item.why)
    position = scope.position
    if len(chosen) < share:
        for pair in take(scope.hosts, scope.position):
            if len(chosen) == share:
                break
            position += 1
            if is_possible(pair):
                add(pair, Why.ROUND)
    return chosen, position


@dataclass(frozen=True, slots=True)
class Waiting:
    """A queued run, in the order in which it should begin."""

    run: int
    scope: int
    sender: int
    target: int
    mode: LoadMode


@dataclass(frozen=True, slots=True)
class Going:
    """A run that has begun and is not over."""

    scope: int
    sender: int
    target: int
    mode: LoadMode = LoadMode.LOADED


def dispatch(waiting: Iterable[Waiting], going: Sequence[Going], *, at_once: int) -> list[int]:
    """Which of the waiting runs begin now; `at_once` pairs are the most, each with two SSH sessions.

    Scopes take turns, the one with the fewest runs first. A host is in one run at a time, whatever its scopes.
    A scope in mode quiet has at most QUIET_AT_ONCE runs.
    """
    free = at_once - len(going)
    taken = {host for run in going for host in (run.sender, run.target)}
    running = Counter(run.scope for run in going)
    lines: dict[int, list[Waiting]] = {}
    for run in waiting:
        lines.setdefault(run.scope, []).append(run)
    heads = dict.fromkeys(lines, 0)
    begun: list[int] = []
    while free > 0 and heads:
        scope = min(heads, key=lambda key: running[key])
        line, at = lines[scope], heads[scope]
        while at < len(line) and (line[at].sender in taken or line[at].target in taken):
            at += 1
        if at == len(line) or (line[at].mode is LoadMode.QUIET and running[scope] >= QUIET_AT_ONCE):
            del heads[scope]
            continue
        heads[scope] = at + 1
        begun.append(line[at].run)
        taken |= {line[at].sender, line[at].target}
        running[scope] += 1
        free -= 1
    return begun


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a simulated schedule comes to."""

    pairs: int
    seconds: float
    sessions_at_once: int
    ticks: int


def simulate(
    *, hosts: int, at_once: int, run_s: float, tick_s: float, budget: int, mode: LoadMode = LoadMode.LOADED
) -> Coverage:
    """Run the planner in simulated time until every ordered pair of `hosts` was probed once.

    Every run takes `run_s`; a tick comes every `tick_s` and queues up to `budget` pairs beyond those that wait.
    """
    everybody = list(range(hosts))
    total = full_cycle(everybody)
    covered: set[Pair] = set()
    queue: dict[int, PlannedPair] = {}
    going: list[tuple[float, PlannedPair]] = []
    now, position, numbered, ticks, most = 0.0, 0, 0, 0, 0
    while len(covered) < total:
        for ends, pair in going:
            if ends <= now:
                covered.add((pair.sender, pair.target))
        going = [(ends, pair) for ends, pair in going if ends > now]
        waiting = {(pair.sender, pair.target) for pair in queue.values()}
        state = ScopeState(key=0, hosts=everybody, position=position, budget=budget, queued=waiting)
        drawn = plan([state], budget=budget)
        position = drawn.positions[0]
        for pair in drawn.pairs:
            queue[numbered] = pair
            numbered += 1
        begun = dispatch(
            [Waiting(run, 0, pair.sender, pair.target, mode) for run, pair in queue.items()],
            [Going(0, pair.sender, pair.target, mode) for _, pair in going],
            at_once=at_once,
        )
        going += [(now + run_s, queue.pop(run)) for run in begun]
        most = max(most, len(going))
        ticks += 1
        now += tick_s
    return Coverage(total, now - tick_s, 2 * most, ticks)


def stale_after_s(*, hosts: int, budget: int, interval_s: float, profiles: int) -> float:
    """How old the result of a pair may grow before it counts as stale: two full coverages, and a day at least."""
    ticks = -(-full_cycle(range(hosts)) // max(1, budget))
    return max(24 * 3600.0, 2.0 * ticks * interval_s * max(1, profiles))


def first_peers(hosts: Sequence[int], newcomer: int, *, most: int) -> list[Pair]:
    """The first pairs of a host that was never probed: with `most` others, spread over the order, both ways in turn."""
    others = [host for host in hosts if host != newcomer]
    step = max(1, len(others) // max(1, most))
    return [
        (newcomer, other) if place % 2 == 0 else (other, newcomer)
        for place, other in enumerate(islice(others[::step], most))
    ]
