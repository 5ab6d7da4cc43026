"""Which subnet managers run on the fabric, against those that are registered.

Any host can start its own SM and take the fabric over, and root can hide the IsSM bit: so what every port says about
its master counts too (ground truth: read-back, 4).
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from subnet.guid import GUID
from subnet.observed import ObservedFabric, PortReading


@dataclass(frozen=True, slots=True)
class CensusProblem:
    """One thing wrong with the subnet managers. `leaf` and `leaf_port` say where the port in question is plugged."""

    kind: str  # no_master | two_masters | unregistered_sm | no_standby | wrong_master_lid
    guid: GUID | None
    sentence: str
    leaf: GUID | None = None
    leaf_port: int | None = None


def census(after: ObservedFabric, registered: Collection[GUID]) -> tuple[CensusProblem, ...]:
    """Everything that differs from: one registered master, at least one registered standby, and nobody else.

    A port that sets IsSM and does not answer SMInfo counts as running an SM. `registered` are the manager hosts' SM
    port GUIDs.
    """
    return (*_masters(after), *_strangers(after, registered), *_standbys(after, registered), *_misled(after))


def where(port: PortReading | None) -> str:
    """“ at leaf 0x… port 5”, or nothing when it is not known."""
    return f" at leaf {port.leaf.guid} port {port.leaf.port}" if port and port.leaf else ""


def _problem(kind: str, guid: GUID | None, port: PortReading | None, sentence: str) -> CensusProblem:
    leaf = port.leaf if port else None
    return CensusProblem(kind, guid, sentence, leaf.guid if leaf else None, leaf.port if leaf else None)


def _masters(after: ObservedFabric) -> Iterator[CensusProblem]:
    masters = after.masters
    if not masters:
        yield CensusProblem(
            "no_master",
            None,
            "No subnet manager answers as master. Look at OpenSM on the manager hosts; nothing can be proven until "
            "one of them is master.",
        )
    if len(masters) > 1:
        seen = ", ".join(
            f"{sm.guid} (LID {sm.lid}, priority {sm.priority}){where(after.ports.get(sm.guid))}" for sm in masters
        )
        yield _problem(
            "two_masters",
            masters[1].guid,
            after.ports.get(masters[1].guid),
            f"{len(masters)} subnet managers say they are master: {seen}. Stop all but the registered one, and check "
            "that all use the same sm_key.",
        )


def _strangers(after: ObservedFabric, registered: Collection[GUID]) -> Iterator[CensusProblem]:
    answered = {sm.guid: sm for sm in after.sms}
    silent = {guid for guid, port in after.ports.items() if port.is_sm and port.is_read} - answered.keys()
    for guid in sorted((answered.keys() | silent) - set(registered)):
        port = after.ports.get(guid)
        sm = answered.get(guid)
        state = f"is {sm.state} with priority {sm.priority}" if sm else "does not answer"
        yield _problem(
            "unregistered_sm",
            guid,
            port,
            f"Port {guid}{where(port)} runs a subnet manager that is not registered; it {state}. Stop OpenSM on that "
            "host or take its port down at the leaf switch; restoring files does not help.",
        )


def _standbys(after: ObservedFabric, registered: Collection[GUID]) -> Iterator[CensusProblem]:
    if not any(sm.state == "STANDBY" and sm.guid in registered for sm in after.sms):
        yield CensusProblem(
            "no_standby",
            None,
            "No registered subnet manager is standby, so nothing takes over when the master stops. Start OpenSM on "
            "the other manager host.",
        )


def _misled(after: ObservedFabric) -> Iterator[CensusProblem]:
    """Ports that take another LID for their master's, one problem for each such LID."""
    if len(after.masters) != 1:
        return
    master = after.masters[0]
    misled: dict[int, list[PortReading]] = {}
    for port in after.ports.values():
        if port.is_read and port.master_sm_lid != master.lid:
            misled.setdefault(port.master_sm_lid, []).append(port)
    for lid, ports in sorted(misled.items()):
        first = min(ports, key=lambda port: port.guid)
        others = f" and {len(ports) - 1} more" if len(ports) > 1 else ""
        yield _problem(
            "wrong_master_lid",
            first.guid,
            first,
            f"Port {first.guid}{where(first)}{others} takes LID {lid} for the master's, and the master is "
            f"{master.guid} at LID {master.lid}. Look for another subnet manager, or wait for the next sweep.",
        )
