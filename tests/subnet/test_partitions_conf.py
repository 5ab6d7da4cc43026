"""The file: golden bytes, and every way in which bytes are refused."""

import hashlib

import pytest

from subnet.errors import InvalidFile, InvalidName, InvalidTable
from subnet.partitions_conf import Header, digest, parse_strict, render, table_digest
from subnet.pkey import PKey
from subnet.table import Flags, Partition, PartitionTable
from tests.subnet.fabrics import DATA, FULL, INFERENCE, LIMITED, SM1, SM2, TRAINING, guid, partition, table
from tests.subnet.golden import GOLDEN, PARENT, long_list, one_tenant

SAMPLE = (DATA / "golden" / "one-tenant.conf").read_bytes()


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_files_are_what_their_tables_render(name):
    value, header = GOLDEN[name]
    data = (DATA / "golden" / name).read_bytes()
    assert render(value, header).decode() == data.decode()
    parsed = parse_strict(data)
    assert parsed.header == header
    assert parsed.table.by_port() == value.by_port()
    assert table_digest(parsed.table) == table_digest(value)


def test_every_golden_file_has_its_table():
    assert {path.name for path in (DATA / "golden").glob("*.conf")} == GOLDEN.keys()


def test_labels_and_tenants_come_back():
    parsed = parse_strict(SAMPLE).table
    assert parsed.labels == {guid(1): "srv-001", guid(0x11): "srv-001"}
    assert [partition.tenant for partition in parsed.partitions] == ["acme"]


def test_no_table_without_sm_ports_is_rendered():
    with pytest.raises(InvalidTable, match="Enrol the manager hosts"):
        render(PartitionTable(sm_ports=()), Header("lab", 1))


def test_partitions_without_members_are_left_out():
    with_empty = table(
        partition(TRAINING, "a", "acme", guid(1)), Partition(INFERENCE, "b", "acme", (), Flags(ipoib=True))
    )
    without = table(partition(TRAINING, "a", "acme", guid(1)))
    assert render(with_empty, Header("lab", 1)) == render(without, Header("lab", 1))
    assert table_digest(with_empty) == table_digest(without)


@pytest.mark.parametrize(
    ("subnet", "revision", "parent"),
    [
        ("", 1, PARENT), ("a b", 1, PARENT), ("lab\n", 1, PARENT), ("x" * 61, 1, PARENT), ("lab", -1, PARENT),
        ("lab", 10**18, PARENT), ("lab", 1, "4f1c"), ("lab", 1, PARENT.upper()), ("lab", 1, PARENT + "0"),
    ],
)  # fmt: skip
def test_headers_that_no_file_has(subnet, revision, parent):
    with pytest.raises(InvalidName, match="64 hex digits"):
        Header(subnet, revision, parent)


def test_a_long_list_stays_far_from_the_longest_line():
    lines = render(long_list(), Header("s" * 60, 10**18 - 1, PARENT)).split(b"\n")
    assert max(map(len, lines)) < 200


def test_every_truncation_is_refused():
    for size in range(len(SAMPLE)):
        with pytest.raises(InvalidFile):
            parse_strict(SAMPLE[:size])


LINES = SAMPLE.decode().split("\n")


def edited(line: int, text: str | None) -> bytes:
    """The sample with line `line` (from 1) replaced, or left out."""
    replacement = [] if text is None else [text]
    return "\n".join([*LINES[: line - 1], *replacement, *LINES[line:]]).encode()


@pytest.mark.parametrize(
    ("line", "text", "says"),
    [
        (1, LINES[0] + " ", "line 1: expected “# FabricUI subnet="),
        (1, LINES[0].replace("revision=7", "revision=07"), "line 1: "),
        (1, None, "line 1: expected “# FabricUI"),
        (2, "Default=0x7fff, ipoib :", "line 2: expected Default as “Default=0x7fff"),
        (2, "Default=0x7fff, sl=1, ipoib, defmember=limited :", "line 2: expected Default as"),
        (2, "Default=0x7fff, rate=23, defmember=limited :", "line 2: rate 23 is no rate code"),
        (2, "Default=0x7fff, sl=01, defmember=limited :", "line 2: expected Default as"),
        (2, "Default=0x7fff, scope=5, scope=2, defmember=limited :", "line 2: this is not what FabricUI writes"),
        (3, " ALL=Full,", "line 3: expected an SM port"),
        (3, " ALL=limited;", "line 3: Default names no SM port"),
        (3, " SELF=full,", "line 2: SELF stands twice in partition Default"),
        (4, " ALL_CAS=full,\n ALL=full,", "line 2: ALL stands twice in partition Default"),
        (3, " mgid=ff12::1\n ALL=limited,", "line 3: this is not what FabricUI writes"),
        (3, " mgid=fe80::1,\n ALL=limited,", "line 2: “mgid=fe80::1” creates no multicast group"),
        (4, " mgid=ff12::1,\n ALL_SWITCHES=full,", "line 4: expected an SM port"),
        (7, " 0x0002c903000a0001=limited,", "line 7: expected an SM port"),
        (7, " 0x0002c903000c0001=full,", "line 8: port 0x0002c903000b0001 is named twice or out of order"),
        (8, " 0x0002c903000b0001=full,", "line 9: expected “# server"),
        (8, " 0x0002c903000b0001=limited;", "line 8: expected an SM port"),
        (9, "# provider ", "line 9: expected “# tenant"),
        (9, None, "line 9: expected “# tenant"),
        (10, "training=0x7fff, defmember=limited :", "line 9: P_Key 0x7fff is reserved"),
        (10, "training=0x0000, defmember=limited :", "line 9: P_Key 0x0000 is reserved"),
        (10, "training=0xac41, defmember=limited :", "line 9: P_Key 0xac41 is reserved"),
        (10, "2nd=0x2c41, defmember=limited :", "line 10: expected a partition"),
        (10, "default=0x2c41, defmember=limited :", "line 9: “Default” is the partition every port is in"),
        (10, "training=0x2C41, defmember=limited :", "line 10: expected a partition"),
        (10, "training=0x2c41, ipoib, defmember=full :", "line 10: expected a partition"),
        (11, "# server srv 001, 2 ports", "line 11: "),
        (11, "# server srv-001, 1 port", "line 11: this is not what FabricUI writes"),
        (11, "# server srv-001, 2 port", "line 11: this is not what FabricUI writes"),
        (11, None, "line 11: "),
        (12, "0x0002c90300010001=full,", "line 12: expected a member"),
        (12, " 0x0002c90300010001=Full,", "line 12: expected a member"),
        (12, " 0x0002c90300010001=both,", "line 12: expected a member"),
        (12, " 0x2c90300010001=full,", "line 12: expected a member"),
        (12, " 0x0000000000000000=full,", "line 12: “0x0000000000000000” is no port's GUID"),
        (12, " 0x0002c90300010011=full,", "line 13: port 0x0002c90300010011 is named twice"),
        (12, " 0x0002c90300010001=full;", "line 13: expected “# tenant"),
        (13, " 0x0002c90300010011=full,", "line 14: expected a member"),
        (13, " 0x0002c90300010011=full\n;", "line 13: expected a member"),
        (13, " 0x0002c90300010011=full;\n;", "line 14: expected “# tenant"),
        (13, " 0x0002c90300010011=full;;", "line 13: expected a member"),
        (13, " 0x0002c90300010011=full;\r", "line 13: the line holds a carriage return"),
        (13, " 0x0002c90300010011=full;\n", "line 14: expected “# tenant"),
        (13, " 0x0002c90300010011=full;\n# end", "line 14: “# end” stands before the end"),
        (12, " 0x0002c90300010001=full,\0", "line 12: the line holds a NUL byte"),
        (11, "# server srv-é, 2 ports", "line 11: the line holds a byte that is not ASCII"),
    ],
)
def test_edits_are_refused_where_they_are(line, text, says):
    with pytest.raises(InvalidFile) as refusal:
        parse_strict(edited(line, text))
    assert str(refusal.value).startswith(says)
    assert refusal.value.line == int(says.split(":")[0].removeprefix("line "))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "the file is empty"),
        (b"\n", "cut short"),
        (b"# end", "cut short"),
        (b"# end\n", "expected “# FabricUI"),
        (b"\xef\xbb\xbf" + SAMPLE, "not ASCII"),
        (SAMPLE.replace(b"\n", b"\r\n"), "line 1: the line holds a carriage return"),
        (SAMPLE + b"\n", "cut short"),
        (SAMPLE + SAMPLE, "“# end” stands before the end"),
        (SAMPLE[:-1] + b" \n", "cut short"),
        (b"\n" + SAMPLE, "line 1: expected"),
    ],
)
def test_other_bytes_are_refused(data, says):
    with pytest.raises(InvalidFile, match=says):
        parse_strict(data)


TWO = render(
    table(
        partition(INFERENCE, "inference", "acme", guid(1)),
        partition(TRAINING, "training", "acme", guid(1), guid(2)),
        labels={guid(1): "srv-001", guid(2): "srv-002"},
    ),
    Header("lab", 1),
).decode()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("training=0x2c41", "training=0x0044", "line 13: P_Key 0x0044 stands twice or out of order"),
        ("inference=0x0044", "inference=0x2c42", "line 13: P_Key 0x2c41 stands twice or out of order"),
        ("training=", "Inference=", "line 13: two partitions are called Inference"),
        ("server srv-002", "server srv-001", "this is not what FabricUI writes"),
        ("# server srv-002, 1 port\n", "# no server, 1 port\n# server srv-002, 1 port\n", "expected a member"),
    ],
)
def test_partitions_that_contradict_each_other_are_refused(old, new, says):
    assert TWO.count(old) == 1
    parse_strict(TWO.encode())
    with pytest.raises(InvalidFile, match=says):
        parse_strict(TWO.replace(old, new).encode())


def test_a_port_stands_under_one_server():
    other = TWO.replace("# server srv-001, 1 port", "# server srv-009, 1 port", 1)
    with pytest.raises(InvalidFile, match="two servers: srv-009 and srv-001"):
        parse_strict(other.encode())


def test_digest_is_of_the_bytes():
    assert digest(SAMPLE) == hashlib.sha256(SAMPLE).hexdigest()


def test_table_digest_counts_what_reaches_a_port():
    value = one_tenant()
    facts = "\n".join(
        [f"0x2c41 {guid(1)} full", f"0x2c41 {guid(0x11)} full", f"0x7fff {SM1} full", f"0x7fff {SM2} full"]
    )
    assert table_digest(value) == hashlib.sha256(facts.encode()).hexdigest()
    ports = (guid(1), guid(0x11))
    same = table(partition(TRAINING, "renamed", "other", *ports), labels={guid(1): "renamed"})
    assert table_digest(same) == table_digest(value)
    different = [
        table(partition(PKey(0x2C42), "training", "acme", *ports)),
        table(partition(TRAINING, "training", "acme", guid(1))),
        table(partition(TRAINING, "training", "acme", *ports, membership=LIMITED)),
        table(partition(TRAINING, "training", "acme", *ports, membership=FULL, ipoib=True)),
        table(partition(TRAINING, "training", "acme", *ports), sm_ports=(SM1,)),
    ]
    assert len({table_digest(value), *map(table_digest, different)}) == 6
