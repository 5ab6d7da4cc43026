"""Closing Default: from everybody full (`ALL=full`) to limited, and what that does to whom.

While Default is open every port can reach every other, whatever partitions say. Closing it is what makes partitions
isolate (ground truth: OpenSM, 0.10), and it breaks what relied on it without saying so: that is told here beforehand.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from subnet.default import CLOSED, DefaultPartition
from subnet.guid import GUID
from subnet.member import Member
from subnet.observed import ObservedFabric
from subnet.pkey import DEFAULT, Membership
from subnet.table import PartitionTable


@dataclass(frozen=True, slots=True)
class Consequence:
    """One thing that closing does. `title` is who or what is concerned, `ports` whom (none: it is about programs)."""

    rule: str
    title: str
    sentence: str
    ports: tuple[GUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Impact:
    """What a change of Default does to the HCA ports that were read."""

    becomes_limited: tuple[GUID, ...]
    becomes_full: tuple[GUID, ...]
    stays_full: tuple[GUID, ...]  # SM ports and exceptions
    consequences: tuple[Consequence, ...]


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
    for guid, port in sorted(observed.ports.items()):
        if port.node_type != "CA":
            continue
        before, after = current.default_of(guid, "CA"), wanted.default_of(guid, "CA")
        if after == Membership.FULL:
            (stays if before == after else full).append(guid)
        elif before == Membership.FULL:
            limited.append(guid)
    return Impact(
        becomes_limited=tuple(limited),
        becomes_full=tuple(full),
        stays_full=tuple(stays),
        consequences=tuple(_consequences(limited, wanted, observed)),
    )


def _consequences(limited: list[GUID], wanted: PartitionTable, observed: ObservedFabric) -> Iterable[Consequence]:
    if not limited:
        return
    keys = {guid: {k: v for k, v in wanted.keys_of(guid, "CA").items() if k != DEFAULT} for guid in limited}
    nowhere = tuple(guid for guid in limited if not keys[guid])
    if nowhere:
        yield Consequence(
            "nowhere",
            f"{_ports(len(nowhere))} in no partition",
            "They hold no P_Key but Default, so as limited members they reach the subnet managers and the full members "
            "named below, and no other server. Put them in a partition first if they work together.",
            nowhere,
        )
    only_limited = tuple(guid for guid in limited if keys[guid] and Membership.FULL not in keys[guid].values())
    if only_limited:
        yield Consequence(
            "only-limited",
            f"{_ports(len(only_limited))} limited in each of their partitions",
            "Two limited members of a partition cannot talk to each other; until now they could in Default.",
            only_limited,
        )
    elsewhere = tuple(guid for guid in limited if observed.ports[guid].pkeys.get(0, 0) & 0x7FFF != int(DEFAULT))
    if elsewhere:
        yield Consequence(
            "off-index-0",
            f"{_ports(len(elsewhere))} without Default at index 0",
            "OpenSM will put Default at index 0 there and move what stands there, under live connections.",
            elsewhere,
        )
    yield from _PROGRAMS
    if wanted.default.flags.ipoib:
        yield Consequence(
            "ipoib-parent",
            "IPoIB on Default (ib0)",
            "A parent interface uses the P_Key at index 0, which is Default: as limited members two servers cannot "
            "reach each other over it, though the links stay up. Move addresses to child interfaces of a partition "
            "(ib0.8xxx) before closing; that partition needs `ipoib`.",
        )


_PROGRAMS: Final = (
    Consequence(
        "sa-access",
        "The subnet administrator",
        "Path queries and joins go to the master's port, which stays a full member, as do the other manager hosts' "
        "ports: every limited port still reaches them, also after a takeover.",
    ),
    Consequence(
        "index-0",
        "Programs that take P_Key index 0 or the first full key",
        "NCCL, NVSHMEM, UCX, MPI and storage clients use index 0 unless told otherwise: between two servers they then "
        "hang at connecting. Set NCCL_IB_PKEY (an index), UCX_IB_PKEY (a key) and their like to the partition's, and "
        "restart jobs. Connections that stand lose their key at once. On Windows, IPoIB needs a full key at index 0.",
    ),
    Consequence(
        "shared-services",
        "Storage, monitoring, gateways",
        "Whoever serves all servers through Default must stay a full member by exception, or be reached through a "
        "partition. Tools that send GMPs (perfquery, saquery, ibping) work only from full members; smpquery, sminfo "
        "and ibnetdiscover work from anywhere.",
    ),
)


def _ports(count: int) -> str:
    return "1 port" if count == 1 else f"{count} ports"
