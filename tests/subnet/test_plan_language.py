"""Plans that change keywords, flags, groups and Default: what they reach, what follows, and when they ask."""

from dataclasses import replace

import pytest

from subnet.default import OPEN
from subnet.errors import UnsafePlan
from subnet.index import PortHistory
from subnet.pkey import DEFAULT
from subnet.plan import Changed, DefaultChange, FlagChange, KeywordChange, MgidChange, PartitionChange, diff
from subnet.table import DefaultPartition, Flags, Keyword, KeywordMember, Member, Partition
from tests.subnet.fabrics import (
    FULL,
    INFERENCE,
    LEAF,
    LIMITED,
    SM1,
    SM2,
    STORAGE,
    TRAINING,
    fabric,
    guid,
    partition,
    port,
    table,
)  # fmt: skip

ALL_LIMITED = KeywordMember(Keyword.ALL_CAS, LIMITED)
TRAIN = partition(TRAINING, "training", "acme", guid(1))
CLOSED_TABLE = table(TRAIN)
OPEN_TABLE = replace(CLOSED_TABLE, default=DefaultPartition(keywords=OPEN))
SEEN = fabric(port(1, {0: 0xFFFF, 1: 0xAC41}), port(2, {0: 0xFFFF}), port(LEAF, {0: 0xFFFF}, node_type="SW"))


def kinds(plan):
    return [effect.kind for effect in plan.effects]


def asks(plan) -> str:
    with pytest.raises(UnsafePlan) as refusal:
        plan.raise_if_unsafe()
    return str(refusal.value)


def test_closing_default_reaches_every_hca_port_that_was_read():
    plan = diff(OPEN_TABLE, CLOSED_TABLE, SEEN)
    assert plan.affected == {guid(1), guid(2)}
    assert [(p.gains, p.losses) for p in plan.ports] == [((0x7FFF,), (0xFFFF,))] * 2
    assert plan.predictions[guid(1)].survivors == {0: 0x7FFF, 1: 0xAC41}
    assert plan.default == DefaultChange(OPEN_TABLE.default, CLOSED_TABLE.default, (SM1, SM2), (SM1, SM2))
    assert plan.keywords[0] == KeywordChange(DEFAULT, "Default", None, Keyword.ALL, FULL, LIMITED)
    assert kinds(plan) == ["default_closes", "sa_access", "index_0", "ipoib_parents", "storage"]
    assert plan.effects[0].ports == 2
    assert "NCCL_IB_PKEY" in plan.effects[2].sentence
    assert "none is excepted" in plan.effects[4].sentence
    assert "Default closes" in asks(plan)
    assert not plan.is_empty


def test_without_a_reading_closing_default_is_told_and_reaches_no_port_by_name():
    plan = diff(OPEN_TABLE, CLOSED_TABLE, None)
    assert plan.affected == frozenset()
    assert plan.default is not None
    assert plan.default.closes
    assert plan.effects[0].ports is None
    assert not plan.is_empty


def test_opening_default_says_that_isolation_ends():
    plan = diff(CLOSED_TABLE, OPEN_TABLE, SEEN)
    assert kinds(plan) == ["default_opens"]
    assert "Default opens: every port could reach every other" in asks(plan)


def test_a_canary_is_limited_while_default_is_open():
    canary = replace(OPEN_TABLE, default=DefaultPartition(keywords=OPEN, members=(Member(guid(2), LIMITED),)))
    plan = diff(OPEN_TABLE, canary, SEEN)
    assert plan.changes == (Changed(DEFAULT, "Default", None, guid(2), FULL, LIMITED),)
    assert plan.affected == {guid(2)}
    assert kinds(plan) == ["canaries"]
    assert "still reaches every full member" in plan.effects[0].sentence
    assert "1 port becomes something else in Default" in asks(plan)
    # Closing it then leaves the canary as it is.
    assert diff(canary, CLOSED_TABLE, SEEN).affected == {guid(1)}


def test_an_exception_of_a_closed_default_reaches_every_port():
    storage = replace(CLOSED_TABLE, default=DefaultPartition(members=(Member(guid(2), FULL),)), labels={guid(2): "nas"})
    plan = diff(CLOSED_TABLE, storage, SEEN)
    assert kinds(plan) == ["full_exceptions"]
    assert f"Port {guid(2)} of nas is full in Default" in plan.effects[0].sentence
    closing = diff(OPEN_TABLE, storage, SEEN)
    assert closing.affected == {guid(1)}
    assert "of nas is full" in closing.effects[4].sentence


def test_an_exception_that_becomes_an_sm_port_changes_nothing():
    excepted = replace(table(TRAIN, sm_ports=(SM1,)), default=DefaultPartition(members=(Member(SM2, FULL),)))
    plan = diff(excepted, CLOSED_TABLE, SEEN)
    assert plan.is_empty
    assert plan.affected == frozenset()


def test_a_keyword_reaches_the_ports_that_were_read():
    shared = partition(STORAGE, "storage", None, guid(9))
    plan = diff(table(TRAIN, shared), table(TRAIN, replace(shared, keywords=(ALL_LIMITED,))), SEEN)
    assert plan.keywords == (KeywordChange(STORAGE, "storage", None, Keyword.ALL_CAS, None, LIMITED),)
    assert plan.affected == {guid(1), guid(2), SM1, SM2}
    assert kinds(plan) == ["keyword_reaches"]
    assert plan.effects[0].ports == 4
    back = diff(table(TRAIN, replace(shared, keywords=(ALL_LIMITED,))), table(TRAIN), SEEN)
    assert "Partition storage (0x1001) goes, and ALL_CAS=limited with it" in asks(back)


def test_a_keyword_that_goes_counts_as_memberships_that_end():
    many = fabric(*(port(n) for n in range(1, 60)))
    by_all = table(Partition(STORAGE, "storage", None, (Member(guid(1), FULL),), keywords=(ALL_LIMITED,)), TRAIN)
    gone = table(partition(STORAGE, "storage", None, guid(1)), TRAIN)
    assert "60 of 62 memberships end" in asks(diff(by_all, gone, many))


def test_a_guid_that_a_keyword_covers_is_no_change_for_its_port():
    by_all = Partition(STORAGE, "storage", None, (Member(guid(1), LIMITED),), keywords=(ALL_LIMITED,))
    plan = diff(table(by_all), table(replace(by_all, members=())), SEEN)
    assert [change.verb for change in plan.changes] == ["removed"]
    assert plan.affected == frozenset()
    assert not plan.is_empty


def test_self_moves_at_a_takeover():
    mine = table(replace(TRAIN, keywords=(KeywordMember(Keyword.SELF, FULL),)))
    plan = diff(CLOSED_TABLE, mine, SEEN)
    assert plan.affected == {SM1}
    assert kinds(plan) == ["self_moves"]


def test_flags_of_groups_that_exist_stay():
    def with_flags(**flags):
        return table(replace(TRAIN, flags=Flags(**flags)))

    plan = diff(with_flags(ipoib=True), with_flags(ipoib=True, mtu=5, rate=16), SEEN)
    assert plan.flags == (
        FlagChange(TRAINING, "training", "acme", "mtu", None, 5),
        FlagChange(TRAINING, "training", "acme", "rate", None, 16),
    )
    assert all(flag.on for flag in plan.flags)
    assert kinds(plan) == ["group_stays"]
    assert kinds(diff(with_flags(ipoib=True), with_flags(), SEEN)) == ["group_stays"]
    assert kinds(diff(with_flags(), with_flags(ipoib=True, mtu=5), SEEN)) == []


def test_groups_are_a_change_of_their_own():
    grouped = table(replace(TRAIN, mgids=("mgid=ff12::1",)))
    plan = diff(CLOSED_TABLE, grouped, SEEN)
    assert plan.mgids == (MgidChange(TRAINING, "training", "acme", (), ("mgid=ff12::1",)),)
    assert plan.by_hand(2) == 4
    assert kinds(plan) == []
    assert kinds(diff(grouped, CLOSED_TABLE, SEEN)) == ["group_stays"]


def test_partitions_come_go_and_change_their_names():
    before = table(TRAIN, partition(INFERENCE, "inference", "acme", guid(3)))
    after = table(replace(TRAIN, name="other"), partition(STORAGE, "storage", None, guid(3)))
    plan = diff(before, after, None)
    assert plan.partitions == (
        PartitionChange(INFERENCE, "inference", None, "acme", None),
        PartitionChange(STORAGE, None, "storage", None, None),
        PartitionChange(TRAINING, "training", "other", "acme", "acme"),
    )
    assert [change.what for change in plan.partitions] == ["retired", "created", "renamed"]
    renamed = diff(table(TRAIN), table(replace(TRAIN, name="other")), None)
    assert renamed.is_empty
    sold = diff(table(TRAIN), table(replace(TRAIN, tenant="umbrella")), None)
    assert [change.what for change in sold.partitions] == ["passed on"]


def test_history_sharpens_a_prediction():
    held = {0: 0x7FFF, 1: 0xAC41}
    seen = fabric(port(1, held))
    joined = table(TRAIN, partition(INFERENCE, "inference", "acme", guid(1)))
    wide = diff(CLOSED_TABLE, joined, seen).predictions[guid(1)].new[0x8044]
    history = {guid(1): PortHistory(tables=(held,), is_whole=True)}
    sharp = diff(CLOSED_TABLE, joined, seen, history=history).predictions[guid(1)].new[0x8044]
    assert sharp < wide
