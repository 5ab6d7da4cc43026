"""Listing: what a text from somebody's fabric or host says, whichever program printed it. Values only.

A listing is somebody's word: it names ports and never proves that they are there (only our own reading does).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from subnet.guid import GUID
from subnet.node_description import NodeClass, hint

LAST_UNICAST_LID = 0xBFFF  # IBA 4.1.3; 0xffff is the permissive LID, 0xc000 and up are multicast


class Kind(StrEnum):
    """Which program printed the text."""

    IBNETDISCOVER = "ibnetdiscover"
    IBNETDISCOVER_P = "ibnetdiscover-p"
    IBSTAT = "ibstat"
    RDMA_LINK = "rdma-link"
    IBHOSTS = "ibhosts"
    IBDEV2NETDEV = "ibdev2netdev"
    NODE_DESCRIPTIONS = "node-descriptions"
    GUIDS = "guids"


@dataclass(frozen=True, slots=True)
class ListedNode:
    """One node. `node_type` is CA, SWITCH or ROUTER; `port_0` is enhanced or base, for a switch."""

    guid: GUID
    node_type: str
    ports: int
    description: str
    system_image_guid: GUID | None = None
    port_0: str | None = None


@dataclass(frozen=True, slots=True)
class ListedPort:
    """One port of a channel adapter; what the text does not say is None or empty. `leaf` is (switch, its port)."""

    guid: GUID | None = None
    node_guid: GUID | None = None
    number: int | None = None
    device: str = ""
    link_layer: str | None = None  # "InfiniBand", "Ethernet"
    state: str = ""
    phys_state: str = ""
    lid: int | None = None
    sm_lid: int | None = None
    subnet_prefix: GUID | None = None
    rate: str = ""
    leaf: tuple[GUID, int] | None = None
    description: str = ""
    netdev: str = ""

    @property
    def why_not(self) -> str | None:
        """Why no partition can take the port as this text tells of it; None when one can."""
        if self.link_layer == "Ethernet":
            return "Ethernet port: only InfiniBand ports can be in a partition"
        if self.link_layer is None:
            return "the text does not say which link layer it has"
        if self.guid is None:
            return "the text does not name its port GUID"
        if hint(self.description).node_class is NodeClass.AGGREGATION_NODE:
            return "a switch's aggregation node is no server"
        return None

    def to_json(self) -> dict[str, Any]:
        """The port as the import command prints it."""
        leaf = None if self.leaf is None else {"switch": str(self.leaf[0]), "port": self.leaf[1]}
        return {
            "guid": _text(self.guid), "node_guid": _text(self.node_guid), "device": self.device, "port": self.number,
            "link_layer": self.link_layer, "state": self.state, "phys_state": self.phys_state, "lid": self.lid,
            "sm_lid": self.sm_lid, "subnet_prefix": _text(self.subnet_prefix), "rate": self.rate, "leaf": leaf,
            "netdev": self.netdev, "description": self.description, "host_hint": hint(self.description).name,
            "partition_candidate": self.why_not is None, "why_not": self.why_not,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spelling:
    """One line of a list of GUIDs: the GUID, or why it is none."""

    text: str
    guid: GUID | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """What one text says. `failed` tells why it shows no fabric: whoever keeps an inventory then keeps it as it is."""

    kind: Kind
    nodes: tuple[ListedNode, ...] = ()
    ports: tuple[ListedPort, ...] = ()
    spellings: tuple[Spelling, ...] = ()
    descriptions: tuple[str, ...] = ()
    failed: str | None = None
    findings: tuple[str, ...] = field(default=())

    def of_type(self, node_type: str) -> list[ListedNode]:
        """The nodes of one type, in order."""
        return [node for node in self.nodes if node.node_type == node_type]

    def candidates(self) -> list[ListedPort]:
        """The ports that a partition could take."""
        return [port for port in self.ports if port.why_not is None]

    def ports_of_node(self) -> Mapping[GUID, list[GUID]]:
        """Node GUID → the port GUIDs of that node, for those who pasted the wrong one."""
        found: dict[GUID, list[GUID]] = {}
        for port in self.ports:
            if port.guid is not None and port.node_guid is not None:
                found.setdefault(port.node_guid, []).append(port.guid)
        return found

    def to_json(self) -> dict[str, Any]:
        """The listing as the import command prints it."""
        cas, switches = self.of_type("CA"), self.of_type("SWITCH")
        no_servers = [ca for ca in cas if hint(ca.description).node_class is NodeClass.AGGREGATION_NODE]
        names = Counter(node.description for node in switches)
        return {
            "kind": self.kind.value,
            "failed": self.failed,
            "findings": list(self.findings),
            "cas": [_node(ca) for ca in cas],
            "servers_at_most": len(cas) - len(no_servers),
            "no_servers": [str(ca.guid) for ca in no_servers],
            "switches": [_node(switch) for switch in switches],
            "extenders": [str(switch.guid) for switch in switches if switch.ports == 2],
            "shared_names": sorted(name for name, count in names.items() if count > 1),
            "manageable_port_0": [str(switch.guid) for switch in switches if switch.port_0 == "enhanced"],
            "routers": [_node(router) for router in self.of_type("ROUTER")],
            "ports": [port.to_json() for port in self.ports],
            "spellings": [
                {"text": one.text, "guid": _text(one.guid), "error": one.error or None} for one in self.spellings
            ],
            "descriptions": [
                {"text": text, "class": hint(text).node_class.value, "name": hint(text).name}
                for text in self.descriptions
            ],
        }


def unicast(lid: int) -> int | None:
    """`lid` if a port can have it; 0 is none, 0xc000 and up are no port's."""
    return lid if 1 <= lid <= LAST_UNICAST_LID else None


def _node(node: ListedNode) -> dict[str, Any]:
    return {"guid": str(node.guid), "ports": node.ports, "description": node.description}


def _text(guid: GUID | None) -> str | None:
    return None if guid is None else str(guid)
