"""A plan on a newer revision: what goes together, and why the rest does not."""

from dataclasses import replace

import pytest

from subnet.change import difference
from subnet.default import OPEN
from subnet.moves import Passing, passing
from subnet.plan import Conflict, between_tenants, rebase
from subnet.table import DefaultPartition, Flags, Keyword, KeywordMember, Member
from tests.subnet.fabrics import FULL, INFERENCE, LIMITED, SM1, SM2, STORAGE, TRAINING, guid, partition, table


def training(*ports, **changes):
    return replace(partition(TRAINING, "training", "acme", *map(guid, ports)), **changes)


def inference(*ports, **changes):
    return replace(partition(INFERENCE, "inference", "acme", *map(guid, ports)), **changes)


BASE = table(training(1, 2), inference(3))


def conflict(newer, wanted, base=BASE) -> Conflict:
    found = rebase(base, newer, wanted)
    assert isinstance(found, Conflict)
    assert found.sentence.endswith(("again.", "does."))
    return found


def test_changes_to_other_ports_go_together():
    newer = table(training(1, 2, 5), inference(3), labels={guid(5): "old"})
    wanted = table(training(2), inference(1, 3, flags=Flags(ipoib=True)), labels={guid(1): "new"})
    assert rebase(BASE, newer, wanted) == table(training(2, 5), inference(1, 3, flags=Flags(ipoib=True)))
    assert rebase(BASE, newer, wanted).labels == {guid(1): "new", guid(5): "old"}


def test_new_partitions_and_managers_of_both_sides_go_together():
    newer = table(training(1, 2), inference(3), partition(STORAGE, "storage", None, guid(9)), sm_ports=(SM1,))
    wanted = table(training(1, 2, 4), inference(3), sm_ports=(SM1, SM2, guid(8)))
    merged = rebase(BASE, newer, wanted)
    assert set(merged.sm_ports) == {SM1, guid(8)}
    assert merged.partition(TRAINING).members == training(1, 2, 4).members
    assert merged.partition(STORAGE) is not None


def test_the_last_port_that_leaves_takes_no_flags_from_those_who_joined():
    base = table(training(1, flags=Flags(ipoib=True), mgids=("mgid=ff12::1",)), inference(3))
    newer = table(training(1, 5, flags=Flags(ipoib=True), mgids=("mgid=ff12::1",)), inference(3))
    merged = rebase(base, newer, table(inference(1, 3)))
    assert merged == table(training(5, flags=Flags(ipoib=True), mgids=("mgid=ff12::1",)), inference(1, 3))
    assert rebase(base, replace(base, labels={}), table(inference(1, 3))) == table(inference(1, 3))


def test_a_partition_that_has_ended_is_not_joined():
    found = conflict(table(inference(3)), table(training(1, 2, 4), inference(3)))
    assert "taken the last port out of training (0x2c41)" in found.sentence


def test_ports_that_both_sides_touch_are_named():
    newer, wanted = table(training(1), inference(2, 3)), table(training(1), inference(3), labels={guid(2): "srv-001"})
    found = conflict(newer, wanted)
    assert found.ports == (guid(2),)
    assert f"port {guid(2)} (srv-001), which this plan changes too" in found.sentence
    many = conflict(table(inference(3)), table(training(), inference(1, 2, 3)))
    assert many.ports == (guid(1), guid(2))


@pytest.mark.parametrize(
    ("newer", "wanted", "says"),
    [
        (table(training(1, 2, name="a"), inference(3)), table(training(1, 2, name="b"), inference(3)), "renamed the"),
        (
            table(training(1, 2, 7, tenant="umbrella"), inference(3)),
            table(training(1, 2, 8), inference(3)),
            "passes from acme to umbrella",
        ),
        (
            table(training(1, 2, flags=Flags(mtu=4)), inference(3)),
            table(training(1, 2, flags=Flags(mtu=5)), inference(3)),
            "set mtu of training",
        ),
        (
            table(training(1, 2, mgids=("mgid=ff12::1",)), inference(3)),
            table(training(1, 2, mgids=("mgid=ff12::2",)), inference(3)),
            "multicast groups of training",
        ),
        (
            table(training(1, 2, keywords=(KeywordMember(Keyword.ALL, LIMITED),)), inference(3)),
            table(training(1, 2, 4), inference(3)),
            "The newer revision changes ALL",
        ),
        (
            table(training(1, 2, 4), inference(3)),
            replace(BASE, default=DefaultPartition(keywords=OPEN)),
            "This plan changes ALL in Default",
        ),
        (
            replace(BASE, default=DefaultPartition(flags=Flags(ipoib=True, mtu=4))),
            replace(BASE, default=DefaultPartition(flags=Flags(ipoib=True, mtu=5))),
            "set mtu of Default",
        ),
        (
            table(training(1, 2), inference(3), partition(STORAGE, "storage", None, guid(9))),
            table(training(1, 2), inference(3), partition(STORAGE, "fast", None, guid(8))),
            "created the partition storage",
        ),
        (
            table(training(1, 2), inference(3), partition(STORAGE, "storage", None, guid(9))),
            table(training(1, 2), inference(3), replace(partition(STORAGE, "storage", None, guid(8)), pkey=0x33)),
            "Two partitions are called storage",
        ),
    ],
)
def test_what_does_not_go_together_says_why(newer, wanted, says):
    assert says in conflict(newer, wanted).sentence


def test_exceptions_of_default_go_together():
    newer = replace(BASE, default=DefaultPartition(members=(Member(guid(50), FULL),)))
    wanted = replace(BASE, default=DefaultPartition(members=(Member(guid(51), FULL),), mgids=("mgid=ff12::1",)))
    merged = rebase(BASE, newer, wanted)
    assert [member.guid for member in merged.default.members] == [guid(50), guid(51)]
    assert merged.default.mgids == ("mgid=ff12::1",)


SHARED = partition(STORAGE, "storage", None, guid(1), membership=LIMITED)


def owner(**owners):
    return lambda port: owners.get(port)


def test_a_move_within_a_tenant_is_one_revision():
    assert between_tenants(BASE, table(training(2), inference(1, 3)), owner()) is None
    assert between_tenants(table(), BASE, owner()) is None


def test_a_move_between_tenants_removes_first():
    theirs = partition(INFERENCE, "inference", "umbrella", guid(3))
    current = table(training(1, 2), theirs, SHARED)
    joined = replace(theirs, members=(*theirs.members, Member(guid(1), FULL)))
    wanted = table(training(2, 7), joined, replace(SHARED, members=(Member(guid(1), FULL),)))
    pair = between_tenants(current, wanted, owner())
    assert pair == (table(training(2, 7), theirs, SHARED), wanted)


def test_a_port_that_was_not_cleaned_still_belongs_to_its_last_tenant():
    theirs = partition(INFERENCE, "inference", "umbrella", guid(3))
    wanted = table(training(1, 2, 3))
    assert between_tenants(table(training(1, 2)), wanted, owner(**{guid(3): "acme"})) is None
    pair = between_tenants(table(training(1, 2)), wanted, owner(**{guid(3): "umbrella"}))
    assert pair == (table(training(1, 2)), wanted)
    # What it holds says more than who had it last.
    assert between_tenants(table(training(1, 2), theirs), wanted, owner(**{guid(3): "acme"})) is not None


def test_who_had_a_port_last_counts_beside_what_it_holds():
    """It is in one of acme's partitions and was never cleaned of umbrella: acme gives it no second one."""
    current = table(training(1, 2))
    wanted = table(training(1, 2), inference(1))
    assert between_tenants(current, wanted, owner()) is None
    assert between_tenants(current, wanted, owner(**{guid(1): "umbrella"})) == (table(training(2), inference()), wanted)


def test_nobody_is_asked_when_no_tenant_takes_a_port():
    def nobody(guids):
        raise AssertionError(guids)

    assert passing(difference(BASE, table(SHARED)), BASE, nobody) == ()


def test_a_port_that_joins_is_told_from_one_whose_partition_passes_on():
    theirs = partition(INFERENCE, "inference", "umbrella", guid(3))
    current = table(training(1, 2), theirs)
    wanted = table(training(1, tenant="umbrella"), replace(theirs, members=(Member(guid(2), FULL),)))
    found = passing(difference(current, wanted), current, lambda guids: {})
    assert found == (Passing(guid(1), "umbrella", "acme", False), Passing(guid(2), "umbrella", "acme", True))


def test_a_pkey_that_passes_on_takes_its_ports_through_both_steps():
    wanted = table(training(1, 2, tenant="umbrella"), inference(3))
    removing, adding = between_tenants(BASE, wanted, owner())
    assert adding == wanted
    assert removing.by_port() == {guid(3): {INFERENCE: FULL}}
