"""One tick: fair, within its budget, nobody twice at once, the urgent first, and nothing left out for good."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.pairing import full_cycle
from probes.schedule import (
    QUIET_AT_ONCE,
    Asked,
    Going,
    LoadMode,
    ScopeState,
    Waiting,
    Why,
    dispatch,
    first_peers,
    plan,
    simulate,
    stale_after_s,
)


def scope(key: int = 1, size: int = 6, **more) -> ScopeState:
    fields = {"key": key, "hosts": list(range(size)), "position": 0, "budget": 4} | more
    return ScopeState(**fields)


def ordered(plan_of_tick) -> list[tuple[int, int]]:
    return [(pair.sender, pair.target) for pair in plan_of_tick.pairs]


def test_rounds_go_on_where_they_stopped():
    first = plan([scope()], budget=100)
    second = plan([scope(position=first.positions[1])], budget=100)
    assert len(ordered(first)) == 4
    assert not set(ordered(first)) & set(ordered(second))
    assert {pair.why for pair in first.pairs} == {Why.ROUND}


@pytest.mark.parametrize(
    ("budgets", "budget", "shares"),
    [
        ([4, 4], 100, [4, 4]),
        ([4, 4], 4, [2, 2]),
        ([30, 1], 10, [9, 1]),
        ([30, 30, 30], 10, [4, 3, 3]),
        ([0, 5], 3, [0, 3]),
        ([5], 0, [0]),
    ],
)
def test_the_budget_is_shared_fairly(budgets, budget, shares):
    scopes = [scope(key, 8, budget=own) for key, own in enumerate(budgets)]
    counted = Counter(pair.scope for pair in plan(scopes, budget=budget).pairs)
    got = [counted[key] for key in range(len(budgets))]
    assert sorted(got) == sorted(shares)
    assert sum(got) == sum(shares)


def test_what_waits_already_counts_and_is_not_queued_again():
    first = plan([scope()], budget=100)
    again = plan([scope(queued=set(ordered(first)))], budget=100)
    assert again.pairs == ()
    more = plan([scope(queued=set(ordered(first)), budget=6)], budget=100)
    assert len(more.pairs) == 2
    assert not set(ordered(more)) & set(ordered(first))


def test_busy_hosts_and_two_limited_members_are_left_out():
    planned = ordered(plan([scope(budget=30, busy={2}, limited={0, 1})], budget=100))
    assert all(2 not in pair for pair in planned)
    assert (0, 1) not in planned
    assert (1, 0) not in planned
    assert (0, 3) in planned
    assert len(planned) == full_cycle(range(5)) - 2


def test_a_person_comes_first_and_bad_pairs_leave_room_for_the_rounds():
    bad = [Asked((0, other), Why.BAD) for other in range(1, 6)]
    planned = plan([scope(asked=[*bad, Asked((5, 4), Why.NOW)], budget=5)], budget=100)
    assert [pair.why for pair in planned.pairs] == [Why.NOW, Why.BAD, Why.BAD, Why.ROUND, Why.ROUND]


def test_strangers_and_a_pair_with_itself_are_never_planned():
    asked = [Asked((0, 99), Why.NOW), Asked((3, 3), Why.NOW)]
    assert all(pair.why is Why.ROUND for pair in plan([scope(asked=asked)], budget=100).pairs)
    assert plan([scope(size=1)], budget=100).pairs == ()
    assert plan([], budget=100).pairs == ()


@given(st.integers(2, 12), st.integers(1, 9), st.integers(0, 200), st.data())
def test_every_pair_is_reached_however_busy_some_ticks_were(size, budget, position, data):
    reached = set()
    for _ in range(-(-full_cycle(range(size)) // budget) * 2 + 2):
        drawn = plan([scope(size=size, position=position, budget=budget)], budget=1000)
        assert len(drawn.pairs) <= budget
        reached |= set(ordered(drawn))
        position = drawn.positions[1]
    assert len(reached) == full_cycle(range(size))


RUNS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 9), st.sampled_from(LoadMode)).filter(
        lambda run: run[1] != run[2]
    ),
    max_size=40,
)


@given(RUNS, st.integers(0, 8))
def test_no_host_is_in_two_runs_and_no_cap_is_broken(runs, at_once):
    waiting = [Waiting(number, *run) for number, run in enumerate(runs)]
    going: list[Going] = []
    for number in dispatch(waiting, going, at_once=at_once):
        run = waiting[number]
        going.append(Going(run.scope, run.sender, run.target, run.mode))
    ends = [end for run in going for end in (run.sender, run.target)]
    assert len(ends) == len(set(ends))
    assert len(going) <= at_once


def test_scopes_take_turns_and_quiet_ones_stay_quiet():
    waiting = [Waiting(n, 1, 2 * n, 2 * n + 1, LoadMode.LOADED) for n in range(10)]
    waiting += [Waiting(100 + n, 2, 100 + 2 * n, 101 + 2 * n, LoadMode.QUIET) for n in range(10)]
    begun = dispatch(waiting, [], at_once=8)
    assert len(begun) == 8
    assert sum(run >= 100 for run in begun) == QUIET_AT_ONCE
    assert dispatch(waiting, [], at_once=2) in ([0, 100], [100, 0])


def test_a_host_that_runs_elsewhere_is_waited_for():
    waiting = [Waiting(1, 1, 5, 6, LoadMode.LOADED), Waiting(2, 1, 7, 8, LoadMode.LOADED)]
    assert dispatch(waiting, [Going(9, 6, 1)], at_once=5) == [2]


def test_a_simulated_schedule_covers_everything_in_the_time_of_its_rounds():
    covered = simulate(hosts=16, at_once=8, run_s=5, tick_s=5, budget=16)
    assert covered.pairs == 240
    assert covered.sessions_at_once == 16
    assert covered.seconds <= 30 * 5 * 1.5  # 30 rounds of 8 pairs, and some that do not fit together
    quiet = simulate(hosts=6, at_once=8, run_s=5, tick_s=5, budget=16, mode=LoadMode.QUIET)
    assert quiet.sessions_at_once == 2 * QUIET_AT_ONCE


def test_a_newcomer_meets_a_few_of_the_others():
    assert first_peers([1, 2, 3, 4, 5], 3, most=2) == [(3, 1), (4, 3)]
    assert first_peers([3], 3, most=2) == []


def test_stale_is_two_coverages_and_a_day_at_least():
    assert stale_after_s(hosts=3, budget=4, interval_s=300, profiles=2) == 86_400
    assert stale_after_s(hosts=512, budget=256, interval_s=300, profiles=1) == 2 * 1022 * 300
