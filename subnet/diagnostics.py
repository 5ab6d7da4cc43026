"""Text of sminfo, smpquery and ibnetdiscover as values: a second witness beside our own table reader.

Formats: ground truth, OpenSM, 8. NodeDescriptions in these texts are untrusted; no line is recognised by them.
"""

import re
from dataclasses import dataclass

from subnet.errors import InvalidListing
from subnet.guid import GUID
from subnet.observed import SeenSM

_STATES = {
    "SMINFO_NOTACT": "NOTACTIVE",
    "SMINFO_DISCOVER": "DISCOVERING",
    "SMINFO_STANDBY": "STANDBY",
    "SMINFO_MASTER": "MASTER",
}
_SMINFO = re.compile(
    r"sminfo: sm lid (\d+) sm guid (0x[0-9a-f]+), activity count (\d+) priority (\d+) state \d+ (SMINFO_[A-Z]+)"
)
_PKEY_ROW = re.compile(r"\s*(\d+):((?: 0x[0-9a-f]{4})+)\s*\Z")
_PKEY_CAPACITY = re.compile(r"(\d+) pkeys capacity for this port\s*\Z")
_NODE = re.compile(r'(Ca|Switch|Rt)\t(\d+) "([HSR])-([0-9a-f]{1,16})"')
_END_PORT = re.compile(r"\[(\d+)\](?:\[ext \d+\])?\(([0-9a-f]{1,16})\)\s")


@dataclass(frozen=True, slots=True)
class PKeyTable:
    """One port's table as `smpquery pkeys` prints it: index → 16-bit entry without empty slots, and its size."""

    pkeys: dict[int, int]
    capacity: int


@dataclass(frozen=True, slots=True)
class Discovered:
    """What `ibnetdiscover` walked: connected CA ports (port GUID → node GUID), and the nodes of each type.

    A CA that stands alone has a node and no connected port.
    """

    ca_ports: dict[GUID, GUID]
    cas: frozenset[GUID]
    switches: frozenset[GUID]
    routers: frozenset[GUID]


def parse_sminfo(text: str) -> SeenSM:
    """The SM that answered `sminfo`; raise InvalidListing when none did."""
    match = _SMINFO.search(text)
    if match is None or match[5] not in _STATES or not int(match[2], 16):
        raise InvalidListing(f"This is no answer of sminfo: “{text.strip()[:80]}”.")
    return SeenSM(
        guid=GUID(match[2]),
        lid=int(match[1]),
        state=_STATES[match[5]],
        priority=int(match[4]),
        activity=int(match[3]),
    )


def parse_smpquery_pkeys(text: str) -> PKeyTable:
    """The table that `smpquery pkeys` printed; raise InvalidListing when rows are missing or it ends early."""
    pkeys: dict[int, int] = {}
    slots = 0
    for line in text.splitlines():
        row = _PKEY_ROW.match(line)
        if row:
            if int(row[1]) != slots:
                raise InvalidListing(f"Row {slots} is missing in the answer of smpquery pkeys.")
            for number in row[2].split():
                if int(number, 16):
                    pkeys[slots] = int(number, 16)
                slots += 1
        elif end := _PKEY_CAPACITY.match(line):
            return PKeyTable(pkeys=pkeys, capacity=int(end[1]))
    raise InvalidListing("The answer of smpquery pkeys has no capacity line: it failed or was cut short.")


def parse_ibnetdiscover(text: str) -> Discovered:
    """The nodes and connected CA ports that `ibnetdiscover` printed; raise InvalidListing when it printed none."""
    nodes: dict[str, set[GUID]] = {"Ca": set(), "Switch": set(), "Rt": set()}
    ca_ports: dict[GUID, GUID] = {}
    current: GUID | None = None
    for line in text.split("\n"):  # a description may hold other line ends, and must begin no line
        if node := _NODE.match(line):
            guid = GUID(f"0x{node[4]}")
            nodes[node[1]].add(guid)
            current = guid if node[1] == "Ca" else None
        elif current is not None and (port := _END_PORT.match(line)):
            ca_ports[GUID(f"0x{port[2]}")] = current
    if not any(nodes.values()):
        raise InvalidListing("ibnetdiscover printed no node: it failed, or this is not its output.")
    return Discovered(
        ca_ports=ca_ports,
        cas=frozenset(nodes["Ca"]),
        switches=frozenset(nodes["Switch"]),
        routers=frozenset(nodes["Rt"]),
    )
