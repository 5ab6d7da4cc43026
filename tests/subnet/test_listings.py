"""Every text of the field's cases gives the result written down for it, and what those results must say."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subnet.errors import InvalidListing
from subnet.guid import GUID
from subnet.listing import Kind
from subnet.listing_readers import guess_kind, read
from subnet.node_description import NodeClass, hint
from tests.subnet.fabrics import DATA

LISTINGS = DATA / "listings"
KINDS = {
    "B04": Kind.IBSTAT,
    "B12": Kind.NODE_DESCRIPTIONS,
    "B15": Kind.GUIDS,
    "B16": Kind.IBNETDISCOVER,
    "B23": Kind.IBNETDISCOVER,
    "B25": Kind.IBDEV2NETDEV,
    "B28": Kind.RDMA_LINK,
    "B39": Kind.IBHOSTS,
    "ibnetdiscover-p": Kind.IBNETDISCOVER_P,
}


def text(name):
    (found,) = LISTINGS.glob(f"{name}-*.txt")
    return found.read_text(encoding="utf-8")


def listing(name):
    return read(text(name), KINDS[name])


def candidates(name):
    return [str(port.guid) for port in listing(name).candidates()]


@pytest.mark.parametrize("name", KINDS)
def test_a_case_gives_the_json_written_down_for_it(name):
    assert listing(name).to_json() == json.loads((LISTINGS / f"{name}.expected.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", [name for name in KINDS if name != "B12"])  # free text can be anything
def test_the_program_is_found_out(name):
    assert guess_kind(text(name)) is KINDS[name]


def test_b04_zero_guids_are_ethernet_and_are_not_kept():
    found = listing("B04").ports
    assert [(port.link_layer, port.guid) for port in found] == [
        ("InfiniBand", GUID("0x0210fa0300b40000")),
        ("Ethernet", None),
        ("Ethernet", None),
    ]
    assert candidates("B04") == ["0x0210fa0300b40000"]


def test_b12_each_description_hints_at_what_the_case_says():
    lines = [line for line in text("B12").splitlines() if not line.startswith("#")]
    for line in lines:
        description, _, wanted = line.removeprefix("|").partition("| => ")
        found = hint(description)
        if wanted.startswith("switch "):
            assert found.name == wanted.removeprefix("switch ")
            assert found.node_class is NodeClass.SWITCH
        elif wanted.startswith("none"):
            assert found.name is None, line
        else:
            assert (found.name, found.node_class) == (wanted, NodeClass.HOST), line
        for word in ("aggregation node", "factory default", "placeholder", "empty"):
            assert (word in wanted) == (found.node_class.value == word), line
    assert len(lines) == 12


def test_b15_one_normaliser():
    wanted = [line.split("\t") for line in text("B15").splitlines() if not line.startswith("#")]
    for one, (spelling, canonical) in zip(listing("B15").spellings, wanted, strict=True):
        assert one.text == spelling
        if canonical.startswith("ERR"):
            assert one.guid is None, spelling
            assert one.error, spelling
        else:
            assert one.guid == canonical.split(" ")[0], spelling


def test_b16_counts_servers_extenders_and_shared_names():
    found = listing("B16").to_json()
    assert (len(found["cas"]), found["servers_at_most"], len(found["switches"]), len(found["routers"])) == (
        12,
        11,
        4,
        1,
    )
    assert found["no_servers"] == ["0x0210fa0c000b0000"]
    assert "0x0210fa0c000b0001" not in candidates("B16")
    assert len(candidates("B16")) == 12  # eleven servers, one of which has two ports
    assert sorted(found["extenders"]) == ["0x0210fa0b00030000", "0x0210fa0b00040000"]
    assert found["shared_names"] == ["Obsidian Longbow C400 - LBC4xxxxx"]
    assert found["manageable_port_0"] == ["0x0210fa0b00010000"]


def test_both_forms_of_ibnetdiscover_say_the_same():
    def said(name):
        return {port.guid: (port.number, port.leaf, port.description, port.why_not) for port in listing(name).ports}

    assert said("B16") == said("ibnetdiscover-p")


def test_b23_a_lone_node_is_a_failed_scan_and_no_empty_fabric():
    assert "says nothing about the fabric" in listing("B23").failed
    assert candidates("B23") == []
    lone = "CA     0  1 0x0210fa0300c70000 4x SDR                                    'gb-n01-c1 HCA-1'\n"
    assert read(lone).failed is not None


def test_b25_interface_names_are_hints_only():
    found = [(port.device, port.netdev, port.link_layer) for port in listing("B25").ports]
    assert found == [
        ("mlx5_0", "ib0", None),
        ("mlx5_1", "ibp65s0", None),
        ("mlx5_2", "ib2", None),
        ("mlx5_3", "ib3", None),
        ("mlx5_bond_0", "bond0", None),
    ]
    assert candidates("B25") == []


def test_b28_text_tells_ethernet_and_lids_are_decimal():
    found = [(port.device, port.number, port.link_layer, port.lid, port.sm_lid) for port in listing("B28").ports]
    assert found == [
        ("mlx5_0", 1, "InfiniBand", 13399, 49151),
        ("mlx5_4", 1, "Ethernet", None, None),
        ("ibp65s0", 1, "InfiniBand", None, None),
        ("ibp65s0", 1, None, None, None),  # an older tool's JSON leaves out what would tell
        ("ibp65s0", 1, "InfiniBand", 21, 1),
    ]


def test_b39_names_node_guids_and_no_port():
    found = listing("B39")
    assert found.ports == ()
    assert len(found.nodes) == 12
    assert "node GUID" in found.findings[0]
    ports = listing("B16").ports_of_node()
    assert ports[GUID("0x0210fa0c00010000")] == [GUID("0x0210fa0c00010001"), GUID("0x0210fa0c00010002")]
    assert {node.guid for node in found.nodes} == set(ports)


@pytest.mark.parametrize("name", [name for name in KINDS if KINDS[name] not in (Kind.NODE_DESCRIPTIONS, Kind.GUIDS)])
def test_a_line_that_fits_nothing_is_an_error_with_its_number(name):
    lines = text(name).rstrip("\n").split("\n")
    with pytest.raises(InvalidListing, match=f"Line {len(lines) + 1}"):
        read("\n".join([*lines, "Segmentation fault"]), KINDS[name])


@pytest.mark.parametrize("kind", [Kind.IBNETDISCOVER, Kind.IBNETDISCOVER_P])
def test_no_output_is_no_empty_fabric(kind):
    with pytest.raises(InvalidListing, match="failed"):
        read("", kind)


@pytest.mark.parametrize("answer", ["", "ibpanic: [1] main: failed\n", "\x00", "lid 7\n"])
def test_what_nobody_printed_is_not_guessed_at(answer):
    with pytest.raises(InvalidListing, match="--kind"):
        read(answer)


@pytest.mark.parametrize("answer", ['[{"ifname":1}]', "[[1]]", "[{", '[{"ifname":"a"},2]', "[" * 100_000])
def test_odd_json_of_rdma_link_is_an_error(answer):
    with pytest.raises(InvalidListing):
        read(answer, Kind.RDMA_LINK)


@given(st.sampled_from(Kind), st.text(max_size=200))
def test_any_text_is_read_or_refused(kind, answer):
    with contextlib.suppress(InvalidListing):
        json.dumps(read(answer, kind).to_json())


@given(st.text(max_size=64).filter(lambda text: "\n" not in text))  # other line ends are only characters
def test_a_description_is_never_taken_for_a_line(description):
    line = f'Ca\t: 0x0210fa0c000c0000 ports 1 "{description}"'
    (node,) = read(line, Kind.IBHOSTS).nodes
    assert (node.guid, node.description) == ("0x0210fa0c000c0000", description)
