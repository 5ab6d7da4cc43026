"""What stands against each other when two servers claim one GUID: frozen when it opens, as plain JSON, for a person.

{"holder": side or null, "claimant": side, "fabric": {…} or null, "hints": [sentence]}; a side is a server with its last
report of the port. Everything in a side is that machine's own claim; the fabric's part is not.
"""

from collections.abc import Mapping
from typing import Any

from inventory.models import Port, Server
from subnet.errors import InvalidGUID
from subnet.guid import GUID
from subnet.witness import place_text

_SHOWN = ("hostname", "boot_id", "machine_id", "serial", "os", "agent_version")


def evidence(*, port: Port, claimant: Server, report: Mapping[str, Any], claim: Mapping[str, Any]) -> dict[str, Any]:
    """Both sides and the fabric at this moment. `port` with `hca.server` fetched; no query."""
    owner = port.server
    held = None if owner is None else _side(owner, owner.report or {}, _said_of(port.guid, owner.report or {}))
    claiming = _side(claimant, report, claim)
    fabric = _fabric(port)
    return {
        "holder": held,
        "claimant": claiming,
        "fabric": fabric,
        "hints": hints(held, claiming, fabric, is_missing=port.missing_since is not None),
    }


def hints(
    holder: Mapping[str, Any] | None,
    claimant: Mapping[str, Any],
    fabric: Mapping[str, Any] | None,
    *,
    is_missing: bool,
) -> list[str]:
    """What the evidence speaks for, in sentences; a person decides. Pure."""
    told: list[str] = []
    claim = claimant.get("port") or {}
    if holder is not None:
        if holder.get("machine_id") and holder.get("machine_id") == claimant.get("machine_id"):
            told.append("Both report the same machine id: one was installed from a copy of the other (cloned machine).")
        if holder.get("serial") and holder.get("serial") == claimant.get("serial"):
            told.append("Both report the same serial number: it is one chassis under two names, or a cloned machine.")
        if is_missing:
            told.append("The server that has the port reports without it by now: the card may have moved.")
        held = holder.get("port") or {}
        if not is_missing and all(str(side.get("state")).upper() == "ACTIVE" for side in (held, claim)):
            told.append("Both say that the port's link is up. A port is in one machine: one of the two is wrong.")
        if _guid(held.get("node_guid")) != _guid(claim.get("node_guid")) and claim.get("node_guid"):
            told.append("They name different HCAs (node GUIDs), so this is not one card that has moved.")
    if fabric is not None and fabric.get("node_guid"):
        if _guid(claim.get("node_guid")) != _guid(fabric["node_guid"]):
            told.append("The fabric shows the port on another HCA than the one that is claimed: the claim is wrong.")
        elif claim.get("lid") not in (None, fabric.get("lid")):
            told.append("The fabric shows the port at another LID than the one that is claimed.")
    return told


def _side(server: Server, report: Mapping[str, Any], port: Mapping[str, Any] | None) -> dict[str, Any]:
    shown = {name: report.get(name) for name in _SHOWN}
    return shown | {
        "server": server.public_id,
        "hostname": server.hostname,
        "reported_at": None if server.reported_at is None else server.reported_at.isoformat(),
        "port": None if port is None else dict(port),
    }


def _said_of(guid: GUID, report: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return next((one for one in report.get("ports", []) if _guid(one.get("port_guid")) == guid), None)


def _fabric(port: Port) -> dict[str, Any] | None:
    if port.seen_at is None:
        return None
    cable = None if port.leaf_guid is None or port.leaf_port is None else place_text((port.leaf_guid, port.leaf_port))
    return {
        "seen_at": port.seen_at.isoformat(),
        "state": port.seen_state,
        "lid": port.seen_lid,
        "sm_lid": port.seen_sm_lid,
        "node_guid": None if port.seen_node_guid is None else str(port.seen_node_guid),
        "description": port.seen_description,
        "cable": cable,
    }


def _guid(value: object) -> GUID | None:
    try:
        return GUID(str(value)) if value else None
    except InvalidGUID:
        return None
