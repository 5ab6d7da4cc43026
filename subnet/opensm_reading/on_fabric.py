"""What shows only on the fabric a file is read for: absent ports, node GUIDs, full tables."""

from collections.abc import Mapping

from subnet.guid import GUID
from subnet.opensm_reading.fabric import Fabric
from subnet.opensm_reading.log import Log
from subnet.opensm_reading.notes import shown
from subnet.opensm_reading.partitions import DEFAULT_KEY, PartitionState
from subnet.opensm_reading.placement import Placed
from subnet.opensm_reading.store import Store
from subnet.opensm_reading.tokens import LIMITED, SELF


def note(
    log: Log,
    store: Store,
    states: list[PartitionState],
    fabric: Fabric,
    placed: Mapping[GUID, Placed],
    programmed: frozenset[int],
) -> None:
    """Note what OpenSM, having taken the file, does not do as written; `programmed` are the P_Keys some port holds."""
    numbers = {guid.number for guid in fabric.ports}
    nodes: dict[int, list[GUID]] = {}
    for port in fabric.ports.values():
        nodes.setdefault(port.node_guid.number, []).append(port.guid)
    for state in states:
        for number, index in state.named.items():
            if number not in numbers and log.wants("port-unknown" if number not in nodes else "node-guid"):
                _absent(log, store, number, index, nodes.get(number))
        if state.key not in programmed and (state.named or state.scopes):
            log.add(
                "not-programmed", state.line, 1,
                f"Partition {state.key:#06x} “{shown(state.name)}” has no member on this fabric: it is not programmed "
                "on any port until one shows up.",
                "Nothing, if its ports are still to come; it is no drift.",
            )  # fmt: skip
        if state.key == DEFAULT_KEY and state.statements:
            _sm_in_default(log, store, state, fabric, placed)
    for guid, one in sorted(placed.items()):
        if one.dropped:
            keys = ", ".join(f"0x{entry:04x}" for entry in one.dropped)
            log.add(
                "table-full", 1, 1,
                f"Port {guid} has room for {fabric.ports[guid].capacity} P_Keys: OpenSM drops {keys} (ERR 0512).",
                "Take the port out of some partitions.",
            )  # fmt: skip
        if one.table.get(0, 0) & 0x7FFF != DEFAULT_KEY:
            log.add(
                "default-off-index-0", 1, 1,
                f"Port {guid} does not hold Default at index 0, where unprivileged programs look for it.",
                "Remove indx0, or allow_both_pkeys with a limited Default.",
            )  # fmt: skip


def _absent(log: Log, store: Store, number: int, index: int, ports: list[GUID] | None) -> None:
    spec = store.spec(index)
    if ports is None:
        log.keep(
            "port-unknown", spec.line, spec.column,
            f"No port of this fabric has GUID 0x{number:016x}: OpenSM skips it until the port shows up.",
            "Check the GUID, if the port should be there.",
        )  # fmt: skip
    else:
        log.keep(
            "node-guid", spec.line, spec.column,
            f"0x{number:016x} is the GUID of a node, not of a port: OpenSM skips it.",
            f"Write the port GUID: {', '.join(sorted(ports))}.",
        )  # fmt: skip


def _sm_in_default(
    log: Log, store: Store, state: PartitionState, fabric: Fabric, placed: Mapping[GUID, Placed]
) -> None:
    """The SM's port ends up limited in Default by a port GUID of its own."""
    index = state.named.get(fabric.sm_port.number)
    if log.has("sm-limited-in-default") or index is None or 0xFFFF in placed[fabric.sm_port].table.values():
        return
    if store.codes[index] & 3 != LIMITED and state.scopes.get(SELF, -1) < index:
        return
    spec = store.spec(index)
    log.add(
        "sm-limited-in-default", spec.line, spec.column,
        "The SM's own port is limited in Default: limited ports no longer reach the subnet administrator.",
        "Make it full, behind every keyword.",
    )  # fmt: skip
