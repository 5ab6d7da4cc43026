"""The reader's answer as values, and every half answer refused."""

import json

import pytest

from subnet.errors import InvalidListing
from subnet.guid import GUID
from subnet.observed import LeafCopy, kept_lines, parse_reading
from tests.subnet.fabrics import LEAF, SM1, guid, port_line, reading_bytes

SM_LINE = {"kind": "sm", "port_guid": SM1, "lid": 1, "state": "MASTER", "priority": 5, "activity": 99}
SWITCH = port_line(port_guid=str(LEAF), node_guid=str(LEAF), node_type="SW", port=0, leaf=None, pkeys={"0": "0xffff"})


def test_a_reading_becomes_ports_and_managers():
    fabric = parse_reading(reading_bytes(port_line(), SWITCH, SM_LINE))
    port = fabric.ports[guid(1)]
    assert port.pkeys == {0: 0x7FFF, 2: 0xAC41}
    assert port.leaf == LeafCopy(LEAF, 5, 3, {0: 0x7FFF, 1: 0xAC41}, True, True, None)
    assert (port.lid, port.state, port.master_sm_lid, port.capacity, port.number) == (7, "ACTIVE", 1, 64, 1)
    assert port.is_read
    assert port.node_guid == GUID("0x0002c90300010000")
    assert [sm.guid for sm in fabric.masters] == [SM1]
    assert fabric.sms[0].activity == 99
    assert (fabric.topology, fabric.list_mtime_ns, fabric.smps, fabric.timeouts, fabric.seconds) == (
        "list", 123, 40, 1, 0.25,
    )  # fmt: skip


def test_end_ports_are_the_hcas_only():
    fabric = parse_reading(reading_bytes(port_line(), SWITCH))
    assert fabric.end_ports.keys() == {guid(1)}
    assert fabric.ports.keys() == {guid(1), LEAF}


def test_an_unreadable_port_says_why():
    line = port_line(reading="unreadable", error="timeout on PKeyTable block 1", pkeys={})
    port = parse_reading(reading_bytes(line)).ports[guid(1)]
    assert not port.is_read
    assert port.error == "timeout on PKeyTable block 1"


@pytest.mark.parametrize("system_guid", ["0x0000000000000000", None])
def test_hardware_may_have_no_system_image_guid(system_guid):
    assert parse_reading(reading_bytes(port_line(system_guid=system_guid))).ports[guid(1)].system_guid is None


def test_a_leaf_copy_may_be_unread_and_may_say_its_size():
    leaf = port_line()["leaf"] | {"pkeys": None, "capacity": 32}
    port = parse_reading(reading_bytes(port_line(leaf=leaf))).ports[guid(1)]
    assert port.leaf
    assert port.leaf.pkeys is None
    assert port.leaf.capacity == 32


def test_every_truncation_is_refused():
    whole = reading_bytes(port_line(), SM_LINE)
    for size in range(len(whole)):
        with pytest.raises(InvalidListing):
            parse_reading(whole[:size])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"port_guid": "0x0000000000000000"}, "Line 2"),
        ({"port_guid": 7}, "Line 2"),
        ({"node_guid": "x"}, "Line 2"),
        ({"node_type": "HCA"}, "Line 2.*node_type 'HCA'"),
        ({"reading": "maybe"}, "Line 2"),
        ({"lid": "seven"}, "Line 2"),
        ({"lid": None}, "Line 2"),
        ({"pkeys": {"0": "0x0000"}}, "Line 2.*0x0000"),
        ({"pkeys": {"0": "0x17fff"}}, "Line 2"),
        ({"pkeys": {"-1": "0x7fff"}}, "Line 2"),
        ({"pkeys": {"0": "-0x7ff"}}, "Line 2"),
        ({"pkeys": {"0": 32767}}, "Line 2"),
        ({"pkeys": None}, "Line 2"),
        ({"leaf": {"guid": str(LEAF)}}, "Line 2.*port"),
        ({"kind": "node"}, "Line 2.*unknown kind"),
    ],
)
def test_a_port_that_cannot_be_understood_is_refused_with_its_line(change, says):
    with pytest.raises(InvalidListing, match=says):
        parse_reading(reading_bytes(port_line(**change), ports=1))


def test_a_port_named_twice_is_refused():
    with pytest.raises(InvalidListing, match=f"Line 3.*{guid(1)} again"):
        parse_reading(reading_bytes(port_line(), port_line(lid=9)))


WHOLE = reading_bytes(port_line()).split(b"\n")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"\n", "no JSON"),
        (b"[]\n", "no JSON object"),
        (b"\n".join([WHOLE[0].replace(b'"version": 1', b'"version": 2'), *WHOLE[1:]]), "version 1"),
        (b"\n".join([WHOLE[1], *WHOLE[1:]]), "does not begin"),
        (b"\n".join([WHOLE[0], WHOLE[1], b""]), "no end line"),
        (b"\n".join([*WHOLE[:2], b"{", *WHOLE[2:]]), "Line 3"),
        (b"\n".join([*WHOLE[:2], b"\xff", *WHOLE[2:]]), "Line 3"),
        (b"\n".join([WHOLE[0].replace(b"list", b"guess", 1), *WHOLE[1:]]), "unknown topology"),
        (b"\n".join([WHOLE[0].replace(b'"list_mtime_ns"', b'"mtime"'), *WHOLE[1:]]), "list_mtime_ns"),
        (reading_bytes(port_line(), ports=2), "announces 2 ports and lists 1"),
        (reading_bytes(port_line(), smps=None), "first or last line"),
    ],
)
def test_a_reading_that_is_not_whole_is_refused(data, says):
    with pytest.raises(InvalidListing, match=says):
        parse_reading(data)


def test_kept_lines_are_sorted_hca_ports():
    second = port_line(port_guid=str(guid(2)), pkeys={"10": "0x8044", "2": "0xac41", "0": "0x7fff"}, state="INIT")
    unread = port_line(port_guid=str(guid(3)), pkeys={}, reading="unreadable", error="timeout")
    lines = [json.loads(line) for line in kept_lines(parse_reading(reading_bytes(unread, second, SWITCH, port_line())))]
    assert lines == [
        {"port_guid": guid(1), "lid": 7, "state": "ACTIVE", "pkeys": {"0": "0x7fff", "2": "0xac41"}},
        {"port_guid": guid(2), "lid": 7, "state": "INIT", "pkeys": {"0": "0x7fff", "2": "0xac41", "10": "0x8044"}},
        {"port_guid": guid(3), "lid": 7, "state": "ACTIVE", "pkeys": {}, "reading": "unreadable"},
    ]
