"""The fabric generator: whatever the numbers, the cables fit and no GUID is given twice."""

import re
from collections import Counter

import pytest

from lab.fabric import SALTS, generate, net_text, simulator_limits
from subnet.guid import GUID

SIZES = [
    {"servers": 1, "hcas": 1},
    {"servers": 6, "hcas": 2},
    {"servers": 24, "hcas": 2},
    {"servers": 33, "hcas": 3, "leaf_width": 7, "spines": 5},
    {"servers": 500, "hcas": 8},
]


@pytest.fixture(params=SIZES, ids=lambda size: "x".join(str(number) for number in size.values()))
def size(request):
    return request.param


@pytest.fixture
def fabric(size):
    return generate(**size)


def cables_of_the_text(text):
    """(node, port) → (node, port), read from the .net text as the simulator reads it."""
    cables, node = {}, None
    for line in text.splitlines():
        if header := re.match(r'(?:Switch|Ca)\t?\s*\d+ "([^"]+)"', line):
            node = header[1]
        elif end := re.match(r'\[(\d+)\](?:\([0-9a-f]{16}\))?\t"([^"]+)"\[(\d+)\]', line):
            assert (node, int(end[1])) not in cables, "two cables in one port"
            cables[node, int(end[1])] = (end[2], int(end[3]))
    return cables


def test_every_cable_is_named_alike_from_both_ends(fabric):
    cables = cables_of_the_text(net_text(fabric))
    assert len(cables) == 2 * (fabric.end_ports + len(fabric.leaves) * len(fabric.spines))
    assert all(cables[far] == near for near, far in cables.items())


def test_the_simulator_finds_every_node_once(fabric):
    text = net_text(fabric)
    nodes = re.findall(r'^(Switch|Ca)\t?\s*\d+ "([^"]+)"', text, re.MULTILINE)
    assert Counter(kind for kind, _ in nodes) == {"Switch": len(fabric.switches), "Ca": fabric.end_ports}
    assert len({name for _, name in nodes}) == len(nodes)


def test_there_are_as_many_end_ports_as_hcas_and_two_managers(fabric, size):
    assert fabric.end_ports == size["servers"] * size["hcas"] + 2
    assert [len(server.hcas) for server in fabric.servers] == [size["hcas"]] * size["servers"]
    assert [len(manager.hcas) for manager in fabric.managers] == [1, 1]


def test_no_guid_is_given_twice_and_all_have_the_vendors_prefix(fabric):
    hcas = list(fabric.hcas())
    guids = [hca.node_guid for hca in hcas] + [hca.port_guid for hca in hcas]
    guids += [switch.guid for switch in fabric.switches]
    guids += [box.system_guid for box in fabric.servers + fabric.managers]
    assert len(set(guids)) == len(guids)
    assert all(guid.startswith("0x0002c903") for guid in guids)


def test_a_port_guid_is_the_node_guid_and_the_port_number(fabric):
    assert all(hca.port_guid.number == hca.node_guid.number + 1 for hca in fabric.hcas())


def test_the_hcas_of_a_server_share_its_system_image_guid(fabric):
    assert all({hca.system_guid for hca in box.hcas} == {box.system_guid} for box in fabric.servers)


def test_the_managers_sit_on_different_leaves(fabric):
    first, second = (manager.hcas[0].leaf_guid for manager in fabric.managers)
    assert first != second


def test_no_switch_has_more_ports_than_it_can_count(fabric):
    assert all(switch.ports <= 254 for switch in fabric.switches)
    assert all(port <= switch.ports for switch in fabric.switches for port, _, _ in switch.cables)


def test_the_same_numbers_give_the_same_fabric(size):
    assert generate(**size) == generate(**size)


def test_a_salt_changes_the_managers_guids_and_nothing_else():
    plain, salted = generate(servers=6), generate(servers=6, salt=SALTS - 1)
    assert plain.servers == salted.servers
    assert len({guid for box in plain.managers + salted.managers for guid in box.port_guids}) == 4
    assert all(hca.node_guid != box.system_guid for box in salted.managers for hca in box.hcas)


def test_the_simulator_is_told_sizes_that_hold_the_large_fabric():
    fabric = generate(servers=500, hcas=8)
    assert fabric.end_ports == 4002
    limits = dict(zip(*[iter(simulator_limits(fabric))] * 2, strict=True))
    assert int(limits["-N"]) >= fabric.end_ports + len(fabric.switches)
    assert int(limits["-S"]) >= len(fabric.switches)
    assert int(limits["-P"]) >= fabric.end_ports + sum(switch.ports + 1 for switch in fabric.switches)


@pytest.mark.parametrize(
    "numbers",
    [
        {"servers": 0},
        {"servers": 4, "hcas": 0},
        {"servers": 60000},
        {"servers": 4, "hcas": 2, "leaf_width": 10},
        {"servers": 4, "hcas": 2, "leaf_width": 0},
        {"servers": 4, "hcas": 2, "spines": 0},
        {"servers": 500, "hcas": 8, "leaf_width": 8},
    ],
)
def test_numbers_that_no_fabric_can_have_are_refused(numbers):
    with pytest.raises(ValueError, match=r"leaf|leaves|servers"):
        generate(**numbers)


def test_a_server_and_a_port_are_found_by_what_people_call_them():
    fabric = generate(servers=6, hcas=2)
    server = fabric.server("srv-004")
    assert fabric.hca_of_port(server.port_guids[1]) == server.hcas[1]
    with pytest.raises(LookupError, match="srv-001 to srv-006"):
        fabric.server("srv-007")
    with pytest.raises(LookupError, match="0x0002c903dead0001"):
        fabric.hca_of_port(GUID("0x0002c903dead0001"))
