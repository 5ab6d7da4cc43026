"""Verdicts and discrepancies: one case for each way in which a port can differ."""

from dataclasses import replace

import pytest

from subnet.guid import GUID
from subnet.index import Prediction
from subnet.plan import diff
from subnet.readback import Verdict, compare, expected
from tests.subnet.fabrics import (
    FULL,
    INFERENCE,
    LEAF,
    LIMITED,
    MASTER,
    SM1,
    STORAGE,
    TRAINING,
    fabric,
    guid,
    leaf_copy,
    partition,
    port,
    table,
)  # fmt: skip

LABELS = {guid(1): "srv-001"}
BEFORE_TABLE = table(partition(TRAINING, "training", "acme", guid(1), guid(2)), labels=LABELS)
WANTED = table(
    partition(INFERENCE, "inference", "acme", guid(1)),
    partition(STORAGE, "storage", None, guid(1), membership=LIMITED),
    partition(TRAINING, "training", "acme", guid(2)),
    labels=LABELS,
)
STORED = table(*BEFORE_TABLE.partitions, WANTED.partition(STORAGE), labels=LABELS)

OLD = port(1, {0: 0x7FFF, 1: 0xAC41, 2: 0x1001}, leaf=leaf_copy({0: 0x7FFF, 1: 0xAC41, 2: 0x1001}))
OTHER = port(2, {0: 0x7FFF, 1: 0xAC41})
IDLE = port(3)
GOOD = replace(OLD, pkeys={0: 0x7FFF, 2: 0x1001, 3: 0x8044}, leaf=leaf_copy({0: 0x7FFF, 1: 0x1001, 2: 0x8044}))
BEFORE = fabric(OLD, OTHER, IDLE)
PLAN = diff(STORED, WANTED, BEFORE)


def read_back(*ports, before=BEFORE, wanted=WANTED, affected=PLAN.affected, predictions=PLAN.predictions, **changes):
    return compare(
        wanted=wanted,
        before=before,
        after=fabric(*ports, **changes),
        affected=affected,
        predictions=predictions,
    )


def kinds(found):
    return [discrepancy.kind for discrepancy in found.discrepancies]


def test_a_fabric_that_holds_the_table_is_proven():
    assert PLAN.affected == {guid(1)}
    found = read_back(GOOD, OTHER, IDLE)
    assert found.discrepancies == ()
    assert found.is_proven
    assert not found.is_contrary
    assert found.owed == ()
    assert found.drifted == ()
    assert set(found.verdicts.values()) == {Verdict.PROVEN}
    assert found.counts == {
        "ports": 5, "proven": 5, "absent": 0, "unreadable": 0, "discrepant": 0, "discrepancies": 0,
        "unaffected_ports_changed": 0,
    }  # fmt: skip
    assert [sentence.split(":")[0] for sentence in found.not_checked] == [
        "Routing, multicast groups and traffic were not checked",
    ]


@pytest.mark.parametrize("index", [1, 3, 63])
def test_a_new_key_may_land_anywhere_in_the_predicted_set(index):
    assert read_back(replace(GOOD, pkeys={0: 0x7FFF, 2: 0x1001, index: 0x8044}), OTHER, IDLE).is_proven


@pytest.mark.parametrize(
    ("pkeys", "found_kinds", "says"),
    [
        ({0: 0x7FFF, 2: 0x1001}, ["missing_key"], "does not hold 0x8044 (full member of inference)"),
        ({0: 0x7FFF, 1: 0xAC41, 2: 0x1001}, ["missing_key", "foreign_key"], "does not hold 0x8044"),
        (GOOD.pkeys | {4: 0x9234}, ["foreign_key"], "holds 0x9234 at index 4, which it should not"),
        (GOOD.pkeys | {4: 0xAC41}, ["foreign_key"], "holds 0xac41 (full member of training) at index 4"),
        (GOOD.pkeys | {4: 0x8000}, ["foreign_key"], "holds 0x8000 at index 4"),
        (GOOD.pkeys | {4: 0x8044}, ["foreign_key"], "at 2 indexes (3, 4)"),
        (
            GOOD.pkeys | {3: 0x0044},
            ["wrong_membership"],
            "should hold 0x8044 (full member of inference) and holds 0x0044",
        ),
        (
            GOOD.pkeys | {0: 0xFFFF},
            ["wrong_membership"],
            "should hold 0x7fff (limited member of Default) and holds 0xffff",
        ),
        (
            {0: 0x7FFF, 3: 0x8044, 5: 0x1001},
            ["index_moved"],
            "0x1001 (limited member of storage) at index 5 and not at 2",
        ),
        (
            {1: 0x7FFF, 2: 0x1001, 3: 0x8044},
            ["index_moved"],
            "0x7fff (limited member of Default) at index 1 and not at 0",
        ),
        (
            {0: 0x7FFF, 2: 0x1001, 64: 0x8044},
            ["index_unpredicted"],
            "the new 0x8044 (full member of inference) at index 64",
        ),
    ],
)
def test_keys_and_indexes_of_an_affected_port_speak_against_the_revision(pkeys, found_kinds, says):
    found = read_back(replace(GOOD, pkeys=pkeys), OTHER, IDLE)
    assert kinds(found) == found_kinds
    first = found.discrepancies[0]
    assert first.guid == guid(1)
    assert first.is_contrary
    assert found.is_contrary
    assert f"Port {guid(1)} of srv-001 (LID {GOOD.lid} at leaf {LEAF} port 5)" in first.sentence
    assert says in first.sentence
    assert found.verdicts[guid(1)] is Verdict.DISCREPANT
    assert found.owed == (guid(1),)
    assert not found.is_proven
    assert found.counts["discrepant"] == 1
    assert found.counts["unaffected_ports_changed"] == 0


def test_a_port_that_the_sm_has_not_armed_is_no_evidence_against_the_revision():
    rebooted = replace(GOOD, pkeys={0: 0xFFFF}, state="INIT")
    found = read_back(rebooted, OTHER, IDLE)
    assert kinds(found) == ["wrong_membership", "missing_key", "missing_key"]
    assert not found.is_contrary
    assert not found.is_proven


@pytest.mark.parametrize(
    ("change", "kind", "is_contrary"),
    [
        ({"pkeys": {0: 0x7FFF}}, "unaffected_keys_changed", True),
        ({"pkeys": {0: 0x7FFF, 2: 0xAC41}}, "unaffected_keys_changed", True),
        ({"pkeys": {0: 0x7FFF, 1: 0xAC41, 2: 0x8044}}, "unaffected_keys_changed", True),
        ({"lid": 999}, "unaffected_lid_changed", False),
        ({"state": "INIT"}, "unaffected_state_changed", False),
    ],
)
def test_whatever_moves_at_another_port_is_told(change, kind, is_contrary):
    found = read_back(GOOD, replace(OTHER, **change), IDLE)
    assert kinds(found) == [kind]
    assert found.discrepancies[0].guid == guid(2)
    assert found.discrepancies[0].is_contrary is is_contrary
    assert found.counts["unaffected_ports_changed"] == 1
    assert found.owed == ()
    assert not found.is_proven


def test_a_changed_table_is_told_by_index_before_and_after():
    found = read_back(GOOD, replace(OTHER, pkeys={}), IDLE)
    assert found.discrepancies[0].sentence.endswith(
        "was not to change and held 0x7fff at 0, 0xac41 at 1; now it holds nothing."
    )


def test_an_affected_port_may_change_its_lid_and_state():
    assert read_back(replace(GOOD, lid=999, state="ARMED"), OTHER, IDLE).is_proven


def test_a_port_that_changes_in_two_ways_is_one_changed_port():
    found = read_back(GOOD, replace(OTHER, lid=999, state="INIT"), IDLE)
    assert found.counts["discrepancies"] == 2
    assert found.counts["unaffected_ports_changed"] == found.counts["discrepant"] == 1


def test_an_unaffected_port_that_was_already_different_is_told_and_not_held_against_the_rollout():
    drifted = port(3, {0: 0x7FFF, 1: 0x9234})
    found = read_back(GOOD, OTHER, drifted, before=fabric(OLD, OTHER, drifted))
    assert found.is_proven
    assert found.drifted == (guid(3),)


UNREAD = {"reading": "unreadable", "error": "timeout", "pkeys": {}}


@pytest.mark.parametrize(
    ("after", "verdict"),
    [((OTHER, IDLE), Verdict.ABSENT), ((replace(GOOD, **UNREAD), OTHER, IDLE), Verdict.UNREADABLE)],
)
def test_an_affected_port_without_a_reading_is_owed(after, verdict):
    found = read_back(*after)
    assert found.verdicts[guid(1)] is verdict
    assert found.discrepancies == ()
    assert found.owed == (guid(1),)
    assert not found.is_proven
    assert not found.is_contrary


@pytest.mark.parametrize(
    ("after", "verdict"),
    [((GOOD, OTHER), Verdict.ABSENT), ((GOOD, OTHER, replace(IDLE, **UNREAD)), Verdict.UNREADABLE)],
)
def test_another_port_without_a_reading_does_not_block(after, verdict):
    found = read_back(*after)
    assert found.verdicts[guid(3)] is verdict
    assert found.is_proven
    counts = found.counts
    assert counts["proven"] + counts["absent"] + counts["unreadable"] + counts["discrepant"] == counts["ports"] == 5
    assert counts["proven"] == 4


def test_an_affected_port_that_nobody_ever_saw_is_owed_and_not_counted():
    found = read_back(GOOD, OTHER, IDLE, affected=PLAN.affected | {guid(77)})
    assert found.owed == (guid(77),)
    assert guid(77) not in found.verdicts
    assert not found.is_proven


NEW = GUID("0x0002c90300019999")


@pytest.mark.parametrize(
    ("pkeys", "state", "found_kinds", "is_contrary"),
    [
        ({0: 0x7FFF}, "ACTIVE", [], False),
        ({0: 0xFFFF}, "ACTIVE", ["wrong_membership"], True),
        ({0: 0xFFFF}, "INIT", ["wrong_membership"], False),
        ({0: 0x7FFF, 1: 0xAC41}, "ACTIVE", ["foreign_key"], True),
        ({}, "ACTIVE", ["missing_key"], True),
    ],
)
def test_a_new_port_holds_only_default(pkeys, state, found_kinds, is_contrary):
    found = read_back(GOOD, OTHER, IDLE, port(NEW, pkeys, state=state))
    assert kinds(found) == found_kinds
    assert found.is_contrary is is_contrary
    assert found.counts["ports"] == 6
    assert found.counts["unaffected_ports_changed"] == 0
    assert any(sentence.startswith("1 unaffected ports were compared") for sentence in found.not_checked)


def test_a_new_port_that_the_table_names_holds_its_keys():
    wanted = table(*WANTED.partitions[:2], partition(TRAINING, "training", "acme", guid(2), NEW))
    assert read_back(GOOD, OTHER, IDLE, port(NEW, {0: 0x7FFF, 1: 0xAC41}), wanted=wanted).is_proven
    assert kinds(read_back(GOOD, OTHER, IDLE, port(NEW), wanted=wanted)) == ["missing_key"]


def test_a_port_that_was_unreadable_before_is_judged_by_the_table():
    before = fabric(OLD, OTHER, replace(IDLE, **UNREAD))
    assert read_back(GOOD, OTHER, IDLE, before=before).is_proven
    spoilt = replace(IDLE, pkeys={0: 0x7FFF, 1: 0x8044})
    assert kinds(read_back(GOOD, OTHER, spoilt, before=before)) == ["foreign_key"]


@pytest.mark.parametrize("state", ["INIT", "DOWN"])
def test_a_port_that_came_up_since_is_judged_by_the_table(state):
    """Before the SM arms a port it holds the hardware's keys: that it holds the table's now is no change of ours."""
    before = fabric(OLD, replace(OTHER, state=state, pkeys={0: 0xFFFF}), IDLE)
    assert read_back(GOOD, OTHER, IDLE, before=before).is_proven
    found = read_back(GOOD, replace(OTHER, pkeys={0: 0xFFFF}), IDLE, before=before)
    assert set(kinds(found)) == {"missing_key", "wrong_membership"}


def test_switches_port_0_is_compared_though_not_counted():
    switch = replace(port(7, {0: 0xFFFF}), node_type="SW")
    before = fabric(OLD, OTHER, IDLE, switch)
    counts = read_back(GOOD, OTHER, IDLE, switch, before=before).counts
    found = read_back(GOOD, OTHER, IDLE, replace(switch, pkeys={0: 0x7FFF}), before=before)
    assert kinds(found) == ["unaffected_keys_changed"]
    assert found.counts["ports"] == counts["ports"]


def test_what_moved_beside_is_listed_for_a_person_to_accept():
    found = read_back(GOOD, replace(OTHER, lid=77), IDLE)
    assert found.moved == {guid(2): (77, OTHER.state)}


def test_every_port_read_follows_the_one_master():
    found = read_back(GOOD, OTHER, replace(IDLE, master_sm_lid=9))
    assert kinds(found) == ["wrong_master_lid"]
    assert not found.is_contrary
    assert found.counts["unaffected_ports_changed"] == 0
    assert "takes LID 9 for the master's, and the master has LID 1" in found.discrepancies[0].sentence


@pytest.mark.parametrize("sms", [(), (MASTER, replace(MASTER, guid=guid(3), lid=9))])
def test_without_exactly_one_master_that_is_not_checked(sms):
    found = read_back(GOOD, OTHER, replace(IDLE, master_sm_lid=9), sms=sms)
    assert found.discrepancies == ()
    assert any("not exactly one master" in sentence for sentence in found.not_checked)


def test_the_fallback_is_told_once_and_first():
    fallen = [replace(reading, pkeys={0: 0xFFFF}) for reading in (GOOD, OTHER, IDLE)]
    found = read_back(*fallen)
    assert kinds(found)[0] == "isolation_lost"
    assert kinds(found).count("isolation_lost") == 1
    assert found.discrepancies[0].guid is None
    assert found.discrepancies[0].is_contrary
    assert "All 5 HCA ports" in found.discrepancies[0].sentence
    assert found.counts["discrepant"] == 3


def test_an_unreadable_port_does_not_hide_the_fallback_and_a_good_one_does():
    fallen = [replace(reading, pkeys={0: 0xFFFF}) for reading in (GOOD, OTHER)]
    assert "isolation_lost" in kinds(read_back(*fallen, replace(IDLE, **UNREAD)))
    assert "isolation_lost" not in kinds(read_back(*fallen, IDLE))


def test_manager_hosts_alone_are_no_fallback():
    assert read_back(before=fabric(), affected=(), predictions={}).is_proven


def test_switches_are_compared_and_not_counted():
    switch = port(LEAF, {0: 0xFFFF}, node_type="SW")
    before = fabric(OLD, OTHER, IDLE, switch)
    assert read_back(GOOD, OTHER, IDLE, switch, before=before).counts["ports"] == 5
    found = read_back(GOOD, OTHER, IDLE, replace(switch, lid=77), before=before)
    assert kinds(found) == ["unaffected_lid_changed"]
    assert found.counts["ports"] == found.counts["proven"] == 5
    assert not found.is_proven


def test_without_a_prediction_it_is_made_from_the_before_table():
    moved = replace(GOOD, pkeys={0: 0x7FFF, 3: 0x8044, 5: 0x1001})
    assert kinds(read_back(moved, OTHER, IDLE, predictions={})) == ["index_moved"]


def test_without_any_before_table_only_default_has_a_place():
    before = fabric(OTHER, IDLE)
    found = read_back(
        replace(GOOD, pkeys={0: 0x7FFF, 9: 0x1001, 5: 0x8044}), OTHER, IDLE, before=before, predictions={}
    )
    assert found.is_proven
    assert any("indexes of 1 affected ports" in sentence for sentence in found.not_checked)
    moved = replace(GOOD, pkeys={1: 0x7FFF, 2: 0x1001, 3: 0x8044})
    assert kinds(read_back(moved, OTHER, IDLE, before=before, predictions={})) == ["index_moved"]


def test_a_key_that_a_full_table_could_not_take_is_missing_and_has_no_wrong_place():
    predictions = {guid(1): Prediction(survivors={0: 0x7FFF, 2: 0x1001}, new={0x8044: frozenset()})}
    assert read_back(GOOD, OTHER, IDLE, predictions=predictions).is_proven


@pytest.mark.parametrize(
    ("reading", "entries"),
    [
        (GOOD, {0x7FFF, 0x1001, 0x8044}),
        (IDLE, {0x7FFF}),
        (port(SM1), {0xFFFF}),
        (port(LEAF, node_type="SW"), {0xFFFF}),
        (port(LEAF, node_type="RT"), {0xFFFF}),
    ],
)
def test_what_a_port_should_hold(reading, entries):
    assert expected(WANTED, reading) == entries


def test_full_is_full():
    wanted = table(partition(TRAINING, "training", "acme", guid(1), membership=FULL))
    assert expected(wanted, GOOD) == {0x7FFF, 0xAC41}
