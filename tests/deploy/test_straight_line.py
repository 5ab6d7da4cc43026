"""The rollout that goes well, and what it leaves behind."""

import json

from audit.models import Event
from deploy import queries, tables
from deploy.models import Rollout
from subnet.observed import parse_reading
from tests.deploy.conftest import INFERENCE, Scene

State = Rollout.State
MOST_QUERIES = 84  # of a whole rollout, with one trial of the trail; a transition is its update, steps, outcomes, event


def states_told(rollout: Rollout) -> list[str]:
    events = Event.objects.filter(subject_kind="rollout", subject_key=rollout.public_id).order_by("number")
    return [event.after["state"] for event in events]


def test_a_move_ends_proven_with_equal_files_and_the_planned_tables(scene: Scene):
    before = scene.tables()
    rollout = scene.run(scene.begin(s1=INFERENCE))
    assert (rollout.state, rollout.cause) == (State.PROVEN, "")
    assert scene.digests() == {rollout.revision.digest}
    moved = scene.site.guids(1)
    after = scene.tables()
    assert all(after[guid] == {0: 0x7FFF, 2: 0xAC42} for guid in moved)
    assert {guid: after[guid] for guid in after if guid not in moved} == {
        guid: before[guid] for guid in before if guid not in moved
    }


def test_it_places_on_the_standby_before_the_master_and_only_after_all_is_staged(scene: Scene):
    scene.run(scene.begin())
    verbs = [(verb, host) for host, verb in scene.site.calls if verb in ("stage", "place", "reload")]
    assert {verb for verb, _ in verbs[:2]} == {"stage"}
    assert verbs[2:] == [("place", "mgr-b"), ("place", "mgr-a"), ("reload", "mgr-a")]


def test_every_transition_has_its_event_and_its_step(scene: Scene):
    rollout = scene.run(scene.begin())
    expected = ["QUEUED", "STAGING", "PLACING", "RELOADING", "READING_BACK", "PROVEN"]
    assert states_told(rollout) == expected
    steps = list(rollout.steps.order_by("id").values_list("state", flat=True))
    assert list(dict.fromkeys(steps)) == expected
    assert {step.host for step in rollout.steps.all()} == {"", "mgr-a", "mgr-b"}


def test_proof_makes_the_revision_current_and_lets_go_of_the_subnet(scene: Scene):
    rollout = scene.run(scene.begin())
    assert queries.current_revision(scene.subnet) == rollout.revision
    assert queries.running_rollout(scene.subnet) is None
    assert (rollout.claimed_by, rollout.claimed_until, rollout.next_try_at) == ("", None, None)
    assert rollout.finished_at is not None


def test_the_evidence_counts_every_port_and_names_both_hosts(scene: Scene):
    rollout = scene.run(scene.begin())
    evidence = json.loads(json.dumps(rollout.read_back))
    assert evidence["counts"] == {
        "ports": 10, "proven": 10, "absent": 0, "unreadable": 0, "discrepant": 0, "discrepancies": 0,
        "unaffected_ports_changed": 0,
    }  # fmt: skip
    assert evidence["hosts"] == [
        {"name": "mgr-a", "role": "MASTER", "digest": rollout.revision.digest},
        {"name": "mgr-b", "role": "STANDBY", "digest": rollout.revision.digest},
    ]
    assert [row["registered"] for row in evidence["census"]] == [True, True]
    assert evidence["ages"]["before_s"] > 0
    outcomes = {one.host.name: one for one in rollout.outcomes.select_related("host")}
    assert (outcomes["mgr-a"].role_at_start, outcomes["mgr-a"].role_at_proof) == ("MASTER", "MASTER")
    assert outcomes["mgr-b"].placed_at is not None
    assert outcomes["mgr-a"].reloaded_at is not None
    assert outcomes["mgr-b"].reloaded_at is None


def test_the_tables_behind_the_proof_are_kept_and_serve_as_before_of_the_next(scene: Scene):
    rollout = scene.run(scene.begin())
    kept = queries.latest_observation(scene.subnet)
    assert kept is not None
    assert kept == rollout.after
    assert parse_reading(tables.content(kept.tables)) == queries.observed_fabric(kept)
    assert kept.managers[1] == {
        "host": "mgr-b", "digest": rollout.revision.digest, "revision": 2, "role": "STANDBY",
        "error": None, "problems": [],
    }  # fmt: skip
    again = scene.start(scene.propose(s2=INFERENCE), kept)
    assert scene.run(again).state == State.PROVEN


def test_a_rollout_that_is_over_is_not_run_again(scene: Scene):
    rollout = scene.run(scene.begin())
    calls = len(scene.site.calls)
    assert scene.later(rollout).state == State.PROVEN
    assert len(scene.site.calls) == calls


def test_the_fabric_is_read_behind_the_barrier_only(scene: Scene):
    # The fake sweeps when the barrier waits: a reading without it would find the old tables and prove nothing.
    rollout = scene.run(scene.begin())
    verbs = [verb for _, verb in scene.site.calls]
    assert verbs.index("barrier") < len(verbs) - 1 - verbs[::-1].index("read_tables")
    assert rollout.state == State.PROVEN


def test_the_database_costs_the_same_for_any_number_of_ports(scene: Scene, django_assert_max_num_queries):
    rollout = scene.begin()
    with django_assert_max_num_queries(MOST_QUERIES):
        scene.run(rollout)
    assert rollout.state == State.PROVEN
