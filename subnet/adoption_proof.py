"""May this running fabric be taken over? What is found, what we would write, and whether any port would change.

Pure: it is given the file, the fabric as it was read, and who runs the subnet managers. Every answer that stands in the
way is an Obstacle with the step that mends it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from subnet.adoption import Adopted, Note, table_of
from subnet.errors import SubnetError
from subnet.guid import GUID
from subnet.observed import ObservedFabric
from subnet.opensm_reading import EndPort, Fabric, Reading, read
from subnet.partitions_conf import Header, render
from subnet.pkey import PKey, entry_text

MOST_PORTS: Final = 5  # in one sentence
# Ports in these states have been given their table by the SM (osm_state_mgr.c: do_sweep).
_ARMED: Final = {"ARMED", "ACTIVE"}
# Ports that nobody has: what a file says of one that is plugged in tomorrow is compared as well.
_TOMORROW: Final = {"CA": 0xFFFF_FFFF_FFFF_FF01, "SW": 0xFFFF_FFFF_FFFF_FF02, "RT": 0xFFFF_FFFF_FFFF_FF03}


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One reason not to take the file over: which rule, what is so, and what to do."""

    rule: str
    sentence: str
    mend: str


@dataclass(frozen=True, slots=True)
class PortDifference:
    """One port that would hold other keys: what it holds (or should by the file found) and what it would hold."""

    guid: GUID
    found: tuple[str, ...]
    written: tuple[str, ...]

    @property
    def becomes_full_in_default(self) -> bool:
        """Whether the one difference is that the port would be full in Default and not limited."""
        found, written = set(self.found), set(self.written)
        return (found - written, written - found) == ({"0x7fff"}, {"0xffff"})

    def __str__(self) -> str:
        return f"{self.guid}: {', '.join(self.found) or 'nothing'} → {', '.join(self.written) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything about one hand-written file on one fabric. `data` are the bytes we would write, b"" without a table.

    `differences` are ports that would change now (none, or it is refused); `after_takeover` those that would be other
    than by the found file once another registered SM is master, by its port (only for the better, or it is refused).
    """

    reading: Reading = field(repr=False)
    adopted: Adopted | None
    data: bytes = field(repr=False)
    obstacles: tuple[Obstacle, ...]
    differences: tuple[PortDifference, ...]
    after_takeover: Mapping[GUID, tuple[PortDifference, ...]]
    compared: int  # ports on the fabric whose table was read and is what the file says
    not_compared: int  # ports that were not read or that no SM has set up yet

    @property
    def is_adoptable(self) -> bool:
        """Whether nothing stands in the way."""
        return not self.obstacles and self.adopted is not None

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was rewritten, in order of line."""
        return () if self.adopted is None else self.adopted.notes


def explain(
    found: bytes,
    observed: ObservedFabric,
    *,
    master: GUID,
    sm_ports: Collection[GUID],
    header: Header,
    labels: Mapping[GUID, str] | None = None,
    names: Mapping[PKey, str] | None = None,
    reserved: Collection[str] = (),
    tenants: Mapping[PKey, str] | None = None,
) -> Explanation:
    """Explain the file `found` on the fabric `observed`, whose master SM is bound to port `master`.

    `sm_ports` are the registered manager hosts'; `header` heads what would be written.
    """
    fabric = Fabric.from_observed(observed, sm_port=master)
    reading = read(found, fabric)
    obstacles = list(_of_reading(reading))
    if reading.rejection is not None:
        return Explanation(reading, None, b"", tuple(obstacles), (), {}, 0, len(observed.ports))
    drifted, compared, not_compared = _drift(reading, observed)
    obstacles += _of_drift(drifted)
    try:
        adopted = table_of(
            reading, fabric, sm_ports=sm_ports, labels=labels, names=names, reserved=reserved, tenants=tenants
        )
        if master not in adopted.table.sm_ports:
            raise _MasterLimited
        data = render(adopted.table, header)
    except _MasterLimited:
        obstacles.append(_MASTER_LIMITED)
        return Explanation(reading, adopted, b"", tuple(obstacles), (), {}, compared, not_compared)
    except SubnetError as error:
        obstacles.append(Obstacle("no-table", str(error), "Mend that in the file on both manager hosts, reload, look."))
        return Explanation(reading, None, b"", tuple(obstacles), (), {}, compared, not_compared)
    obstacles += [
        Obstacle(note.rule, f"Line {note.line}: {note.message}", "Then reload the master and take a new look.")
        for note in adopted.notes
        if note.severity == "refuse"
    ]
    differences = compare(found, data, wider(fabric, reading))
    if differences:
        obstacles.append(_would_change(differences))
    after = {guid: compare(found, data, Fabric(ports=fabric.ports, sm_port=guid)) for guid in {*sm_ports} - {master}}
    obstacles += _of_takeover(after, sm_ports)
    return Explanation(
        reading=reading,
        adopted=adopted,
        data=data,
        obstacles=tuple(obstacles),
        differences=differences,
        after_takeover={guid: ports for guid, ports in sorted(after.items()) if ports},
        compared=compared,
        not_compared=not_compared,
    )


def compare(found: bytes, written: bytes, fabric: Fabric) -> tuple[PortDifference, ...]:
    """The ports of `fabric` to which a freshly started OpenSM gives other keys by `written` than by `found`."""
    old, new = read(found, fabric), read(written, fabric)
    return tuple(_unlike(old.tables, new.tables, fabric.ports))


def wider(fabric: Fabric, reading: Reading) -> Fabric:
    """The fabric with the absent ports that the file names (as HCA ports), and one unnamed port of each node type."""
    named = {
        spec.guid
        for partition in reading.partitions
        for statement in partition.statements
        for spec in statement.specs
        if spec.kind == "guid" and spec.guid
    }
    ports = dict(fabric.ports)
    for node_type, number in _TOMORROW.items():
        guid = GUID(f"0x{number:016x}")
        ports.setdefault(guid, EndPort(guid=guid, node_guid=guid, node_type=node_type))  # type: ignore[arg-type]
    for number in named:
        try:
            guid = GUID(f"0x{number:016x}")
        except SubnetError:
            continue
        ports.setdefault(guid, EndPort(guid=guid, node_guid=guid, node_type="CA"))
    return Fabric(ports=ports, sm_port=fabric.sm_port)


def _unlike(
    old: Mapping[GUID, Mapping[int, int]], new: Mapping[GUID, Mapping[int, int]], guids: Iterable[GUID]
) -> Iterator[PortDifference]:
    for guid in sorted(guids):
        before, after = set(old.get(guid, {}).values()), set(new.get(guid, {}).values())
        if before != after:
            yield PortDifference(guid, _texts(before), _texts(after))


def _texts(entries: Collection[int]) -> tuple[str, ...]:
    return tuple(entry_text(number) for number in sorted(entries))


class _MasterLimited(Exception):
    """The master's own port is limited in Default by the file."""


_MASTER_LIMITED: Final = Obstacle(
    "master-limited",
    "The file makes the master's own port a limited member of Default, so no limited port reaches the subnet "
    "administrator: new connections and IPoIB joins fail.",
    "Add `SELF=full` as the last member of Default on both manager hosts, reload the master, and take a new look.",
)


def _of_reading(reading: Reading) -> Iterator[Obstacle]:
    """What OpenSM, or we, would not take of the file."""
    rejection = reading.rejection
    if rejection is not None:
        where = "" if rejection.line is None else f" in line {rejection.line}"
        fixes = [finding.fix for finding in reading.findings if finding.severity == "refuse" and finding.fix]
        yield Obstacle(
            "rejected",
            f"OpenSM rejects the whole file{where} ({rejection.message}): every port is a full member of Default and "
            "no other partition is programmed.",
            " ".join([*fixes[:1], "Repair the file on both manager hosts, reload the master, and take a new look."]),
        )
        return
    for finding in reading.findings:
        if finding.severity == "refuse":
            yield Obstacle(
                finding.rule, f"Line {finding.line}: {finding.message}", f"{finding.fix} Then reload and look again."
            )


def _drift(reading: Reading, observed: ObservedFabric) -> tuple[list[PortDifference], int, int]:
    """(ports that hold other keys than the file says, how many hold exactly those, how many were not compared)."""
    armed = {guid: port for guid, port in observed.ports.items() if port.is_read and port.state in _ARMED}
    held = {guid: dict(port.pkeys) for guid, port in armed.items()}
    drifted = list(_unlike(held, reading.tables, armed))
    return drifted, len(armed) - len(drifted), len(observed.ports) - len(armed)


def _of_drift(drifted: list[PortDifference]) -> Iterator[Obstacle]:
    if drifted:
        yield Obstacle(
            "drift",
            f"{len(drifted)} ports do not hold what the file says: {_listed(drifted)}. Taking the file over would "
            "change them.",
            "Reload the master, so that OpenSM reads its file, and take a new look. If it stays so: the port was "
            "changed behind OpenSM's back (take its link down and up), P_Keys are numbered by OpenSM and changed since "
            "it started (write them out), or OpenSM runs with allow_both_pkeys or keep_pkey_indexes changed.",
        )


def _would_change(differences: tuple[PortDifference, ...]) -> Obstacle:
    return Obstacle(
        "would-change",
        f"{len(differences)} ports would hold other keys with the file that FabricUI would write: "
        f"{_listed(differences)}.",
        "Nothing is placed. Keep the file as it is and report these lines: FabricUI cannot say this file yet.",
    )


def _of_takeover(after: Mapping[GUID, tuple[PortDifference, ...]], sm_ports: Collection[GUID]) -> Iterator[Obstacle]:
    """A takeover may leave manager hosts' ports better off in Default; anything else would be our doing."""
    for guid, differences in sorted(after.items()):
        worse = [one for one in differences if not (one.guid in sm_ports and one.becomes_full_in_default)]
        if worse:
            yield Obstacle(
                "takeover-would-change",
                f"After a takeover by the SM of port {guid}, {len(worse)} ports would hold other keys with the file "
                f"that FabricUI would write: {_listed(worse)}. The file names a manager host's port and says SELF "
                "behind it, and FabricUI writes keywords first.",
                "Put SELF in front of the ports that are named, or take the manager hosts' ports out there, on both "
                "manager hosts; reload the master, and take a new look.",
            )


def _listed(differences: Collection[PortDifference]) -> str:
    shown = [str(difference) for difference in list(differences)[:MOST_PORTS]]
    more = len(differences) - len(shown)
    return "; ".join(shown) + (f" (and {more} more)" if more > 0 else "")
