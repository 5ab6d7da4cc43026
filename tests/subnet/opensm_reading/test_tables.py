"""At which index a key lands, what has no room, and both memberships at once: the first sweep of a fresh SM."""

import pytest

from subnet.opensm_reading import read
from subnet.opensm_reading.placement import place
from tests.subnet.opensm_reading.small import ALL, FABRIC, SM, default, keys, table


def tables(data: bytes, *ports: str, **options: bool) -> list[str]:
    reading = read(data, FABRIC, **options)
    return [table(reading, port) for port in ports]


def test_keys_land_in_byte_swapped_order_behind_default():
    data = b"A=0x10:0x21;B=0x0100:0x21;C=0x2:0x21=full;D=0x7f00:0x21;"
    assert tables(data, "n2") == ["7fff@0 0100@1 7f00@2 8002@3 0010@4"]


def test_what_has_no_room_is_dropped_in_that_order():
    data = b"".join(b"P=%d:ALL;\n" % number for number in range(1, 10))
    reading = read(data, FABRIC)
    assert table(reading, "sw") == "7fff@0 " + " ".join(f"{number:04x}@{number}" for number in range(1, 8))
    full = [one for one in reading.findings if one.rule == "table-full"]
    assert len(full) == 1
    assert "0x0008, 0x0009" in full[0].message


def test_indx0_takes_the_place_of_default():
    assert tables(b"A=0x10,indx0:0x21=full;B=0x20:0x21;", "n2", "n3") == ["8010@0 0020@1 7fff@2", "7fff@0"]


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"A=0x10,indx0:0x21;A=0x10:0x21;", "7fff@0 0010@1"),  # taken back by a later statement
        (b"A=0x10:0x21;A=0x10,indx0:ALL;", "0010@0 7fff@1"),
        (b"A=0x10,indx0:0x21;B=0x20,indx0:0x21;", "0020@0 0010@1 7fff@2"),  # the last one wins
        # ... and taking that one back does not bring the first one back.
        (b"A=0x10,indx0:0x21;B=0x20,indx0:0x21;B=0x20:0x21;", "7fff@0 0010@1 0020@2"),
        (b"Default=0x7fff,indx0:ALL;", "7fff@0"),
    ],
)
def test_which_indx0_holds(data, wanted):
    assert tables(data, "n2") == [wanted]


def test_indx0_of_a_rejected_file_still_moves_default():
    data = b"A=0x10,indx0:0x21;\nbad\n"
    assert tables(data, "n2", "n3") == ["ffff@1", "ffff@0"]
    assert tables(b"A=0x10,indx0:0x21;A=0x10:ALL\nbad\n", "n2") == ["ffff@0"]


def test_both_is_full_unless_opensm_allows_both():
    assert keys(b"A=0x10:0x21=both;", "n2") == ["8010"]
    assert tables(b"A=0x10:0x21=both;", "n2", allow_both_pkeys=True) == ["0010@1 8010@2 7fff@3"]


def test_with_both_allowed_a_limited_default_leaves_index_0_empty():
    assert tables(b"A=0x10:ALL=full;", "sm", "n2", allow_both_pkeys=True) == ["ffff@0 8010@1", "8010@1 7fff@2"]


@pytest.mark.parametrize(
    ("members", "wanted"),
    [
        (b"0x21=both,0x21=full", "8010"), (b"0x21=both,0x21", "0010"), (b"0x21,0x21=both", "0010 8010"),
        (b"0x21=both,ALL=full", "8010"), (b"ALL=both,ALL_CAS", "0010"), (b"ALL=full,SELF=both", "8010"),
    ],
)  # fmt: skip
def test_with_both_allowed_the_last_mention_wins_too(members, wanted):
    assert keys(b"A=0x10:" + members + b";", "n2", allow_both_pkeys=True) == [wanted]


def test_the_fallback_is_everybody_full():
    assert default(b"bad") == "rejected"
    assert tables(b"bad", *ALL) == ["ffff@0"] * 5
    assert tables(b"bad", *ALL, allow_both_pkeys=True) == ["ffff@0"] * 5


def test_default_itself_is_dropped_only_for_the_room_it_needs():
    placed = place([0x0001, 0x0002, 0x7FFF], capacity=2, index0=0x0001, allow_both_pkeys=False)
    assert (placed.table, placed.dropped) == ({0: 0x0001, 1: 0x0002}, (0x7FFF,))


def test_the_sm_port_limited_in_default_is_told_on_the_fabric():
    told = {one.rule for one in read(b"Default=0x7fff:ALL=full,%s=limited;" % SM.encode(), FABRIC).findings}
    assert "sm-limited-in-default" in told


def test_a_node_guid_is_told_with_the_port_to_write():
    found = [one for one in read(b"A=0x10:0x20;", FABRIC).findings if one.rule == "node-guid"]
    assert len(found) == 1
    assert "0x0000000000000021" in found[0].fix
