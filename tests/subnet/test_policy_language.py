"""Rules about keywords, flags, groups and Default: each broken once, new and as it stands."""

from dataclasses import replace

import pytest

from subnet.default import OPEN
from subnet.policy import Limits, check
from subnet.table import DefaultPartition, Flags, Keyword, KeywordMember, Member, Partition
from tests.subnet.fabrics import FULL, LIMITED, SM1, SM2, STORAGE, TRAINING, guid, partition, table

ALL_FULL, ALL_LIMITED = KeywordMember(Keyword.ALL_CAS, FULL), KeywordMember(Keyword.ALL_CAS, LIMITED)
SWITCHES, ITSELF = KeywordMember(Keyword.ALL_SWITCHES, FULL), KeywordMember(Keyword.SELF, FULL)
TRAIN = partition(TRAINING, "training", "acme", guid(1), guid(2))
STORE = partition(STORAGE, "storage", None, guid(9))


def rules(value, standing=None, limits=64):
    found = check(value, Limits(limits), sm_ports_registered=(SM1, SM2), standing=standing)
    return [(v.rule, v.severity, v.where) for v in found]


@pytest.mark.parametrize(
    ("plain", "keyword", "rule"),
    [
        (TRAIN, ALL_FULL, "keyword_in_tenants_partition"),
        (TRAIN, ALL_LIMITED, "keyword_in_tenants_partition"),
        (TRAIN, SWITCHES, "keyword_in_tenants_partition"),
        (TRAIN, ITSELF, "self_in_partition"),
        (STORE, ITSELF, "self_in_partition"),
        (STORE, ALL_FULL, "keyword_full_in_provider"),
    ],
)
def test_a_new_keyword_is_refused_and_a_standing_one_warned_of(plain, keyword, rule):
    wanted = table(replace(plain, keywords=(keyword,)))
    where = str(plain.pkey)
    assert rules(wanted) == [(rule, "refuse", where)]
    assert rules(wanted, table(plain)) == [(rule, "refuse", where)]
    assert rules(wanted, wanted) == [(rule, "warn", where)]
    # What stands in another owner's partition is no excuse.
    sold = table(replace(plain, keywords=(keyword,), tenant="umbrella"))
    assert rules(wanted, sold) == [(rule, "refuse", where)]


def test_a_keyword_that_grows_is_new():
    standing = table(replace(STORE, keywords=(ALL_LIMITED,)))
    assert rules(standing) == []
    assert rules(table(replace(STORE, keywords=(ALL_FULL,))), standing) == [
        ("keyword_full_in_provider", "refuse", "0x1001")
    ]
    assert rules(table(replace(STORE, keywords=(SWITCHES,)))) == []


def test_keywords_take_a_slot_of_every_port():
    by_all = table(replace(STORE, keywords=(ALL_LIMITED,)), TRAIN)
    assert rules(by_all, limits={guid(1): 3, guid(2): 2, guid(9): 64, guid(3): 1}) == [
        ("capacity", "refuse", guid(2)),
        ("capacity", "refuse", guid(3)),
        ("capacity_nearly_full", "warn", guid(1)),
    ]


def test_a_partition_that_only_limited_keywords_fill_is_silent():
    assert rules(table(Partition(STORAGE, "s", None, keywords=(ALL_LIMITED,)))) == [("all_limited", "warn", "0x1001")]


def with_default(*keywords, members=(), **more):
    return replace(table(TRAIN), default=DefaultPartition(keywords=keywords, members=members, **more))


def test_an_open_default_is_warned_of_with_its_canaries():
    opened = with_default(*OPEN, members=(Member(guid(1), LIMITED),))
    assert rules(opened) == [("default_open", "warn", "table")]
    (violation,) = check(opened, Limits(64), sm_ports_registered=(SM1, SM2))
    assert "except 1 limited port" in violation.sentence


def test_an_sm_that_demotes_its_own_port():
    demoting = with_default(KeywordMember(Keyword.ALL, LIMITED), SWITCHES, KeywordMember(Keyword.ALL_ROUTERS, FULL))
    assert rules(demoting) == [("self_limited_in_default", "refuse", "table")]
    assert rules(demoting, demoting) == [("self_limited_in_default", "warn", "table")]


def test_switches_and_routers_limited_in_default():
    assert rules(with_default()) == [
        ("switches_limited_in_default", "warn", "table"),
        ("routers_limited_in_default", "warn", "table"),
    ]


def test_flags_that_shape_no_group():
    value = table(replace(TRAIN, flags=Flags(mtu=5, sl=1)))
    assert rules(value) == [("flags_without_group", "warn", "0x2c41")]
    assert rules(table(replace(TRAIN, flags=Flags(mtu=5, ipoib=True)))) == []
    assert rules(table(replace(TRAIN, flags=Flags(mtu=5), mgids=("mgid=ff15::1",)))) == []
    assert rules(table(replace(TRAIN, flags=Flags(sl=1)))) == []


@pytest.mark.parametrize(
    ("line", "is_skipped"),
    [
        ("mgid=ff12:401b::1", False),
        ("mgid=ff12:401b::1,rate=16,mtu=5", False),
        ("mgid=ff12:401b::1,rate=3", True),
        ("mgid=ff12:601b::1,m=4", True),
        ("mgid=ff12:601b::1,mtu=no", True),
        ("mgid=ff12:401b:2c41::1", False),
        ("mgid=ff12:401b:ac41::1", True),
        ("mgid=ff12:401b:ffff::ffff:ffff", False),
        ("mgid=ff15::1,rate=3", False),
    ],
)
def test_groups_that_opensm_skips(line, is_skipped):
    value = table(replace(TRAIN, flags=Flags(ipoib=True, mtu=5, rate=16), mgids=(line,)))
    assert rules(value) == ([("group_skipped", "warn", "0x2c41")] if is_skipped else [])
