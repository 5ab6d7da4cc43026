"""judge: what one reported port means, given what the inventory already holds. Decides; writes nothing.

The rule above all: a GUID that stands for somebody else is a conflict for an operator, whatever the report says.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from inventory.models import HCA, Port, Server
from inventory.report import Report, ReportedPort
from subnet.guid import GUID


class Outcome(StrEnum):
    """What became of one reported port; the agent prints it, docs/registration.md explains it."""

    NEW = "new"  # stored, and it is this server's now
    UNCHANGED = "unchanged"
    CHANGED = "changed"
    CONFLICT = "conflict"  # its port or node GUID is somebody else's; nothing was stored but the claim
    ETHERNET = "ethernet"  # listed, never in a partition
    NO_GUID = "no_guid"  # InfiniBand, but its port GUID could not be read
    NO_LINK_LAYER = "no_link_layer"  # neither InfiniBand nor Ethernet, or not readable
    DUPLICATE = "duplicate"  # the report names its GUID for two ports; neither was stored


@dataclass(frozen=True, slots=True)
class Known:
    """What the inventory holds about a report: its server's rows, and others' rows with a GUID it names."""

    server: Server
    ports: Mapping[GUID, Port]  # with hca and hca.server fetched
    own_hcas: list[HCA]  # this server's; those that the report adds are put here as they are created
    others_hcas: Mapping[GUID, HCA]  # other servers', by node GUID
    manager_ports: Mapping[GUID, str]  # SM port GUID → manager host

    def own_hca(self, reported: ReportedPort) -> HCA | None:
        """This server's HCA with the reported node GUID; where that says nothing, the one with the same device.

        An HCA whose node GUID was unreadable until now is found by its device and gets its GUID.
        """
        for hca in self.own_hcas:
            if reported.node_guid is not None and hca.node_guid == reported.node_guid:
                return hca
        for hca in self.own_hcas:
            if hca.device == reported.device and (reported.node_guid is None or hca.node_guid is None):
                return hca
        return None

    def own_port(self, reported: ReportedPort) -> Port | None:
        """This server's row at the same node GUID and port number: for a report that has no port GUID to go by."""
        if reported.node_guid is None:
            return None
        for port in self.ports.values():
            hca = port.hca
            if (
                hca is not None
                and hca.server_id == self.server.pk
                and hca.node_guid == reported.node_guid
                and port.number == reported.number
            ):
                return port
        return None


@dataclass(frozen=True, slots=True)
class Judgement:
    """One reported port, what it means, and the row it concerns (None: there is none yet)."""

    reported: ReportedPort
    outcome: Outcome  # CHANGED stands for “this server's own”: comparing the fields makes it UNCHANGED where they agree
    sentence: str
    port: Port | None


def judge(report: Report, known: Known) -> tuple[Judgement, ...]:
    """Say of each reported port what it means, in the order of the report."""
    named = Counter(port.guid for port in report.ports if port.guid is not None and port.is_infiniband)
    twins = {guid for guid, count in named.items() if count > 1}
    return tuple(_judge(port, known, twins) for port in report.ports)


def _judge(reported: ReportedPort, known: Known, twins: Collection[GUID]) -> Judgement:
    def so(outcome: Outcome, sentence: str = "", port: Port | None = None) -> Judgement:
        return Judgement(reported, outcome, sentence, port)

    if reported.is_ethernet:
        return so(Outcome.ETHERNET, "Ethernet ports are listed, never in a partition.", known.own_port(reported))
    if not reported.is_infiniband:
        return so(Outcome.NO_LINK_LAYER, "The link layer is not known to be InfiniBand.", known.own_port(reported))
    if reported.guid is None:
        return so(Outcome.NO_GUID, "The port GUID could not be read.", known.own_port(reported))
    port = known.ports.get(reported.guid)
    owner = None if port is None else port.server
    if reported.guid in twins:
        return so(
            Outcome.DUPLICATE, f"The report names {reported.guid} for two ports.", port if _is(owner, known) else None
        )
    if owner is not None and not _is(owner, known):
        return so(Outcome.CONFLICT, f"Port {reported.guid} is registered to another server; an operator decides.", port)
    if reported.guid in known.manager_ports and owner is None:
        return so(Outcome.CONFLICT, f"Port {reported.guid} runs a subnet manager; no server can claim it.", port)
    if port is not None and port.subnet_id != known.server.subnet_id:
        return so(Outcome.CONFLICT, f"Port {reported.guid} is known in another subnet; an operator decides.", port)
    hca = None if reported.node_guid is None else known.others_hcas.get(reported.node_guid)
    if hca is not None:
        evidence = port or next((one for one in known.ports.values() if one.hca_id == hca.pk), None)
        return so(
            Outcome.CONFLICT,
            f"HCA {reported.node_guid} is registered to another server; an operator decides.",
            evidence,
        )
    sentence = ""
    if reported.subnet_prefix is not None and reported.subnet_prefix != known.server.subnet.prefix:
        sentence = f"The port is in another subnet (prefix {reported.subnet_prefix}), so no partition here can take it."
    elif reported.sm_lid == 0 and reported.state not in {"DOWN", ""}:
        sentence = "The port knows no subnet manager."
    return so(Outcome.NEW if owner is None else Outcome.CHANGED, sentence, port)


def _is(owner: Server | None, known: Known) -> bool:
    return owner is not None and owner.pk == known.server.pk


def fields_of(reported: ReportedPort) -> dict[str, Any]:
    """The columns of a Port that its server's report decides, with the report's values."""
    return {
        "number": reported.number,
        "link_layer": Port.LinkLayer.INFINIBAND,
        "state": reported.state,
        "phys_state": reported.phys_state,
        "rate_text": reported.rate_text,
        "rate_gbps": reported.rate_gbps,
        "lid": reported.lid,
        "sm_lid": reported.sm_lid,
        "subnet_prefix": reported.subnet_prefix,
        "missing_since": None,
    }
