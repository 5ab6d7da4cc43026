"""The fabric a file is read for: its end ports and the port the SM is bound to."""

from collections.abc import Mapping
from dataclasses import dataclass

from subnet.guid import GUID
from subnet.observed import NodeType, ObservedFabric

IBSIM_CAPACITY: Mapping[NodeType, int] = {"CA": 64, "SW": 8, "RT": 64}


@dataclass(frozen=True, slots=True)
class EndPort:
    """One end port: a CA port, a switch's port 0 or a router port. `capacity` is its P_Key table's size."""

    guid: GUID
    node_guid: GUID
    node_type: NodeType
    capacity: int = 64
    label: str = ""


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
    def from_net(cls, text: str, *, sm_port: GUID) -> "Fabric":
        """The end ports of ibnetdiscover or ibsim text; raise InvalidListing when it holds none or lacks the SM's."""
        raise NotImplementedError
