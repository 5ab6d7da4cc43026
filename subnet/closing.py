"""Closing Default: from everybody full (`ALL=full`) to limited, and which ports that concerns.

While Default is open every port can reach every other, whatever partitions say; closing it is what makes partitions
isolate (ground truth: OpenSM, 0.10). What it does to programs stands in `subnet/effects.py`.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from subnet.default import CLOSED, DefaultPartition
from subnet.effects import Effect
from subnet.guid import GUID
from subnet.member import Member
from subnet.observed import ObservedFabric
from subnet.pkey import DEFAULT, FULL_BIT, Membership
from subnet.plan import diff
from subnet.table import PartitionTable


@dataclass(frozen=True, slots=True)
class Concerned:
    """Ports that have a reason of their own to be looked at before they become limited."""

    rule: str
    sentence: str
    ports: tuple[GUID, ...]


@dataclass(frozen=True, slots=True)
class Impact:
    """What a change of Default does to the HCA ports that were read, and to programs (`effects`)."""

    becomes_limited: tuple[GUID, ...]
    becomes_full: tuple[GUID, ...]
    stays_full: tuple[GUID, ...]  # SM ports and exceptions
    concerned: tuple[Concerned, ...]
    effects: tuple[Effect, ...]


def with_canaries(default: DefaultPartition, ports: Collection[GUID]) -> DefaultPartition:
    """`default`, still open, with `ports` as the only limited exceptions; full exceptions stay."""
    full = [member for member in default.members if member.membership == Membership.FULL and member.guid not in ports]
    return replace(default, members=(*full, *(Member(guid, Membership.LIMITED) for guid in ports)))


def closed(default: DefaultPartition, stay_full: Iterable[GUID]) -> DefaultPartition:
    """`default` closed for everybody but `stay_full` and those that are full by GUID already (and the SM ports)."""
    named = {member.guid for member in default.members if member.membership == Membership.FULL} | set(stay_full)
    return replace(default, keywords=CLOSED, members=tuple(Member(guid, Membership.FULL) for guid in named))


def impact(current: PartitionTable, wanted: PartitionTable, observed: ObservedFabric) -> Impact:
    """What becomes of the HCA ports of `observed` when Default of `current` becomes that of `wanted`."""
    limited: list[GUID] = []
    full: list[GUID] = []
    stays: list[GUID] = []
    masters = {sm.guid for sm in observed.masters}
    for guid in sorted(observed.end_ports):
        before = current.default_of(guid, "CA", is_self=guid in masters)
        after = wanted.default_of(guid, "CA", is_self=guid in masters)
        if after == Membership.FULL:
            (stays if before == after else full).append(guid)
        elif before == Membership.FULL:
            limited.append(guid)
    return Impact(
        becomes_limited=tuple(limited),
        becomes_full=tuple(full),
        stays_full=tuple(stays),
        concerned=tuple(group for group in _concerned(limited, wanted, observed) if group.ports),
        effects=diff(current, wanted, observed).effects,
    )


def _concerned(limited: list[GUID], wanted: PartitionTable, observed: ObservedFabric) -> Iterator[Concerned]:
    """The ports that lose more than others: they are in no partition, in none as a full member, or oddly laid out."""
    beside = {guid: {how for pkey, how in wanted.keys_of(guid, "CA").items() if pkey != DEFAULT} for guid in limited}
    yield Concerned("nowhere", _NOWHERE, tuple(guid for guid in limited if not beside[guid]))
    yield Concerned(
        "only-limited", _ONLY_LIMITED, tuple(guid for guid in limited if beside[guid] == {Membership.LIMITED})
    )
    ports = observed.end_ports
    yield Concerned(
        "off-index-0",
        _OFF_INDEX_0,
        tuple(guid for guid in limited if ports[guid].is_read and ports[guid].pkeys.get(0, 0) | FULL_BIT != 0xFFFF),
    )


_NOWHERE: Final = (
    "These ports are in no partition: as limited members of Default they reach the subnet managers and Default’s full "
    "members, and no other server. Put them in a partition first if they work together."
)
_ONLY_LIMITED: Final = (
    "These ports are limited in each of their partitions: two limited members cannot talk to each other, and until now "
    "they could in Default."
)
_OFF_INDEX_0: Final = (
    "These ports do not have Default at index 0: OpenSM will put it there and move what stands there, under live "
    "connections."
)
