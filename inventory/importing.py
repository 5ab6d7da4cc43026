"""What importing a listing would do to a subnet, given what the inventory holds. Reads rows; writes nothing.

A listing is a person's word. It adds ports that nobody knew and names beside them; it never confirms a port, never says
that the fabric showed it, and never moves one between servers or subnets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from inventory.models import HCA, ManagerHost, Port, Subnet
from subnet.guid import GUID
from subnet.listing import Kind, ListedPort, Listing

_CHUNK = 500


@dataclass(frozen=True, slots=True)
class Import:
    """What a listing means here. `new` and `described` are what --apply writes."""

    listing: Listing
    new: tuple[ListedPort, ...] = ()
    described: tuple[tuple[Port, str], ...] = ()  # unregistered ports whose description is another one now
    unchanged: tuple[GUID, ...] = ()
    elsewhere: tuple[GUID, ...] = ()  # known in another subnet; where they belong is a person's decision
    left_out: tuple[tuple[ListedPort, str], ...] = ()
    node_guids: Mapping[GUID, list[GUID]] = field(default_factory=dict)  # pasted node GUID → port GUIDs meant
    unknown: tuple[GUID, ...] = ()  # GUIDs without a port, and no node that is known

    def to_json(self) -> dict[str, Any]:
        """The import as the command prints it."""
        return {
            "new": [str(port.guid) for port in self.new],
            "described": {str(port.guid): text for port, text in self.described},
            "unchanged": [str(guid) for guid in self.unchanged],
            "in_another_subnet": [str(guid) for guid in self.elsewhere],
            "left_out": [
                {"device": port.device, "port": port.number, "guid": port.guid and str(port.guid), "why": why}
                for port, why in self.left_out
            ],
            "node_guids": {str(node): [str(guid) for guid in ports] for node, ports in self.node_guids.items()},
            "unknown": [str(guid) for guid in self.unknown],
        }


def compare(*, subnet: Subnet, listing: Listing, beside: Listing | None = None) -> Import:
    """Say what `listing` means for `subnet`; `beside` is another listing of the fabric that tells nodes from ports.

    A listing that shows no fabric means nothing here. Costs about two queries per 500 GUIDs.
    """
    if listing.failed is not None:
        return Import(listing)
    by_guid: dict[GUID, ListedPort] = {}
    left_out: list[tuple[ListedPort, str]] = []
    for port in listing.ports:
        if port.why_not is not None or port.guid is None:
            left_out.append((port, port.why_not or ""))
        elif port.guid in by_guid:
            left_out.append((port, f"{port.guid} stands in the text twice"))
        else:
            by_guid[port.guid] = port
    known = _known(by_guid)
    managers = set(ManagerHost.objects.filter(subnet=subnet).values_list("port_guid", flat=True))
    described, unchanged, elsewhere = [], [], []
    for guid, row in known.items():
        text = _label(by_guid[guid])
        if row.subnet_id != subnet.pk:
            elsewhere.append(guid)
        elif row.hca_id is None and text and row.description != text:
            described.append((row, text))
        else:
            unchanged.append(guid)
    pasted = [node.guid for node in listing.nodes] if listing.kind is Kind.IBHOSTS else []
    pasted += [one.guid for one in listing.spellings if one.guid is not None]
    node_guids, ports, unknown = _resolve(list(dict.fromkeys(pasted)), beside)
    return Import(
        listing=listing,
        new=tuple(port for guid, port in by_guid.items() if guid not in known and guid not in managers),
        described=tuple(described),
        unchanged=(*sorted(unchanged), *ports),
        elsewhere=tuple(sorted(elsewhere)),
        left_out=tuple(left_out),
        node_guids=node_guids,
        unknown=unknown,
    )


def _resolve(pasted: list[GUID], beside: Listing | None) -> tuple[dict[GUID, list[GUID]], list[GUID], tuple[GUID, ...]]:
    """Tell node GUIDs from port GUIDs. One that is both (one GUID for all, as some HCAs have) is a port's."""
    known = beside.ports_of_node() if beside is not None else {}
    ports = set(_known(pasted)) | {port.guid for port in (beside.ports if beside else ()) if port.guid is not None}
    nodes: dict[GUID, list[GUID]] = {}
    for chunk in _chunks(pasted):
        for hca in HCA.objects.filter(node_guid__in=chunk).prefetch_related("ports"):
            nodes[hca.node_guid] = sorted(port.guid for port in hca.ports.all())
    found: dict[GUID, list[GUID]] = {}
    for guid in pasted:
        meant = nodes.get(guid) or list(known.get(guid, ()))
        if guid not in ports and meant:
            found[guid] = meant
    rest = tuple(guid for guid in pasted if guid not in ports and guid not in found)
    return found, [guid for guid in pasted if guid in ports], rest


def _known(guids: Any) -> dict[GUID, Port]:
    found: dict[GUID, Port] = {}
    for chunk in _chunks(list(guids)):
        found |= {port.guid: port for port in Port.objects.filter(guid__in=chunk)}
    return found


def _chunks(guids: list[GUID]) -> list[list[GUID]]:
    return [guids[start : start + _CHUNK] for start in range(0, len(guids), _CHUNK)]


def _label(port: ListedPort) -> str:
    """The description as it is kept: printable, on one line, at most 64 characters."""
    return "".join(char if char.isprintable() else "?" for char in port.description.strip())[:64]


def row_of(subnet: Subnet, port: ListedPort) -> Port:
    """The row of a port that nobody knew: no HCA, not seen, not confirmed."""
    assert port.guid is not None  # noqa: S101  compare() lists no other
    return Port(subnet=subnet, guid=port.guid, number=port.number or 1, description=_label(port))
