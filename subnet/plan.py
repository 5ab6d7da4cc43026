"""What a new partition table changes: typed changes, each port before and after, and whether it is too big.

All choices are made here; the rollout makes none.
"""

import difflib
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from subnet.change import (
    Added,
    Change,
    Changed,
    DefaultChange,
    Difference,
    FlagChange,
    KeywordChange,
    MgidChange,
    PartitionChange,
    Removed,
    apply,
    difference,
    there,
)
from subnet.effects import Effect, effects
from subnet.errors import UnsafePlan
from subnet.guid import GUID
from subnet.index import Hazard, PortHistory, Prediction, predict
from subnet.member import NodeType
from subnet.moves import between_tenants
from subnet.observed import ObservedFabric
from subnet.pkey import DEFAULT, Membership, PKey, entry, entry_text
from subnet.rebase import Conflict, rebase
from subnet.table import PartitionTable

__all__ = [
    "Added",
    "Change",
    "Changed",
    "Conflict",
    "DefaultChange",
    "Effect",
    "FlagChange",
    "KeywordChange",
    "MgidChange",
    "PartitionChange",
    "Plan",
    "PortChange",
    "Removed",
    "apply",
    "between_tenants",
    "diff",
    "rebase",
    "unified_diff",
]

# A plan that takes away more than this share of all memberships, and more than this many, needs a reason.
LEAVING_SHARE = 0.3
LEAVING_FLOOR = 16


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
    """The difference between two tables. `unsafe` holds a sentence for each reason to ask a person first.

    `effects` are consequences that no port's table shows.
    """

    found: Difference
    ports: tuple[PortChange, ...]
    effects: tuple[Effect, ...]
    unsafe: tuple[str, ...]
    digest: str = field(repr=False)

    @property
    def changes(self) -> tuple[Change, ...]:
        """Memberships by GUID that come, go or change, in order of P_Key and GUID, Default last."""
        return self.found.changes

    @property
    def keywords(self) -> tuple[KeywordChange, ...]:
        """Keywords that come, go or change, Default last."""
        return self.found.keywords

    @property
    def flags(self) -> tuple[FlagChange, ...]:
        """Flags that change, Default last."""
        return self.found.flags

    @property
    def mgids(self) -> tuple[MgidChange, ...]:
        """Partitions whose lines for multicast groups change, Default last."""
        return self.found.mgids

    @property
    def partitions(self) -> tuple[PartitionChange, ...]:
        """Partitions that come, go, are renamed or change owner; by itself this reaches no port."""
        return self.found.partitions

    @property
    def default(self) -> DefaultChange | None:
        """What changes about Default, if anything does."""
        return self.found.default

    @property
    def affected(self) -> frozenset[GUID]:
        """The ports whose P_Key table changes."""
        return frozenset(port.guid for port in self.ports)

    @property
    def is_empty(self) -> bool:
        """Whether nothing reaches a port or a group: names and labels alone are nothing to roll out."""
        return self.found.reaches_nothing

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

    @property
    def hazards_told(self) -> tuple[tuple[Hazard, tuple[GUID, ...]], ...]:
        """The same for a reader: each sentence once, with its ports. What needs a takeover to happen comes last."""
        ports: dict[Hazard, list[GUID]] = {}
        for guid, hazard in self.hazards:
            ports.setdefault(hazard, []).append(guid)
        told = sorted(ports.items(), key=lambda item: item[0].needs_takeover)
        return tuple((hazard, tuple(guids)) for hazard, guids in told)

    def by_hand(self, managers: int) -> int:
        """How many manual actions a person would need for the same: none when the plan is empty.

        Look up each GUID to be written, edit one line for each change, copy the file to each of `managers` hosts,
        signal the master once, and check each affected port's table.
        """
        if self.is_empty:
            return 0
        lines = len(self.changes) + len(self.keywords) + len(self.flags) + len(self.mgids)
        return len({change.guid for change in self.changes}) + lines + managers + 1 + len(self.ports)

    def raise_if_unsafe(self, confirmed_reason: str = "") -> None:
        """Raise UnsafePlan, with every cause, unless a person gave a reason.

        Unsafe is a plan that takes away over 30 % of all memberships (and more than 16), leaves a partition of more
        than one server without members, changes Default or a manager host's own port, or gives a P_Key in use to
        another owner.
        """
        if self.unsafe and not confirmed_reason.strip():
            raise UnsafePlan(" ".join([*self.unsafe, "If this is meant, give a reason and confirm."]))


def diff(
    current: PartitionTable,
    wanted: PartitionTable,
    observed: ObservedFabric | None,
    *,
    history: Mapping[GUID, PortHistory] | None = None,
) -> Plan:
    """The plan that turns `current` into `wanted`; `observed` is the fabric as it was last read, if it was.

    `history` holds what each port's table is known to have held, for sharper predictions. Affected are the ports
    whose keys differ: each that a change names, and when a keyword changes every port that was read. The plan's
    digest covers what a person sees: the changes, and each affected port's table with its prediction. It does not
    depend on the rest of the tables, so a plan stays the same when others' ports change.
    """
    found = difference(current, wanted)
    ports = tuple(_ports(found, current, wanted, observed, history or {}))
    return Plan(
        found=found,
        ports=ports,
        effects=effects(found, current, wanted, observed),
        unsafe=tuple(_reasons_to_ask(found, ports, current, wanted, observed)),
        digest=_digest(found, ports),
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


def _ports(
    found: Difference,
    current: PartitionTable,
    wanted: PartitionTable,
    observed: ObservedFabric | None,
    history: Mapping[GUID, PortHistory],
) -> Iterator[PortChange]:
    """Each port whose keys differ, in order of GUID; one that was not read is taken for an HCA port."""
    readings = observed.ports if observed else {}
    masters = frozenset(sm.guid for sm in observed.masters) if observed else frozenset()
    concerned = {change.guid for change in found.changes}
    if found.keywords:
        concerned |= readings.keys()

    def node_type(guid: GUID) -> NodeType:
        return readings[guid].node_type if guid in readings else "CA"

    asked = [(guid, node_type(guid), guid in masters) for guid in sorted(concerned)]
    before_keys, after_keys = current.keys_of_some(asked), wanted.keys_of_some(asked)
    for guid, _, _ in asked:
        reading = readings.get(guid)
        was, will = before_keys[guid], after_keys[guid]
        if was == will:
            continue
        before = reading.pkeys if reading and reading.is_read else None
        prediction = None
        if reading and before is not None:
            beside = {pkey: membership for pkey, membership in will.items() if not pkey.is_default}
            prediction = predict(before, reading.capacity, beside, will[DEFAULT], history=history.get(guid))
        yield PortChange(
            guid=guid,
            label=wanted.labels.get(guid) or current.labels.get(guid),
            before=before,
            prediction=prediction,
            gains=_entries(will.items() - was.items()),
            losses=_entries(was.items() - will.items()),
        )


def _entries(keys: Iterable[tuple[PKey, Membership]]) -> tuple[int, ...]:
    return tuple(entry(pkey, membership) for pkey, membership in sorted(keys))


def _reasons_to_ask(
    found: Difference,
    ports: tuple[PortChange, ...],
    current: PartitionTable,
    wanted: PartitionTable,
    observed: ObservedFabric | None,
) -> Iterator[str]:
    """Why a person should look twice; the thresholds stand in `Plan.raise_if_unsafe`."""
    before, after = there(current), there(wanted)
    leaving = sum(len({n & 0x7FFF for n in port.losses} - {n & 0x7FFF for n in port.gains}) for port in ports)
    if leaving > LEAVING_FLOOR:
        total = _memberships(current, observed)
        if leaving > LEAVING_SHARE * total:
            yield f"{leaving} of {total} memberships end, more than {LEAVING_SHARE:.0%}."
    for pkey in sorted(before.keys() - after.keys()):
        partition = before[pkey]
        servers = {current.labels.get(member.guid, member.guid) for member in partition.members}
        if len(servers) > 1:
            yield f"Partition {partition.name} ({pkey}) loses all its {len(partition.members)} ports."
        elif partition.keywords:
            yield f"Partition {partition.name} ({pkey}) goes, and {_words(partition.keywords)} with it."
    for pkey in sorted(before.keys() & after.keys()):
        old, new = before[pkey], after[pkey]
        if old.tenant != new.tenant:
            yield (
                f"P_Key {pkey} passes from {old.tenant or 'the provider'} to {new.tenant or 'the provider'} while "
                "ports may still use it."
            )
    if found.default is not None:
        yield from _reasons_in_default(found.default, found)
    sm_ports = {*current.sm_ports, *wanted.sm_ports}
    for guid in sorted(sm_ports & ({port.guid for port in ports} | {change.guid for change in found.changes})):
        yield f"Port {guid} of a manager host changes."


def _reasons_in_default(change: DefaultChange, found: Difference) -> Iterator[str]:
    before, after = change.before, change.after
    if change.opens:
        yield "Default opens: every port could reach every other."
    elif change.closes:
        yield "Default closes for every port that is not excepted."
    elif (before.keywords, before.flags, before.mgids) != (after.keywords, after.flags, after.mgids):
        yield "Default changes, which every port is in."
    sm_ports = {*change.sm_ports_before, *change.sm_ports_after}
    excepted = sum(c.pkey.is_default and c.guid not in sm_ports for c in found.changes)
    if excepted:
        yield f"{excepted} {'port becomes' if excepted == 1 else 'ports become'} something else in Default."


def _memberships(table: PartitionTable, observed: ObservedFabric | None) -> int:
    """How many memberships stand beside Default: those by GUID, and by keyword those of the ports that were read."""
    total = sum(len(partition.members) for partition in table.partitions)
    if observed is not None and any(partition.keywords for partition in table.partitions):
        named = table.by_port()
        keys = (len(table.keys_of(guid, port.node_type)) - 1 for guid, port in observed.ports.items())
        total += sum(keys) - sum(len(named[guid]) for guid in named.keys() & observed.ports.keys())
    return total


def _words(keywords: Iterable[object]) -> str:
    return ", ".join(map(str, keywords))


def _digest(found: Difference, ports: tuple[PortChange, ...]) -> str:
    """SHA-256 over one line for each change, keyword, flag, group and port."""
    digest = hashlib.sha256()
    for line in chain(
        (
            f"{c.verb} {c.pkey} {c.partition} {c.tenant} {c.guid} {c.from_membership} {c.to_membership}"
            for c in found.changes
        ),
        (f"word {w.pkey} {w.partition} {w.tenant} {w.keyword} {w.to_membership}" for w in found.keywords),
        (f"flag {f.pkey} {f.partition} {f.tenant} {f.flag} {f.after}" for f in found.flags),
        (f"mgid {m.pkey} {m.partition} {m.tenant} {m.after}" for m in found.mgids),
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
