"""The canonical table of hand-written files: every construct people use, the same keys for every port, or a refusal."""

from dataclasses import replace

import pytest

from subnet.adoption import safe_name, table_of
from subnet.adoption_proof import compare, explain, wider
from subnet.errors import InvalidTable
from subnet.guid import GUID
from subnet.observed import ObservedFabric, PortReading, SeenSM
from subnet.opensm_reading import EndPort, Fabric, read
from subnet.partitions_conf import Header, parse_strict, render
from subnet.pkey import Membership, PKey
from tests.subnet.by_hand import BY_HAND

HEADER = Header("lab", 1)
N = {number: GUID(f"0x0210fa0300a{number}0001") for number in range(1, 7)}  # node01 and node02 run the SMs
LEAVES = (GUID("0x0210fa0300e10000"), GUID("0x0210fa0300e20000"))
SM_PORTS = (N[1], N[2])


def fabric(sm_port: GUID = N[1]) -> Fabric:
    """Six HCA ports and two switches, seen by the SM on `sm_port`."""
    ports = {guid: EndPort(guid, guid, "CA") for guid in N.values()}
    ports |= {guid: EndPort(guid, guid, "SW", capacity=8) for guid in LEAVES}
    return Fabric(ports=ports, sm_port=sm_port)


def observed(data: bytes, *, sm_port: GUID = N[1], change: dict[GUID, dict[int, int]] | None = None) -> ObservedFabric:
    """The fabric as it is read when a freshly started OpenSM runs on `data`, but for the tables in `change`."""
    seen = fabric(sm_port)
    tables = {**read(data, seen).tables, **(change or {})}
    ports = {
        guid: PortReading(
            guid=guid, node_guid=port.node_guid, system_guid=None, node_type=port.node_type, number=1, lid=lid,
            state="ACTIVE", phys="LinkUp", master_sm_lid=1, is_sm=guid in SM_PORTS, capacity=port.capacity,
            pkeys=tables[guid], leaf=None, description="", reading="read", error=None,
        )
        for lid, (guid, port) in enumerate(seen.ports.items(), start=1)
    }  # fmt: skip
    sms = tuple(
        SeenSM(guid, lid=1, state="MASTER" if guid == sm_port else "STANDBY", priority=5, activity=1)
        for guid in SM_PORTS
    )
    return ObservedFabric(
        ports=ports, sms=sms, topology="discovery", list_mtime_ns=None, smps=1, seconds=0.1, timeouts=0
    )


def explained(text: str | bytes, **options):
    data = text.encode() if isinstance(text, str) else text
    change = options.pop("change", None)
    return explain(data, observed(data, change=change), master=N[1], sm_ports=SM_PORTS, header=HEADER, **options)


def as_written(table):
    """The table without the partitions that nobody is in: those do not stand in the file."""
    return replace(table, partitions=tuple(partition for partition in table.partitions if not partition.is_empty))


def rules(explanation) -> list[str]:
    return [obstacle.rule for obstacle in explanation.obstacles]


@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_every_construct_is_taken_over_without_changing_a_port(name: str):
    data = BY_HAND[name]
    explanation = explained(data)
    assert explanation.obstacles == ()
    assert explanation.differences == ()
    assert explanation.compared == 8
    ours = read(explanation.data, fabric())
    assert ours.rejection is None
    assert ours.tables == read(data, fabric()).tables  # indexes too
    assert parse_strict(explanation.data).table == as_written(explanation.adopted.table)
    # A line for a multicast group makes OpenSM log a warning wherever it stands; absent ports are the file's.
    told = {"mgid-line", "port-unknown", "not-programmed"}
    assert {finding.rule for finding in ours.findings if finding.severity != "ok"} <= told


@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_after_a_takeover_only_manager_hosts_ports_are_better_off(name: str):
    for changes in explained(BY_HAND[name]).after_takeover.values():
        for change in changes:
            assert change.guid in SM_PORTS
            assert (set(change.found) - set(change.written), set(change.written) - set(change.found)) == (
                {"0x7fff"},
                {"0xffff"},
            )


def test_the_check_finds_a_port_that_would_change():
    found = b"Default=0x7fff: ALL=full;\nA=0x10: 0x0210fa0300a30001=full;\n"
    differences = compare(found, found.replace(b"=full;\nA", b"=full;\nB").replace(b"a30001", b"a40001"), fabric())
    assert [str(difference) for difference in differences] == [
        "0x0210fa0300a30001: 0x8010, 0xffff → 0xffff",
        "0x0210fa0300a40001: 0xffff → 0x8010, 0xffff",
    ]


def test_absent_ports_and_those_of_tomorrow_are_compared_too():
    found = b"Default=0x7fff: ALL=full;\nA=0x10: 0x0210fa0300ff0001=full, ALL_SWITCHES=limited;\n"
    wide = wider(fabric(), read(found, fabric()))
    assert GUID("0x0210fa0300ff0001") in wide.ports
    assert {port.node_type for port in wide.ports.values()} == {"CA", "SW", "RT"}
    without = found.replace(b"0x0210fa0300ff0001=full, ", b"")
    assert [difference.guid for difference in compare(found, without, wide)] == ["0x0210fa0300ff0001"]
    assert compare(found, found.replace(b"ALL_SWITCHES", b"0x0210fa0300e10000,0x0210fa0300e20000"), wide)


def test_names_are_safe_and_unique_and_the_found_one_is_kept():
    partitions = explained(BY_HAND["A41"]).adopted.partitions
    assert [(str(one.pkey), one.name) for one in partitions] == [
        ("0x0010", "GPU_tenant-A_prod"),
        ("0x0011", "foraldralos_AO"),
        ("0x0012", "this-name-is-longer-than-thirty"),
    ]
    assert partitions[1].found_name == "föräldralös ÄÖ"
    twice = explained(
        "Default=0x7fff: ALL=full;\nA b=0x10: ALL=full;\na.b=0x11: ALL;\nA-B=0x12: ALL;\na_b=0x13: ALL;\n"
    )
    names = [one.name for one in twice.adopted.partitions]
    assert len({name.lower() for name in names}) == 4
    assert names[0] == "A_b"
    assert names[3] == "a_b-0013"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "pkey-0010"), ("0010", "pkey-0010"), ("Default", "pkey-0010"), ("ÄÖ!", "AO"), ("2nd floor", "p-2nd_floor"),
        ("___", "pkey-0010"), ("x" * 40, "x" * 31), ("日本", "pkey-0010"), ("0xab", "p-0xab"),
    ],
)  # fmt: skip
def test_a_safe_name(text: str, name: str):
    assert safe_name(text, PKey(0x10)) == name


def test_names_of_rows_are_used_and_names_of_retired_ones_are_not():
    text = "Default=0x7fff: ALL=full;\nOne=0x10: ALL;\nTwo=0x11: ALL;\n"
    chosen = explained(text, names={PKey(0x10): "training"}, reserved=["two"], tenants={PKey(0x11): "acme"})
    assert [one.name for one in chosen.adopted.table.partitions] == ["training", "Two-0011"]
    assert [one.tenant for one in chosen.adopted.table.partitions] == [None, "acme"]


def test_auto_numbered_keys_are_pinned_and_told():
    explanation = explained(BY_HAND["A22"])
    pinned = [one for one in explanation.adopted.partitions if one.is_auto_numbered]
    assert [(str(one.pkey), one.name) for one in pinned] == [("0x0001", "NewPartition"), ("0x0002", "Other")]
    assert [note.rule for note in explanation.notes].count("pinned") == 2
    assert b"NewPartition=0x0001" in explanation.data


def test_empty_partitions_are_kept_and_told_as_not_programmed():
    explanation = explained(BY_HAND["A46"])
    assert {(one.name, one.is_programmed) for one in explanation.adopted.partitions} == {
        ("Hollow", False),
        ("Nobody", False),
        ("Future", False),
    }
    future = explanation.adopted.table.partition(PKey(0x12))
    assert [member.guid for member in future.members] == ["0x0210fa0300ff0001"]


def test_groups_and_flags_are_carried_over():
    default = explained(BY_HAND["A06"]).adopted.table.default
    assert default.flags.ipoib
    assert (default.flags.mtu, default.flags.rate) == (4, 7)
    assert len(default.mgids) == 5
    assert default.is_open


def test_a_standby_that_is_limited_stays_so():
    explanation = explained(BY_HAND["A44"])
    assert explanation.adopted.table.sm_ports == (N[1],)
    assert explanation.adopted.table.default_of(N[2], "CA") == Membership.LIMITED


def test_a_later_keyword_wins_and_is_told():
    explanation = explained(f"Default=0x7fff: ALL=full;\nA=0x10: {N[3]}=limited, {N[4]}=full, ALL=full;\n")
    partition = explanation.adopted.table.partition(PKey(0x10))
    assert [member.guid for member in partition.members] == [N[4]]
    assert [(note.rule, note.line) for note in explanation.notes] == [("keyword-wins", 2)]
    assert explanation.differences == ()


@pytest.mark.parametrize(
    "members",
    [
        "SELF=full, ALL=limited", "ALL=limited, SELF=full", "ALL_CAS=full, SELF=limited", "SELF", "ALL_SWITCHES=full",
        "ALL_ROUTERS, ALL_CAS=full", "ALL, ALL_SWITCHES=full, ALL_ROUTERS=full", f"{N[1]}=limited, SELF=full",
        f"SELF=full, {N[1]}=limited", f"ALL=full, {N[3]}=limited, {LEAVES[0]}=limited", "NONE", "ALL=both",
        f"{LEAVES[0]}=full, ALL_SWITCHES=limited", f"{N[3]}, ALL_CAS=full, {N[3]}=limited",
    ],
)  # fmt: skip
@pytest.mark.parametrize("partition", ["Default=0x7fff", "A=0x10"])
def test_every_mix_of_keywords_gives_the_same_keys_or_is_refused(partition: str, members: str):
    explanation = explained(f"{partition}: {members};\n")
    if partition.startswith("Default") and rules(explanation):
        assert rules(explanation) == ["master-limited"]
        return
    if rules(explanation):
        assert rules(explanation) == ["takeover-would-change"]
        assert members == f"{N[1]}=limited, SELF=full"
        return
    assert explanation.differences == ()


@pytest.mark.parametrize(
    "text",
    [
        f"Default=0x7fff: ALL=full;\nA=0x10: {N[1]}=limited, SELF=full;\n",  # node01 would lose 0x10
        f"Default=0x7fff: ALL=full;\nA=0x10: {N[2]}=limited, SELF=full;\n",  # node02 would stay limited
        f"Default=0x7fff: ALL=limited, {N[2]}=limited, SELF=full;\n",  # and so would the new master in Default
        f"Default=0x7fff: ALL=full;\nA=0x10: SELF=full, {N[2]}=limited, ALL=limited;\n",
    ],
)
def test_what_a_takeover_alone_would_change_is_in_the_way(text: str):
    explanation = explained(text)
    worse = read(text.encode(), fabric(N[2])).tables != read(explanation.data, fabric(N[2])).tables
    assert worse == (rules(explanation) == ["takeover-would-change"])
    assert all(change.guid in SM_PORTS for changes in explanation.after_takeover.values() for change in changes)


@pytest.mark.parametrize("kind", ["CA", "SW", "RT"])
@pytest.mark.parametrize(
    "members", ["{0}=limited, ALL_CAS=full", "{0}=limited, ALL_SWITCHES=full", "SELF, {0}=full, ALL_ROUTERS, ALL_CAS"]
)
def test_an_absent_port_whose_kind_decides_is_in_the_way(members: str, kind):
    absent = GUID("0x0210fa0300ff0001")
    text = f"Default=0x7fff: ALL=full;\nA=0x10: {members.format(absent)};\n"
    assert rules(explained(text)) == ["absent-port"]
    # Behind the keywords, or before one that says the same of every kind, it is what it is.
    for mended in (f"ALL_CAS=full, {absent}=limited", f"{absent}=limited, ALL=full", f"{absent}=full, ALL_CAS=full"):
        text = f"Default=0x7fff: ALL=full;\nA=0x10: {mended};\n"
        explanation = explained(text)
        ports = {**fabric().ports, absent: EndPort(absent, absent, kind)}
        assert rules(explanation) == []
        assert compare(text.encode(), explanation.data, Fabric(ports=ports, sm_port=N[1])) == ()


@pytest.mark.parametrize(
    ("text", "rule", "mend"),
    [
        (b"Default=0x7fff: ALL=full;\r\n", "rejected", "reload the master"),
        (b"Default=0x7fff: ALL=full;\nA=0x10: node03=full;\n", "rejected", "reload the master"),
        (b"Default=0x7fff: ALL=limited;\n", "master-limited", "SELF=full"),
        (b"Default=0x7fff: ALL=full;\nA=0x10, indx0: ALL=full;\n", "indx0", "take a new look"),
        (b"Default=0x7fff: ALL=full;\nA=0x10, ipoib, rate=99: ALL=full;\n", "flag", "take a new look"),
    ],
)
def test_what_cannot_be_taken_over_is_refused_with_the_step_that_mends_it(text: bytes, rule: str, mend: str):
    explanation = explained(text)
    assert not explanation.is_adoptable
    found = next(obstacle for obstacle in explanation.obstacles if obstacle.rule == rule)
    assert mend in found.mend


def test_a_port_that_does_not_hold_what_the_file_says_stops_it():
    explanation = explained(BY_HAND["A44"], change={N[3]: {0: 0x7FFF, 1: 0x8099}})
    assert rules(explanation) == ["drift"]
    assert f"{N[3]}: 0x7fff, 0x8099 → 0x7fff, 0x8010" in explanation.obstacles[0].sentence
    assert explanation.compared == 7


def test_the_place_of_a_key_in_the_table_is_no_drift():
    """An SM that has run for long has holes; keys that stay keep their index whatever the file looks like."""
    explanation = explained(BY_HAND["A44"], change={N[3]: {0: 0x7FFF, 5: 0x8010}})
    assert explanation.is_adoptable


def test_a_port_holding_both_kinds_of_one_key_is_drift():
    text = f"Default=0x7fff: ALL=full;\nA=0x10: {N[3]}=both;\n"
    assert rules(explained(text)) == []
    assert rules(explained(text, change={N[3]: {0: 0xFFFF, 1: 0x8010, 2: 0x0010}})) == ["drift"]


def test_a_rejected_file_has_no_table():
    with pytest.raises(InvalidTable, match="rejects the file"):
        table_of(read(b"", fabric()), fabric(), sm_ports=SM_PORTS)


def test_what_is_adopted_can_be_rendered_again_and_again():
    for data in BY_HAND.values():
        table = explained(data).adopted.table
        assert type(table).from_json(table.to_json()) == table
        again = explained(render(table, HEADER))
        assert again.adopted.table == as_written(table)
