"""The matrix is whole, and docs/faults.md names the states of every pair in it."""

from itertools import product
from multiprocessing import Pipe
from types import SimpleNamespace

import pytest

from deploy.models import OVER, RUNNING, Rollout
from lab.bench_faults import BENCH
from lab.faults.causes import FAULTS
from lab.faults.expected import States, expected, seen
from lab.faults.matrix import CROSSED, OLDER, PAIRS, Pair
from lab.faults.points import STEPS, Point
from lab.faults.stops import Stops


def test_every_step_meets_each_of_the_four_faults_and_no_pair_comes_twice():
    assert len(set(PAIRS)) == len(PAIRS) >= 60
    assert set(PAIRS) >= {Pair(step, fault) for step, fault in product(STEPS, CROSSED)}


def test_every_running_state_has_a_step():
    assert {point.state for point in STEPS.values()} == set(RUNNING)


def test_every_fault_is_tried_and_known():
    assert {pair.fault for pair in set(PAIRS) - set(OLDER)} == set(FAULTS)


def test_the_page_has_every_pair_and_names_states_in_which_a_rollout_can_be_left():
    said = expected()
    assert set(said) == set(PAIRS)
    played = {pair: states for pair, states in said.items() if states.end}
    assert len(played) >= 60
    for pair, states in played.items():
        assert states.named, pair
        assert states.named <= set(Rollout.State.values), pair
        assert states.named.isdisjoint(RUNNING - {Rollout.State.RESTORING}), pair
        assert states.end <= OVER | {Rollout.State.STUCK}, pair


def test_what_was_seen_twice_adds_up():
    row = {"step": "a", "fault": "b", "named": "UNPROVEN", "after_takeover": "DEGRADED", "end": "PROVEN"}
    other = {**row, "named": "PROVEN", "after_takeover": ""}
    wanted = States(frozenset({"UNPROVEN", "DEGRADED", "PROVEN"}), frozenset({"PROVEN"}))
    assert seen([row, other]) == {Pair("a", "b"): wanted}


def test_the_bench_demands_sixty_pairs_no_violation_and_a_seen_plant():
    assert BENCH.targets == {
        "tried": ">= 60", "violations": "<= 0", "objections": "<= 0", "unlisted": "<= 0", "longest_s": "<= 60",
        "planted_unseen": "<= 0", "samples_per_s": ">= 2",
    }  # fmt: skip


@pytest.fixture
def stops():
    ours, theirs = Pipe()
    points = [Point("PLACING", "place", "standby"), Point("PLACING", "advance", to="RELOADING")]
    made = Stops(theirs, points, {"master": "sm-a", "standby": "sm-b"})
    made.state = "PLACING"
    return SimpleNamespace(made=made, line=ours, points=points)


def test_a_worker_stops_at_its_points_in_their_order_and_nowhere_else(stops):
    stops.made.reach("advance", when="before", to="RELOADING")  # not its turn yet
    stops.made.reach("place", when="before", host="sm-a")
    stops.made.reach("place", when="after", host="sm-b")
    assert not stops.line.poll()
    for number, arrive in enumerate(
        (
            lambda: stops.made.reach("place", when="before", host="sm-b"),
            lambda: stops.made.reach("advance", when="before", to="RELOADING"),
        )
    ):
        stops.line.send(60.0)
        arrive()
        assert stops.line.recv() == stops.points[number]
    assert stops.made.shift.total_seconds() == 120
    stops.made.reach("place", when="before", host="sm-b")  # each point once
    assert not stops.line.poll()
