"""What a plan says: changes, ports, effort, and when it asks a person."""

from dataclasses import replace

import pytest

from subnet.errors import UnsafePlan
from subnet.index import Prediction
from subnet.pkey import DEFAULT, PKey
from subnet.plan import Added, Changed, FlagChange, Plan, Removed, diff, unified_diff
from subnet.table import Flags, Partition
from tests.subnet.fabrics import (
    DATA,
    FULL,
    INFERENCE,
    LEAF,
    LIMITED,
    SM1,
    SM2,
    TRAINING,
    fabric,
    guid,
    partition,
    port,
    table,
)  # fmt: skip

LABELS = {guid(1): "srv-001", guid(2): "srv-001", guid(3): "srv-002", guid(4): "srv-003"}


def training(*ports, **changes) -> Partition:
    return replace(partition(TRAINING, "training", "acme", *map(guid, ports)), **changes)


def inference(*ports, **changes) -> Partition:
    return replace(partition(INFERENCE, "inference", "acme", *map(guid, ports)), **changes)


BEFORE = table(training(1, 2, 3), inference(4), labels=LABELS)
MOVED = table(training(3), inference(1, 2, 4), labels=LABELS)
SEEN = fabric(*(port(n, {0: 0x7FFF, 1: 0xAC41}) for n in (1, 2, 3)), port(4, {0: 0x7FFF, 1: 0x8044}))


def test_moving_a_server_removes_and_adds_each_of_its_ports():
    plan = diff(BEFORE, MOVED, SEEN)
    assert plan.changes == (
        Added(INFERENCE, "inference", "acme", guid(1), None, FULL),
        Added(INFERENCE, "inference", "acme", guid(2), None, FULL),
        Removed(TRAINING, "training", "acme", guid(1), FULL, None),
        Removed(TRAINING, "training", "acme", guid(2), FULL, None),
    )
    assert [change.verb for change in plan.changes] == ["added", "added", "removed", "removed"]
    assert plan.affected == {guid(1), guid(2)}
    first = plan.ports[0]
    assert (first.guid, first.label) == (guid(1), "srv-001")
    assert first.before == {0: 0x7FFF, 1: 0xAC41}
    assert first.prediction
    assert first.prediction.survivors == {0: 0x7FFF}
    assert (first.gains, first.losses) == ((0x8044,), (0xAC41,))
    assert plan.predictions.keys() == plan.affected
    plan.raise_if_unsafe()


def test_a_membership_that_changes_is_one_change():
    plan = diff(table(training(1, 2)), table(training(1, 2, members=training(1).members + inference(2).members)), None)
    assert plan.is_empty
    limited = partition(TRAINING, "training", "acme", guid(1), membership=LIMITED)
    plan = diff(table(training(1)), table(limited), None)
    assert plan.changes == (Changed(TRAINING, "training", "acme", guid(1), FULL, LIMITED),)
    assert (plan.ports[0].gains, plan.ports[0].losses) == ((0x2C41,), (0xAC41,))


def test_names_labels_owners_without_ports_are_nothing_to_do():
    renamed = table(training(1, 2, 3, name="other"), inference(4), Partition(PKey(9), "new", "acme"))
    assert diff(BEFORE, renamed, SEEN).is_empty


def test_ports_that_were_not_read_have_no_prediction():
    unread = fabric(port(1, {}, reading="unreadable", error="timeout"))
    plan = diff(BEFORE, MOVED, unread)
    assert [(p.before, p.prediction) for p in plan.ports] == [(None, None), (None, None)]
    assert plan.predictions == {}
    assert plan.hazards == ()
    assert diff(BEFORE, MOVED, None).affected == plan.affected


def test_default_is_predicted_full_for_sm_ports_and_switches():
    seen = fabric(port(LEAF, {0: 0xFFFF}, node_type="SW"), port(1))
    both = table(partition(TRAINING, "training", None, SM1, LEAF, guid(1)))
    predicted = diff(table(), both, seen).predictions
    assert {name: prediction.survivors for name, prediction in predicted.items()} == {
        SM1: {0: 0xFFFF}, LEAF: {0: 0xFFFF}, guid(1): {0: 0x7FFF},
    }  # fmt: skip


def test_a_new_manager_host_is_a_change_in_default():
    plan = diff(table(sm_ports=(SM1,)), table(sm_ports=(SM1, guid(1))), fabric(port(1)))
    assert plan.changes == (Changed(DEFAULT, "Default", None, guid(1), LIMITED, FULL),)
    assert plan.ports[0].prediction == Prediction(survivors={0: 0xFFFF})
    gone = diff(table(sm_ports=(SM1, guid(1))), table(sm_ports=(SM1,)), None)
    assert gone.changes == (Changed(DEFAULT, "Default", None, guid(1), FULL, LIMITED),)


def test_a_port_leaves_the_old_owners_partition_and_joins_the_new_ones():
    sold = table(training(2, 3, name="sold", tenant="umbrella"))
    left, joined = diff(table(training(1, 2)), sold, None).changes
    assert left == Removed(TRAINING, "training", "acme", guid(1), FULL, None)
    assert joined == Added(TRAINING, "sold", "umbrella", guid(3), None, FULL)


def test_a_flag_is_a_change_of_its_own():
    plan = diff(table(training(1)), table(training(1, flags=Flags(ipoib=True))), None)
    assert plan.flags == (FlagChange(TRAINING, "training", "acme", "ipoib", False, True),)
    assert not plan.is_empty
    assert plan.affected == frozenset()
    assert plan.by_hand(2) == 4  # one line, two copies, one signal
    gone = diff(table(training(1, flags=Flags(ipoib=True))), table(), None)
    assert gone.flags == (FlagChange(TRAINING, "training", "acme", "ipoib", True, False),)


def test_hazards_name_their_port():
    full = fabric(port(1, {0: 0x7FFF, 1: 0xAC41}, capacity=2))
    hazards = diff(table(training(1)), table(training(1), inference(1)), full).hazards
    assert (hazards[0][0], hazards[0][1].kind) == (guid(1), "table_full")


def test_a_hazard_of_many_ports_is_told_once_and_takeovers_last():
    seen = fabric(port(1, {0: 0x7FFF, 1: 0xAC41}), port(2, {0: 0x7FFF, 1: 0xAC41}), port(3, {0: 0xAC41, 1: 0x7FFF}))
    told = diff(table(training(1, 2, 3)), table(inference(1, 2, 3)), seen).hazards_told
    assert [(hazard.kind, guids) for hazard, guids in told] == [
        ("default_off_index_0", (guid(3),)),
        ("freed_index_reused_after_takeover", (guid(1), guid(2))),
    ]


def test_effort_by_hand_grows_with_servers_and_managers():
    one = diff(BEFORE, MOVED, SEEN)
    # 2 GUIDs to look up, 4 lines to edit, 2 files to copy, 1 signal, 2 tables to check
    assert one.by_hand(2) == 11
    assert one.by_hand(3) == 12
    two = diff(BEFORE, table(inference(1, 2, 3, 4)), SEEN)
    assert two.by_hand(2) > one.by_hand(2)


def test_the_digest_is_of_what_a_person_sees():
    plan = diff(BEFORE, MOVED, SEEN)
    assert plan.digest == diff(BEFORE, MOVED, SEEN).digest
    others = partition(PKey(0x77), "other", "umbrella", guid(50))
    rebased = diff(
        table(*BEFORE.partitions, others), table(*MOVED.partitions, others), fabric(*SEEN.ports.values(), port(50))
    )
    assert rebased.digest == plan.digest
    different = [
        diff(BEFORE, table(training(2, 3), inference(1, 4)), SEEN),
        diff(BEFORE, MOVED, None),
        diff(BEFORE, MOVED, fabric(*SEEN.ports.values(), port(1, {0: 0x7FFF, 2: 0xAC41}))),
        diff(BEFORE, table(training(3), inference(1, 2, 4, flags=Flags(ipoib=True))), SEEN),
        diff(BEFORE, table(training(3), replace(inference(1, 2, 4), tenant="umbrella")), SEEN),
    ]
    assert len({plan.digest, *(other.digest for other in different)}) == 6


def unsafe(plan: Plan) -> str:
    with pytest.raises(UnsafePlan) as refusal:
        plan.raise_if_unsafe()
    with pytest.raises(UnsafePlan):
        plan.raise_if_unsafe("  ")
    plan.raise_if_unsafe("the tenant has left")
    return str(refusal.value)


def test_a_plan_that_takes_away_much_asks_first():
    many = range(100, 156)
    crowd = table(training(*many), labels={guid(n): "one-big-server" for n in many})
    assert "17 of 56 memberships end" in unsafe(diff(crowd, table(training(*many[17:])), None))
    diff(crowd, table(training(*many[16:])), None).raise_if_unsafe()
    huge = table(training(*range(100, 400)))
    diff(huge, table(training(*range(117, 400))), None).raise_if_unsafe()


def test_a_partition_of_several_servers_that_empties_asks_first():
    assert "training (0x2c41) loses all its 3 ports" in unsafe(diff(BEFORE, table(inference(4)), None))
    diff(table(training(1, 2), inference(4), labels=LABELS), table(inference(1, 2, 4)), None).raise_if_unsafe()


def test_a_pkey_that_changes_owner_asks_first():
    sold = table(training(1, 2, 3, tenant="umbrella"), inference(4))
    assert "P_Key 0x2c41 passes from acme to umbrella" in unsafe(diff(BEFORE, sold, None))
    given = table(training(1, 2, 3, tenant=None), inference(4))
    assert "to the provider" in unsafe(diff(BEFORE, given, None))


def test_a_manager_hosts_port_that_changes_asks_first():
    assert f"Port {SM2} of a manager host" in unsafe(diff(table(), table(sm_ports=(SM1,)), None))
    assert f"Port {SM1} of a manager host" in unsafe(diff(table(), table(partition(TRAINING, "a", None, SM1)), None))


def test_unified_diff_names_the_file_and_the_lines():
    data = (DATA / "golden" / "one-tenant.conf").read_bytes()
    changed = data.replace(b"srv-001", b"srv-009")
    text = unified_diff(data, changed, "sm-1:/etc/opensm/partitions.conf")
    assert text.splitlines()[:2] == [
        "--- sm-1:/etc/opensm/partitions.conf (now)", "+++ sm-1:/etc/opensm/partitions.conf (planned)",
    ]  # fmt: skip
    assert "-# server srv-001, 2 ports\n+# server srv-009, 2 ports" in text
    assert unified_diff(data, data, "x") == ""
    assert unified_diff(b"\xff\n", b"", "x").endswith("-�")
