"""The second witness: text of the diagnostic programs, as they really print it."""

import pytest

from subnet.diagnostics import parse_ibnetdiscover, parse_sminfo, parse_smpquery_pkeys
from subnet.errors import InvalidListing
from subnet.guid import GUID
from subnet.observed import SeenSM
from tests.subnet.fabrics import DATA


def text(name: str) -> str:
    return (DATA / "diagnostics" / name).read_text()


def test_sminfo_names_the_master_and_the_standby():
    master, standby = GUID("0x0210fa1000000001"), GUID("0x0210fa1000000051")
    assert parse_sminfo(text("sminfo-master.txt")) == SeenSM(master, 1, "MASTER", 5, 269)
    assert parse_sminfo(text("sminfo-standby.txt")) == SeenSM(standby, 9, "STANDBY", 1, 97)


@pytest.mark.parametrize(
    "answer",
    [
        "sminfo: iberror: failed: query",
        "",
        "sminfo: sm lid 1 sm guid 0x2, activity count 1 priority 1 state 9 SMINFO_ODD",
        "sminfo: sm lid 1 sm guid 0x0, activity count 1 priority 1 state 3 SMINFO_MASTER",
    ],
)
def test_sminfo_without_an_answer_is_an_error(answer):
    with pytest.raises(InvalidListing):
        parse_sminfo(answer)


def test_smpquery_pkeys_by_index():
    table = parse_smpquery_pkeys(text("smpquery-pkeys-64.txt"))
    assert table.pkeys == {0: 0x7FFF, 1: 0xAC41, 2: 0x0044}
    assert table.capacity == 64
    assert parse_smpquery_pkeys(text("smpquery-pkeys-switch-8.txt")).capacity == 8


def test_smpquery_pkeys_in_the_second_block():
    rows = [f"{first:4}: " + " ".join(["0x0000"] * 8) for first in range(0, 64, 8)]
    rows[5] = "  40: 0x0000 0x8001 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000"
    assert parse_smpquery_pkeys("\n".join([*rows, "64 pkeys capacity for this port"])).pkeys == {41: 0x8001}


def test_smpquery_cut_short_is_an_error():
    whole = text("smpquery-pkeys-64.txt")
    with pytest.raises(InvalidListing, match="cut short"):
        parse_smpquery_pkeys(whole[: whole.index("64 pkeys")])
    with pytest.raises(InvalidListing, match="Row 8"):
        parse_smpquery_pkeys(whole.replace("   8:", "  16:", 1))


def test_ibnetdiscover_counts_ports_of_hcas():
    found = parse_ibnetdiscover(text("ibnetdiscover-six-hcas.txt"))
    assert len(found.ca_ports) == 6
    assert found.ca_ports[GUID("0x0210fa1000000051")] == GUID("0x0210fa1000000050")
    assert (len(found.cas), len(found.switches), len(found.routers)) == (6, 3, 0)


def test_ibnetdiscover_on_an_odd_fabric():
    found = parse_ibnetdiscover(text("ibnetdiscover-odd-fabric.txt"))
    assert (len(found.cas), len(found.switches), len(found.routers)) == (12, 4, 1)
    assert len(found.ca_ports) == 13
    assert found.ca_ports[GUID("0x0210fa0c00010002")] == found.ca_ports[GUID("0x0210fa0c00010001")]


def test_a_lone_hca_has_a_node_and_no_port():
    found = parse_ibnetdiscover(text("ibnetdiscover-lone-ca.txt"))
    assert (len(found.cas), found.ca_ports) == (1, {})


def test_what_is_no_listing_is_an_error():
    with pytest.raises(InvalidListing):
        parse_ibnetdiscover("ibnetdiscover: iberror: failed: discover failed\n")
