"""Who must not reach whom, and which pairs are checked after a change and on schedule."""

from random import Random

import pytest

from probes.strangers import Tenancy, moved, pairs_after, sampled
from subnet.guid import GUID
from subnet.pkey import Membership, PKey
from subnet.table import Member, Partition, PartitionTable


def fixed(seed):
    return Random(seed)  # noqa: S311  nothing secret is drawn


A1, A2, A3, B1, B2, C1, S1 = (GUID(f"0x0002c903000000{number:02x}") for number in range(1, 8))
FULL, LIMITED = Membership.FULL, Membership.LIMITED


def tenancy(*partitions):
    """(P_Key, tenant, {port: membership}) each."""
    return Tenancy.of(
        PartitionTable(
            sm_ports=(),
            partitions=tuple(
                Partition(
                    pkey=PKey(pkey), name=f"p{pkey:x}", tenant=tenant,
                    members=tuple(Member(guid, kind) for guid, kind in members.items()),
                )
                for pkey, tenant, members in partitions
            ),
        )
    )  # fmt: skip


def acme(*guids):
    return (0x10, "acme", dict.fromkeys(guids, FULL))


def bert(*guids):
    return (0x20, "bert", dict.fromkeys(guids, FULL))


def cleo(*guids):
    return (0x30, "cleo", dict.fromkeys(guids, FULL))


STORAGE = (0x100, None, {S1: FULL, A1: LIMITED, B1: LIMITED})


@pytest.mark.parametrize(
    ("one", "other", "are"),
    [
        (A1, B1, True),
        (A1, A2, False),
        (A1, A1, False),
        (A1, S1, False),
        (A2, S1, True),
        (S1, C1, False),
        (B1, A2, True),
    ],
)
def test_strangers_share_neither_a_tenant_nor_a_usable_key(one, other, are):
    assert tenancy(acme(A1, A2), bert(B1), STORAGE).are_strangers(one, other) is are


def test_two_limited_members_of_the_providers_partition_are_strangers_and_full_ones_are_not():
    assert tenancy(acme(A1), bert(B1), STORAGE).are_strangers(A1, B1)
    shared = (0x100, None, {A1: FULL, B1: LIMITED})
    assert not tenancy(acme(A1), bert(B1), shared).are_strangers(A1, B1)


def test_a_peer_may_really_talk_and_is_among_the_given():
    both = tenancy(acme(A1, A2, A3), STORAGE)
    assert both.peer(A1) == (A2, 0x10)
    assert both.peer(A1, among=[A3]) == (A3, 0x10)
    assert both.peer(A1, among=[S1]) == (S1, 0x100)
    assert both.peer(A1, among=[B1]) is None
    assert tenancy((0x10, "acme", {A1: LIMITED, A2: LIMITED})).peer(A1) is None
    assert tenancy(bert(B1)).peer(B1) is None


BEFORE, AFTER = tenancy(acme(A1, A2, A3), bert(B1, B2), cleo(C1)), tenancy(acme(A2, A3), bert(A1, B1, B2), cleo(C1))


def test_a_moved_port_is_checked_with_former_neighbours_and_every_other_tenant():
    assert moved(BEFORE, AFTER) == [A1]
    pairs = pairs_after(BEFORE, AFTER, draw=fixed(1), most=10)
    assert {frozenset(pair) for pair in pairs} == {frozenset((A1, other)) for other in (A2, A3, C1)}
    assert pairs[0] in [(A1, A2), (A1, A3)]
    assert pairs_after(BEFORE, AFTER, draw=fixed(1), most=1) == pairs[:1]


def test_a_port_that_left_all_tenants_is_checked_with_those_it_left():
    gone = tenancy(acme(A2, A3), bert(B1, B2))
    assert (A1, A2) in pairs_after(tenancy(acme(A1, A2, A3), bert(B1, B2)), gone, draw=fixed(1), most=10)


def test_every_moved_port_comes_once_before_any_comes_twice():
    two = tenancy(acme(A3), bert(A1, A2, B1), cleo(C1))
    pairs = pairs_after(BEFORE, two, draw=fixed(1), most=3)
    assert {A1, A2} <= {pair[0] for pair in pairs[:2] + pairs[2:3]}


def test_nothing_is_checked_when_only_other_things_changed():
    more = tenancy(acme(A1, A2, A3), bert(B1, B2), cleo(C1), STORAGE)
    assert moved(BEFORE, more) == []
    assert pairs_after(BEFORE, more, draw=fixed(1), most=10) == []


def test_the_sample_holds_strangers_only_and_small_tenants_as_often_as_large_ones():
    many = [GUID(f"0x0002c90400000{number:03x}") for number in range(1, 201)]
    found = tenancy(acme(*many), bert(B1), cleo(C1))
    drawn = [pair for seed in range(60) for pair in sampled(found, draw=fixed(seed), most=1)]
    assert len(drawn) == 60
    assert all(found.are_strangers(*pair) for pair in drawn)
    assert 8 <= sum(set(pair) == {B1, C1} for pair in drawn) <= 35
    assert len(sampled(found, draw=fixed(1), most=5)) == 5


def test_there_is_no_sample_with_one_tenant_or_without_strangers():
    assert sampled(tenancy(acme(A1, A2)), draw=fixed(1), most=4) == []
    shared = (0x100, None, {A1: FULL, B1: FULL})
    assert sampled(tenancy(acme(A1), bert(B1), shared), draw=fixed(1), most=4) == []
