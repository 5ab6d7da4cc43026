"""What a new partition table changes: typed changes, each port before and after, and whether it is too big.

All choices are made here; the rollout makes none.
"""

import difflib
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import ClassVar

from subnet.errors import UnsafePlan
from subnet.guid import GUID
from subnet.index import Hazard, Prediction, predict
from subnet.observed import ObservedFabric
from subnet.pkey import DEFAULT, Membership, PKey, entry, entry_text
from subnet.table import Partition, PartitionTable

# A plan that takes away more than this share of all memberships, and more than this many, needs a reason.
LEAVING_SHARE = 0.3
LEAVING_FLOOR = 16


@dataclass(frozen=True, slots=True)
class Change:
    """One port's membership in one partition, before and after; None means no membership.

    Becoming or ceasing to be an SM port is a change in Default between limited and full.
    """

    verb: ClassVar[str] = ""

    pkey: PKey
    partition: str
    tenant: str | None
    guid: GUID
    from_membership: Membership | None
    to_membership: Membership | None


class Added(Change):
    """The port joins the partition."""

    __slots__ = ()
    verb: ClassVar[str] = "added"


class Removed(Change):
    """The port leaves the partition."""

    __slots__ = ()
    verb: ClassVar[str] = "removed"


class Changed(Change):
    """The port stays and its membership changes, in place at the same index."""

    __slots__ = ()
    verb: ClassVar[str] = "changed"


@dataclass(frozen=True, slots=True)
class FlagChange:
    """A flag of a partition that reaches ports. Switching `ipoib` off takes effect only once the partition empties."""

    pkey: PKey
    partition: str
    tenant: str | None
    flag: str
    on: bool


@dataclass(frozen=True, slots=True)
class PortChange:
    """One affected port: its table as read (index → entry; None when it was not), and what it will hold.

    `gains` and `losses` are 16-bit entries; a changed membership is one of each. `label` is its server's.
    """

    guid: GUID
    label: str | None
    before: Mapping[int, int] | None
    prediction: Prediction | None
    gains: tuple[int, ...]
    losses: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The difference between two tables. `unsafe` holds a sentence for each reason to ask a person first."""

    changes: tuple[Change, ...]
    flags: tuple[FlagChange, ...]
    ports: tuple[PortChange, ...]
    unsafe: tuple[str, ...]
    digest: str = field(repr=False)

    @property
    def affected(self) -> frozenset[GUID]:
        """The ports whose P_Key table changes."""
        return frozenset(port.guid for port in self.ports)

    @property
    def is_empty(self) -> bool:
        """Whether nothing reaches a port: names and labels alone are nothing to roll out."""
        return not self.changes and not self.flags

    @property
    def predictions(self) -> dict[GUID, Prediction]:
        """What the read-back compares with, for each affected port that was read."""
        return {port.guid: port.prediction for port in self.ports if port.prediction is not None}

    @property
    def hazards(self) -> tuple[tuple[GUID, Hazard], ...]:
        """Every port's hazards, in order of GUID."""
        return tuple(
            (port.guid, hazard) for port in self.ports if port.prediction for hazard in port.prediction.hazards
        )

    def by_hand(self, managers: int) -> int:
        """How many manual actions a person would need for the same: none when the plan is empty.

        Look up each affected port's GUID, edit one line for each change, copy the file to each of `managers` hosts,
        signal the master once, and check each affected port's table.
        """
        if self.is_empty:
            return 0
        return len(self.ports) + len(self.changes) + len(self.flags) + managers + 1 + len(self.ports)

    def raise_if_unsafe(self, confirmed_reason: str = "") -> None:
        """Raise UnsafePlan, with every cause, unless a person gave a reason.

        Unsafe is a plan that takes away over 30 % of all memberships (and more than 16), leaves a partition of more
        than one server without members, changes who is full in Default or a manager host's own port, or gives a
        P_Key in use to another owner.
        """
        if self.unsafe and not confirmed_reason.strip():
            raise UnsafePlan(" ".join([*self.unsafe, "If this is meant, give a reason and confirm."]))


def diff(current: PartitionTable, wanted: PartitionTable, observed: ObservedFabric | None) -> Plan:
    """The plan that turns `current` into `wanted`; `observed` is the fabric as it was last read, if it was.

    The plan's digest covers what a person sees: the changes, and each affected port's table with its prediction. It
    does not depend on the rest of the tables, so a plan stays the same when others' ports change.
    """
    changes = tuple(_changes(current, wanted))
    flags = tuple(_flags(current, wanted))
    ports = tuple(_ports(changes, current, wanted, observed))
    return Plan(
        changes=changes,
        flags=flags,
        ports=ports,
        unsafe=tuple(_reasons_to_ask(changes, current, wanted)),
        digest=_digest(changes, flags, ports),
    )


def unified_diff(before: bytes, after: bytes, name: str) -> str:
    """The change of one file as people know it from `diff -u`; empty when nothing changes."""
    lines = difflib.unified_diff(
        before.decode("utf-8", "replace").splitlines(),
        after.decode("utf-8", "replace").splitlines(),
        f"{name} (now)",
        f"{name} (planned)",
        lineterm="",
    )
    return "\n".join(lines)


def _by_key(table: PartitionTable) -> dict[PKey, Partition]:
    """The partitions that OpenSM will see: those with members."""
    return {partition.pkey: partition for partition in table.partitions if partition.members}


def _changes(current: PartitionTable, wanted: PartitionTable) -> Iterator[Change]:
    """Every change in order of P_Key and GUID, Default last."""
    before, after = _by_key(current), _by_key(wanted)
    for pkey in sorted(before.keys() | after.keys()):
        old, new = before.get(pkey), after.get(pkey)
        if old == new:
            continue
        was = {member.guid: member.membership for member in old.members} if old else {}
        will = {member.guid: member.membership for member in new.members} if new else {}
        for guid in sorted(was.keys() | will.keys()):
            a, b = was.get(guid), will.get(guid)
            if a != b:
                # A key that changes owner is left in the old owner's partition and joined in the new one's.
                place = new if new and b is not None else old
                assert place is not None  # noqa: S101  one of the two names this port
                kind = Added if a is None else Removed if b is None else Changed
                yield kind(pkey, place.name, place.tenant, guid, a, b)
    for guid in sorted(set(current.sm_ports) ^ set(wanted.sm_ports)):
        joins = guid in wanted.sm_ports
        full, limited = Membership.FULL, Membership.LIMITED
        yield Changed(DEFAULT, "Default", None, guid, *((limited, full) if joins else (full, limited)))


def _flags(current: PartitionTable, wanted: PartitionTable) -> Iterator[FlagChange]:
    before, after = _by_key(current), _by_key(wanted)
    for pkey in sorted(before.keys() | after.keys()):
        old, new = before.get(pkey), after.get(pkey)
        was, will = bool(old and old.ipoib), bool(new and new.ipoib)
        place = new or old
        if was != will and place:
            yield FlagChange(pkey, place.name, place.tenant, "ipoib", will)


def _ports(
    changes: tuple[Change, ...], current: PartitionTable, wanted: PartitionTable, observed: ObservedFabric | None
) -> Iterator[PortChange]:
    """Each port that a change names, in order of GUID."""
    touched: dict[GUID, list[Change]] = {}
    for change in changes:
        touched.setdefault(change.guid, []).append(change)
    held = wanted.by_port()
    sm_ports = frozenset(wanted.sm_ports)
    for guid, its_changes in sorted(touched.items()):
        reading = observed.ports.get(guid) if observed else None
        before = reading.pkeys if reading and reading.is_read else None
        prediction = None
        if reading and before is not None:
            is_full = guid in sm_ports or reading.node_type != "CA"
            default = Membership.FULL if is_full else Membership.LIMITED
            prediction = predict(before, reading.capacity, held.get(guid, {}), default)
        yield PortChange(
            guid=guid,
            label=wanted.labels.get(guid) or current.labels.get(guid),
            before=before,
            prediction=prediction,
            gains=tuple(entry(c.pkey, c.to_membership) for c in its_changes if c.to_membership),
            losses=tuple(entry(c.pkey, c.from_membership) for c in its_changes if c.from_membership),
        )


def _reasons_to_ask(changes: tuple[Change, ...], current: PartitionTable, wanted: PartitionTable) -> Iterator[str]:
    """Why a person should look twice; the thresholds stand in `Plan.raise_if_unsafe`."""
    before, after = _by_key(current), _by_key(wanted)
    leaving = sum(isinstance(change, Removed) for change in changes)
    total = sum(len(partition.members) for partition in before.values())
    if leaving > LEAVING_FLOOR and leaving > LEAVING_SHARE * total:
        yield f"{leaving} of {total} memberships end, more than {LEAVING_SHARE:.0%}."
    for pkey in sorted(before.keys() - after.keys()):
        partition = before[pkey]
        servers = {current.labels.get(member.guid, member.guid) for member in partition.members}
        if len(servers) > 1:
            yield f"Partition {partition.name} ({pkey}) loses all its {len(partition.members)} ports."
    for pkey in sorted(before.keys() & after.keys()):
        old, new = before[pkey], after[pkey]
        if old.tenant != new.tenant:
            yield (
                f"P_Key {pkey} passes from {old.tenant or 'the provider'} to {new.tenant or 'the provider'} while "
                "ports may still use it."
            )
    sm_ports = {*current.sm_ports, *wanted.sm_ports}
    for guid in sorted({change.guid for change in changes if change.guid in sm_ports}):
        yield f"Port {guid} of a manager host changes."


def _digest(changes: tuple[Change, ...], flags: tuple[FlagChange, ...], ports: tuple[PortChange, ...]) -> str:
    """SHA-256 over one line for each change, flag and port."""
    digest = hashlib.sha256()
    for line in chain(
        (f"{c.verb} {c.pkey} {c.partition} {c.tenant} {c.guid} {c.from_membership} {c.to_membership}" for c in changes),
        (f"flag {f.pkey} {f.partition} {f.tenant} {f.flag} {f.on}" for f in flags),
        (f"port {p.guid} {_slots(p.before)} {_expectation(p.prediction)}" for p in ports),
    ):
        digest.update(line.encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _slots(table: Mapping[int, int] | None) -> str:
    return "unread" if table is None else ",".join(f"{index}:{entry_text(table[index])}" for index in sorted(table))


def _expectation(prediction: Prediction | None) -> str:
    if prediction is None:
        return "unpredicted"
    # The slots themselves follow from the table and the survivors, both of which are in the line already.
    new = ",".join(f"{entry_text(number)}:{len(prediction.new[number])}" for number in sorted(prediction.new))
    return f"{_slots(prediction.survivors)} {new}"
