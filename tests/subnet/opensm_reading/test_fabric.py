"""Which end ports OpenSM finds on a topology given as text."""

import pytest

from subnet.errors import InvalidListing
from subnet.guid import GUID
from subnet.opensm_reading import EndPort, Fabric

NET = """\
# a comment
switchguid=0xe1(e1)
Switch\t4 "S-00000000000000e1"\t\t# "leaf \\"one\\"" enhanced port 0 lid 0 lmc 0
[1]\t"H-0000000000000010"[2](12) \t\t# "one" lid 0 4xEDR
[2][ext 7]\t"S-00000000000000e2"[3]\t\t# "leaf2" lid 0 4xEDR
[3]\t"R-00000000000000f0"[1]

caguid=0x10
Ca\t2 "H-0000000000000010"\t\t# "one"
[2](99) \t"S-00000000000000e1"[1]\t\t# lid 0 lmc 0 "leaf" lid 0 4xEDR

Switch\t4 "S-00000000000000e2"\t\t# "leaf2"

Rt\t2 "R-00000000000000f0"\t\t# "router"

Ca\t1 "H-0000000000000020"\t\t# "alone, no link"

Ca\t1 "H-0000000000000030"\t\t# "an island"
[1]\t"H-0000000000000040"[1]

Hca\t1 "H-0000000000000040"\t\t# "an island too"
"""
SM = GUID("0x12")


def test_the_end_ports_that_links_lead_to():
    fabric = Fabric.from_net(NET, sm_port=SM)
    assert fabric.ports == {
        port.guid: port
        for port in (
            EndPort(GUID("0x12"), GUID("0x10"), "CA", 64, "one"),
            EndPort(GUID("0xe1"), GUID("0xe1"), "SW", 8, 'leaf \\'),
            EndPort(GUID("0xe2"), GUID("0xe2"), "SW", 8, "leaf2"),
            EndPort(GUID("0xf1"), GUID("0xf0"), "RT", 64, "router"),
        )
    }  # fmt: skip
    assert fabric.sm_port == SM


def test_port_guids_may_be_taken_from_the_brackets():
    fabric = Fabric.from_net(NET, sm_port=GUID("0x99"), port_guids="listed")
    assert {"0x0000000000000099", "0x00000000000000f1"} < set(fabric.ports)


def test_an_island_of_its_own():
    fabric = Fabric.from_net(NET, sm_port=GUID("0x31"))
    assert set(fabric.ports) == {"0x0000000000000031", "0x0000000000000041"}


@pytest.mark.parametrize(
    ("text", "sm", "words"),
    [
        ("", "0x12", "names no node"),
        ("garbage\0\n[1] x", "0x12", "names no node"),
        (NET, "0x10", "no connected end port 0x0000000000000010"),
        (NET, "0x21", "no connected end port 0x0000000000000021"),
        ('Ca 1 "node"', "0x12", "Line 1 of the topology names a node without a GUID"),
        ('Ca 1 "H-0000000000000000"', "0x12", "Line 1 of the topology"),
    ],
)
def test_a_topology_that_says_nothing(text, sm, words):
    with pytest.raises(InvalidListing, match=words):
        Fabric.from_net(text, sm_port=GUID(sm))
