"""What the table reader saw: every end port of the fabric with its P_Key table, and every subnet manager.

The reader runs on a manager host and answers in JSON lines; this file turns them into values and never believes half
an answer.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from subnet.errors import InvalidGUID, InvalidListing
from subnet.guid import GUID
from subnet.member import NodeType as NodeType
from subnet.pkey import entry_text


@dataclass(frozen=True, slots=True)
class LeafCopy:
    """The copy of a port's keys on the switch port that faces it, and whether the switch drops by it.

    `pkeys` is None when it was not read. `capacity` is SwitchInfo.PartitionEnforcementCap, None when unknown.
    """

    guid: GUID
    port: int
    lid: int
    pkeys: Mapping[int, int] | None
    enforce_in: bool
    enforce_out: bool
    capacity: int | None = None


@dataclass(frozen=True, slots=True)
class PortReading:
    """One end port as it was read. `pkeys` maps index to 16-bit entry and leaves empty slots out.

    An unreadable port has reading "unreadable", the cause in `error`, and an empty table that says nothing.
    """

    guid: GUID
    node_guid: GUID
    system_guid: GUID | None
    node_type: NodeType
    number: int
    lid: int
    state: str
    phys: str
    master_sm_lid: int
    is_sm: bool
    capacity: int
    pkeys: Mapping[int, int]
    leaf: LeafCopy | None
    description: str
    reading: Literal["read", "unreadable"]
    error: str | None

    @property
    def is_read(self) -> bool:
        """Whether this reading says anything about the port's table."""
        return self.reading == "read"


def has_link(reading: PortReading | None, *, leaf: GUID | None, switches: Collection[GUID]) -> bool | None:
    """Whether a discovery found a port's link, by what it read of the port; None where it learnt nothing of it.

    That is a port that answered and could not be read, and one that did not answer while `leaf`, the switch it hung
    on, did not either (`switches` are those that did), or while nobody knows which switch that is.
    """
    if reading is not None:
        return reading.state != "DOWN" if reading.is_read else None
    return False if leaf in switches else None


@dataclass(frozen=True, slots=True)
class SeenSM:
    """A subnet manager that answered; `state` is MASTER, STANDBY, DISCOVERING or NOTACTIVE."""

    guid: GUID
    lid: int
    state: str
    priority: int
    activity: int


@dataclass(frozen=True, slots=True)
class ObservedFabric:
    """One full answer of the reader. `topology` says where the ports came from: OpenSM's list or own discovery."""

    ports: Mapping[GUID, PortReading]
    sms: tuple[SeenSM, ...]
    topology: Literal["list", "discovery"]
    list_mtime_ns: int | None
    smps: int
    seconds: float
    timeouts: int

    @property
    def end_ports(self) -> dict[GUID, PortReading]:
        """The HCA ports, which are what people partition: no switch port 0, no router."""
        return {guid: port for guid, port in self.ports.items() if port.node_type == "CA"}

    @property
    def masters(self) -> tuple[SeenSM, ...]:
        """Every SM that says it is master; more than one is a broken subnet."""
        return tuple(sm for sm in self.sms if sm.state == "MASTER")


def parse_reading(data: bytes) -> ObservedFabric:
    """The fabric that the reader's JSON lines describe.

    Raises InvalidListing, with the line, when the answer is cut short, names a port twice, counts other than it
    lists, or cannot be read.
    """
    lines = data.split(b"\n")
    if lines.pop():
        raise InvalidListing("The reading is cut short: its last line has no end. Read the tables again.")
    if not lines:
        raise InvalidListing("The reading is empty. Read the tables again.")
    head, end = _object(lines[0], 1), _object(lines[-1], len(lines))
    if head.get("kind") != "reading" or head.get("version") != 1:
        raise InvalidListing("The reading does not begin as one of version 1. Install the reader again on that host.")
    if end.get("kind") != "end":
        raise InvalidListing("The reading is cut short: it has no end line. Read the tables again.")
    ports: dict[GUID, PortReading] = {}
    sms: list[SeenSM] = []
    known: dict[str, GUID] = {}
    for number, line in enumerate(lines[1:-1], start=2):
        value = _object(line, number)
        try:
            if value["kind"] == "port":
                port = _port(value, known)
                if port.guid in ports:
                    raise InvalidListing(
                        f"Line {number} of the reading names port {port.guid} again: two HCAs carry one GUID, or the "
                        "fabric changed while it was read. Find the two ports, then read again."
                    )
                ports[port.guid] = port
            elif value["kind"] == "sm":
                sms.append(_sm(value))
            else:
                raise InvalidListing(f"Line {number} of the reading is of an unknown kind: {str(value['kind'])[:40]}.")
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InvalidListing):
                raise
            raise InvalidListing(f"Line {number} of the reading cannot be understood: {error!r:.200}.") from error
    try:
        if end["ports"] != len(ports):
            raise InvalidListing(f"The reading announces {end['ports']} ports and lists {len(ports)}. Read again.")
        if head["topology"] not in ("list", "discovery"):
            raise InvalidListing(f"The reading names an unknown topology: {str(head['topology'])[:40]}.")
        return ObservedFabric(
            ports=ports,
            sms=tuple(sms),
            topology=head["topology"],
            list_mtime_ns=None if head["list_mtime_ns"] is None else int(head["list_mtime_ns"]),
            smps=int(end["smps"]),
            seconds=float(end["seconds"]),
            timeouts=int(end["timeouts"]),
        )
    except (KeyError, TypeError) as error:
        raise InvalidListing(f"The first or last line of the reading lacks {error}.") from error


def kept_lines(fabric: ObservedFabric) -> Iterator[str]:
    """One JSON line for each HCA port in order of GUID, for the files that people keep and compare.

    Keys: port_guid, lid, state, pkeys {index: entry}; an unreadable port says so in `reading`. No line end.
    """
    for guid, port in sorted(fabric.end_ports.items()):
        kept: dict[str, Any] = {
            "port_guid": guid,
            "lid": port.lid,
            "state": port.state,
            "pkeys": {str(index): entry_text(entry) for index, entry in sorted(port.pkeys.items())},
        }
        if not port.is_read:
            kept["reading"] = port.reading
        yield json.dumps(kept)


def _object(line: bytes, number: int) -> dict[str, Any]:
    """The JSON object on one line; raise InvalidListing when there is none."""
    try:
        value = json.loads(line)
    except ValueError as error:
        raise InvalidListing(f"Line {number} of the reading is no JSON: {error}. Read the tables again.") from error
    if not isinstance(value, dict):
        raise InvalidListing(f"Line {number} of the reading is no JSON object. Read the tables again.")
    return value


def _port(value: dict[str, Any], known: dict[str, GUID]) -> PortReading:
    """The port a line describes; `known` keeps GUIDs already checked, because nodes and leaves repeat."""
    leaf = value["leaf"]
    if value["node_type"] not in ("CA", "SW", "RT") or value["reading"] not in ("read", "unreadable"):
        raise ValueError(f"node_type {value['node_type']!r}, reading {value['reading']!r}")
    return PortReading(
        guid=GUID(value["port_guid"]),
        node_guid=_guid(value["node_guid"], known),
        system_guid=_guid_or_none(value["system_guid"], known),
        node_type=value["node_type"],
        number=int(value["port"]),
        lid=int(value["lid"]),
        state=str(value["state"]),
        phys=str(value["phys"]),
        master_sm_lid=int(value["master_sm_lid"]),
        is_sm=bool(value["is_sm"]),
        capacity=int(value["capacity"]),
        pkeys=_pkeys(value["pkeys"]),
        leaf=None if leaf is None else _leaf(leaf, known),
        description=str(value["description"]),
        reading=value["reading"],
        error=None if value["error"] is None else str(value["error"]),
    )


def _leaf(value: dict[str, Any], known: dict[str, GUID]) -> LeafCopy:
    capacity = value.get("capacity")
    return LeafCopy(
        guid=_guid(value["guid"], known),
        port=int(value["port"]),
        lid=int(value["lid"]),
        pkeys=None if value["pkeys"] is None else _pkeys(value["pkeys"]),
        enforce_in=bool(value["enforce_in"]),
        enforce_out=bool(value["enforce_out"]),
        capacity=None if capacity is None else int(capacity),
    )


def _sm(value: dict[str, Any]) -> SeenSM:
    return SeenSM(
        guid=GUID(value["port_guid"]),
        lid=int(value["lid"]),
        state=str(value["state"]),
        priority=int(value["priority"]),
        activity=int(value["activity"]),
    )


def _pkeys(value: dict[str, str]) -> dict[int, int]:
    """Index → entry; raise ValueError for an index or an entry that no table has."""
    table = {}
    for index_text, text in value.items():
        index, number = int(index_text), int(text, 16)
        if not (0 <= index < 0x10000 and 0 < number <= 0xFFFF and len(text) == 6):
            raise ValueError(f"P_Key table entry {index_text!r}: {text!r}")
        table[index] = number
    return table


def _guid(text: str, known: dict[str, GUID]) -> GUID:
    guid = known.get(text)
    if guid is None:
        guid = known[text] = GUID(text)
    return guid


def _guid_or_none(text: str | None, known: dict[str, GUID]) -> GUID | None:
    """A system image GUID: hardware may leave it zero, which means it has none."""
    try:
        return None if text is None else _guid(text, known)
    except InvalidGUID:
        return None
