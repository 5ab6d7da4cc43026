"""The fabric a file is read for: its end ports and the port the SM is bound to."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from subnet.errors import InvalidGUID, InvalidListing
from subnet.guid import GUID
from subnet.member import NodeType
from subnet.observed import ObservedFabric

# NodeInfo.PartitionCap of ibsim's nodes; what a real HCA has is not in this text.
IBSIM_CAPACITY: Mapping[NodeType, int] = {"CA": 64, "SW": 8, "RT": 64}
PortGUIDs = Literal["counted", "listed"]

_TYPES: Mapping[str, NodeType] = {"Switch": "SW", "Ca": "CA", "Hca": "CA", "Rt": "RT"}
_NODE = re.compile(r'(Switch|Ca|Hca|Rt)\s+(\d+)\s*"([^"]*)"(.*)')
_GUID_LINE = re.compile(r"(?:switchguid|caguid|hcaguids?|rtguid)\s*=\s*(0x[0-9a-fA-F]{1,16})")
_LINK = re.compile(r'@?\[(\d+)\](?:\[ext \d+\])?(?:\(([0-9a-fA-F]{1,16})\))?\s*"([^"]*)"(?:\s*\[(\d+)\])?')
_NODE_ID = re.compile(r"[HSR]-([0-9a-fA-F]{1,16})\Z")
_LABEL = re.compile(r'#\s*"([^"]*)"')


@dataclass(frozen=True, slots=True)
class EndPort:
    """One end port: a CA port, a switch's port 0 or a router port. `capacity` is its P_Key table's size."""

    guid: GUID
    node_guid: GUID
    node_type: NodeType
    capacity: int = 64
    label: str = ""


@dataclass(frozen=True, slots=True)
class _Node:
    guid: GUID
    node_type: NodeType
    label: str
    ports: int


@dataclass(frozen=True, slots=True)
class Fabric:
    """Every end port that OpenSM discovers from `sm_port`."""

    ports: Mapping[GUID, EndPort]
    sm_port: GUID

    @classmethod
    def from_observed(cls, observed: ObservedFabric, *, sm_port: GUID) -> "Fabric":
        """The end ports of a reading of the tables."""
        return cls(
            ports={
                guid: EndPort(guid, port.node_guid, port.node_type, port.capacity, port.description)
                for guid, port in observed.ports.items()
            },
            sm_port=sm_port,
        )

    @classmethod
    def from_net(cls, text: str, *, sm_port: GUID, port_guids: PortGUIDs = "counted") -> "Fabric":
        """The end ports of ibnetdiscover or ibsim text that are connected with `sm_port`.

        A switch's port 0 has its node GUID. Port GUIDs of CAs and routers are "counted" as ibsim does, node GUID plus
        port number, or "listed" in the brackets as ibnetdiscover prints them. Table sizes are ibsim's: 64, and 8 for
        switches. Raises InvalidListing when the text holds no node, or no connected end port `sm_port`.
        """
        nodes, links, listed = _parse(text)
        if not nodes:
            raise InvalidListing("The topology names no node: it is no output of ibnetdiscover and no ibsim file.")
        found: dict[tuple[str, int], EndPort] = {}
        for name, number in sorted(links):
            node = nodes[name]
            if node.node_type == "SW":
                found[name, 0] = EndPort(node.guid, node.guid, "SW", IBSIM_CAPACITY["SW"], node.label)
            else:
                guid = listed.get((name, number)) if port_guids == "listed" else None
                guid = guid or _counted(node.guid, number)
                found[name, number] = EndPort(
                    guid, node.guid, node.node_type, IBSIM_CAPACITY[node.node_type], node.label
                )
        start = next((name for (name, _), port in found.items() if port.guid == sm_port), None)
        if start is None:
            raise InvalidListing(
                f"The topology has no connected end port {sm_port}. "
                "Name a port of it: an HCA's port is node GUID + port number, a switch's port 0 its node GUID."
            )
        reached = _reached(start, links)
        return cls(ports={port.guid: port for (name, _), port in found.items() if name in reached}, sm_port=sm_port)


_Links = dict[tuple[str, int], tuple[str, int]]


def _counted(node: GUID, number: int) -> GUID:
    try:
        return GUID(f"0x{(node.number + number) & 0xFFFFFFFFFFFFFFFF:016x}")
    except InvalidGUID as error:
        raise InvalidListing(f"Port {number} of node {node} in the topology has no possible port GUID.") from error


def _parse(text: str) -> tuple[dict[str, _Node], _Links, dict[tuple[str, int], GUID]]:
    """Nodes by their id, links in both directions between known nodes, and the port GUIDs in brackets."""
    nodes: dict[str, _Node] = {}
    wanted: _Links = {}
    listed: dict[tuple[str, int], GUID] = {}
    current: str | None = None
    guid_line: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            if match := _GUID_LINE.match(line):
                guid_line = match[1]
            elif match := _NODE.match(line):
                current = match[3]
                spelled = guid_line or _guid_of_id(current)
                guid_line = None
                if spelled is None:
                    raise InvalidListing(f"Line {number} of the topology names a node without a GUID: {line[:80]!r}.")
                label = _LABEL.search(match[4])
                nodes[current] = _Node(GUID(spelled), _TYPES[match[1]], label[1] if label else "", int(match[2][:4]))
            elif current is not None and (match := _LINK.match(line)):
                here = current, int(match[1][:4])
                if match[2] and int(match[2], 16):
                    listed[here] = GUID(f"0x{match[2]}")
                wanted[here] = match[3], int((match[4] or "1")[:4])
            elif not line.strip():
                current = None
        except InvalidGUID as error:
            raise InvalidListing(f"Line {number} of the topology: {error}") from error
    links: _Links = {}
    for here, there in wanted.items():
        if there[0] in nodes and here not in links and there not in links:
            links[here], links[there] = there, here
    return nodes, links, listed


def _guid_of_id(node_id: str) -> str | None:
    match = _NODE_ID.match(node_id)
    return f"0x{match[1]}" if match else None


def _reached(start: str, links: _Links) -> set[str]:
    """The nodes that links lead to from `start`."""
    peers: dict[str, set[str]] = {}
    for (name, _), (peer, _) in links.items():
        peers.setdefault(name, set()).add(peer)
    reached, waiting = {start}, [start]
    while waiting:
        for peer in peers.get(waiting.pop(), ()):
            if peer not in reached:
                reached.add(peer)
                waiting.append(peer)
    return reached
