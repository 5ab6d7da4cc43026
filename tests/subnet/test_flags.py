"""Flags, keywords and lines for multicast groups: what no table may hold, and what keeps its JSON."""

import pytest
from hypothesis import given

from subnet.default import CLOSED, OPEN, STANDARD
from subnet.errors import InvalidFlag, InvalidTable
from subnet.flags import Flags, mgid_line
from subnet.pkey import DEFAULT
from subnet.table import DefaultPartition, Keyword, KeywordMember, Member, Partition, PartitionTable
from tests.subnet.fabrics import FULL, LIMITED, SM1, SM2, STORAGE, TRAINING, guid, partition, table
from tests.subnet.strategies import tables


@pytest.mark.parametrize(
    "wrong",
    [
        {"mtu": 0}, {"mtu": 6}, {"mtu": 4096}, {"mtu": "4"}, {"rate": 1}, {"rate": 23}, {"sl": -1}, {"sl": 16},
        {"sl": True}, {"scope": (0,)}, {"scope": (16,)}, {"scope": ("2",)}, {"q_key": 2**32}, {"tclass": 256},
        {"flow_label": 2**20},
    ],
)  # fmt: skip
def test_flags_that_opensm_would_ignore_or_misread(wrong):
    with pytest.raises(InvalidFlag):
        Flags(**wrong)


def test_flags_are_written_in_one_order_with_their_names_in_full():
    flags = Flags(ipoib=True, flow_label=1, tclass=2, q_key=3, scope=(14, 5, 5), sl=0, rate=3, mtu=4)
    assert flags.written() == (
        "ipoib", "mtu=4", "rate=3", "sl=0", "scope=5", "scope=14", "Q_Key=0x00000003", "TClass=0x02",
        "FlowLabel=0x00001",
    )  # fmt: skip
    assert Flags.from_json(flags.to_json()) == flags
    assert Flags(q_key=0, tclass=0) == Flags()
    assert Flags().to_json() == {}
    with pytest.raises(InvalidFlag, match="indx0"):
        Flags.from_json({"indx0": True})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("mgid=ff12::1", "mgid=ff12::1"),
        (" mgid = ff12:401b::ffff:ffff , sl=1 ,rate = 3, ", "mgid=ff12:401b::ffff:ffff,sl=1,rate=3"),
        ("mgid=ff12::1.2.3.4", "mgid=ff12::1.2.3.4"),
    ],
)
def test_a_line_for_a_group_loses_its_blanks(text, line):
    assert mgid_line(text) == line
    assert mgid_line(line) == line


@pytest.mark.parametrize(
    "text",
    [
        "", "mgid", "mgid=", "mgid=fe80::1", "mgid=ff12::x", "mgid=ff12::1%eth0", "gid=ff12::1", "MGID=ff12::1",
        "mgid=ff12::1;", "mgid=ff12::1 # a", "mgid=ff12::1\n", "mgid=ff12::1,sl=\t1", "mgid=ff12::1,é=1",
        "mgid=ff12::1" + ",sl=1" * 40, "0x0002c90300010001=full",
    ],
)  # fmt: skip
def test_a_line_that_creates_no_group(text):
    with pytest.raises(InvalidFlag):
        mgid_line(text)


def test_a_keyword_or_a_group_stands_once():
    twice = (KeywordMember(Keyword.ALL, FULL), KeywordMember(Keyword.ALL, LIMITED))
    with pytest.raises(InvalidTable, match=r"ALL stands twice in partition a \(0x1001\)"):
        Partition(STORAGE, "a", None, keywords=twice)
    with pytest.raises(InvalidTable, match="ALL stands twice in partition Default"):
        DefaultPartition(keywords=twice)
    with pytest.raises(InvalidTable, match="group stands twice"):
        Partition(STORAGE, "a", None, mgids=("mgid=ff12::1", "mgid = ff12::1,"))
    with pytest.raises(InvalidTable, match="named twice in partition Default"):
        DefaultPartition(members=(Member(guid(1), FULL), Member(guid(1), LIMITED)))


@pytest.mark.parametrize(
    ("keywords", "node_type", "is_self", "membership"),
    [
        (CLOSED, "CA", False, LIMITED),
        (CLOSED, "CA", True, FULL),
        (CLOSED, "SW", False, FULL),
        (CLOSED, "RT", False, FULL),
        (OPEN, "CA", False, FULL),
        ((), "CA", False, LIMITED),
        ((), "SW", True, FULL),
        ((KeywordMember("ALL", "limited"),), "CA", True, LIMITED),
        ((KeywordMember("SELF", "full"), KeywordMember("ALL_CAS", "limited")), "CA", True, FULL),
        ((KeywordMember("ALL_CAS", "limited"), KeywordMember("ALL", "full")), "CA", False, LIMITED),
    ],
)
def test_default_by_keyword(keywords, node_type, is_self, membership):
    assert DefaultPartition(keywords=keywords).membership_of(node_type, is_self=is_self) == membership


def test_a_guid_wins_over_every_keyword():
    wanted = table(
        Partition(
            TRAINING, "a", "acme", (Member(guid(1), LIMITED),),
            keywords=(KeywordMember(Keyword.SELF, FULL), KeywordMember(Keyword.ALL, FULL)),
        ),
        Partition(STORAGE, "s", None, keywords=(KeywordMember(Keyword.ALL_ROUTERS, LIMITED),)),
    )  # fmt: skip
    assert wanted.keys_of(guid(1), "CA", is_self=True) == {DEFAULT: FULL, TRAINING: LIMITED}
    assert wanted.keys_of(guid(2), "RT") == {DEFAULT: FULL, TRAINING: FULL, STORAGE: LIMITED}
    assert wanted.by_port() == {guid(1): {TRAINING: LIMITED}}


def test_an_sm_port_is_never_an_exception_of_default():
    excepted = DefaultPartition(members=(Member(SM1, FULL), Member(guid(1), FULL)))
    assert PartitionTable((SM1, SM2), default=excepted).default.members == (Member(guid(1), FULL),)
    with pytest.raises(InvalidTable, match="belongs to a manager host"):
        PartitionTable((SM1,), default=DefaultPartition(members=(Member(SM1, LIMITED),)))


def test_tables_of_today_keep_their_json():
    today = table(partition(TRAINING, "training", "acme", guid(1), ipoib=True), labels={guid(1): "srv"})
    assert today.to_json() == {
        "sm_ports": [SM1, SM2],
        "partitions": [
            {
                "pkey": "0x2c41", "name": "training", "tenant": "acme", "ipoib": True,
                "members": [["0x0002c90300010001", "full"]],
            }
        ],
        "labels": {"0x0002c90300010001": "srv"},
    }  # fmt: skip
    assert PartitionTable.from_json(today.to_json()).default is STANDARD


@given(tables())
def test_json_brings_every_table_back(any_table):
    again = PartitionTable.from_json(any_table.to_json())
    assert (again, again.labels) == (any_table, any_table.labels)
