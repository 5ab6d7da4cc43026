"""The two questions of this package: what does a file mean by itself, and what on a given fabric."""

from subnet.guid import GUID
from subnet.opensm_reading import on_fabric
from subnet.opensm_reading.fabric import Fabric
from subnet.opensm_reading.log import verdict
from subnet.opensm_reading.parser import CRASH, CRASH_OF_SHARED, Parser
from subnet.opensm_reading.partitions import DEFAULT_KEY, PartitionState
from subnet.opensm_reading.placement import FULL_BIT, Members, Placed, fallback_keys, place
from subnet.opensm_reading.store import Statements, Store
from subnet.opensm_reading.tokens import BOTH, LIMITED
from subnet.opensm_reading.values import Check, Reading, ReadPartition, Rejection
from subnet.pkey import PKey


def read(data: bytes, fabric: Fabric, *, allow_both_pkeys: bool = False, qos: bool = False) -> Reading:
    """What a freshly started OpenSM 3.3.23 makes of `data` as its partition file on `fabric`.

    `allow_both_pkeys` and `qos` are the options of its opensm.conf. Indexes are those of the first sweep over ports
    whose table holds 0xffff at index 0 and nothing else.
    """
    parser = Parser(data)
    rejection = parser.run()
    states = parser.partitions.in_map_order()
    members = Members(parser.store, fabric, allow_both_pkeys=allow_both_pkeys)
    index0 = members.index0_keys(states)
    entries: dict[GUID, list[int]] = {guid: [] for guid in fabric.ports}
    if rejection is None:
        for state in states:
            for port, membership in members.of(state):
                if membership in (LIMITED, BOTH):
                    entries[port.guid].append(state.key)
                if membership != LIMITED:
                    entries[port.guid].append(state.key | FULL_BIT)
    programmed = frozenset(entry & 0x7FFF for held in entries.values() for entry in held)
    # Partitions without members are deleted, all but Default after a rejection, each with its groups.
    deleted = {state.key for state in states if state.key not in programmed and state.key != DEFAULT_KEY}
    crashes = rejection is not None and rejection.message == CRASH
    if not crashes and any(len(holders & deleted) > 1 for holders in parser.groups.holders.values()):
        crashes, rejection = True, Rejection(None, CRASH_OF_SHARED)
    if rejection is not None:
        # A crash leaves the ports as they were, which is what the fallback makes of fresh ones without indx0.
        index0 = {} if crashes else fallback_keys(fabric, index0)
        entries = {guid: [0xFFFF] for guid in fabric.ports}
    placed: dict[GUID, Placed] = {
        guid: place(
            held,
            capacity=fabric.ports[guid].capacity,
            index0=index0.get(guid, 0),
            allow_both_pkeys=allow_both_pkeys,
        )
        for guid, held in entries.items()
    }
    if rejection is None:
        on_fabric.note(parser.log, parser.store, states, fabric, placed, programmed)
    return Reading(
        rejection=rejection,
        tables={guid: one.table for guid, one in placed.items()},
        partitions=() if rejection is not None else _partitions(parser.store, list(parser.partitions.by_key.values())),
        findings=parser.log.findings(),
    )


def check(data: bytes) -> Check:
    """What can be said of `data` without knowing the fabric; never raises."""
    parser = Parser(data)
    rejection = parser.run()
    findings = parser.log.findings()
    states = list(parser.partitions.by_key.values())
    return Check(
        verdict=verdict(findings),
        findings=findings,
        partitions=() if rejection is not None else _partitions(parser.store, states),
        rejection=rejection,
    )


def _partitions(store: Store, states: list[PartitionState]) -> tuple[ReadPartition, ...]:
    """The partitions that the file names, in the order of their first statement."""
    return tuple(
        ReadPartition(
            pkey=PKey(state.key),
            name=state.name.decode("utf-8", "backslashreplace"),
            auto_numbered=state.auto_numbered,
            statements=Statements(store, state.statements),
        )
        for state in sorted((one for one in states if one.statements), key=lambda one: one.statements[0])
    )
