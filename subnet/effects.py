"""What a plan does beyond the P_Key tables it changes: to programs, to IPoIB, to groups that OpenSM keeps.

Sentences for people who review a plan (ground truth: OpenSM, 6 and 9).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from subnet.change import DefaultChange, Difference
from subnet.guid import GUID
from subnet.member import Keyword
from subnet.observed import ObservedFabric
from subnet.pkey import Membership
from subnet.table import PartitionTable

EffectKind = Literal[
    "default_closes",
    "default_opens",
    "sa_access",
    "index_0",
    "ipoib_parents",
    "storage",
    "canaries",
    "full_exceptions",
    "keyword_reaches",
    "self_moves",
    "group_stays",
]
_MOST_LISTED: Final = 3
# Flags of the groups that OpenSM makes once and keeps as they are (osm_mcmr_rcv_find_or_create_new_mgrp).
_OF_GROUPS: Final = {"mtu", "rate", "sl", "scope", "q_key", "tclass", "flow_label"}


@dataclass(frozen=True, slots=True)
class Effect:
    """One consequence that no table shows; `ports` counts the ports that were read and are concerned, None: all."""

    kind: EffectKind
    sentence: str
    ports: int | None = None


def effects(
    found: Difference, current: PartitionTable, wanted: PartitionTable, observed: ObservedFabric | None
) -> tuple[Effect, ...]:
    """What follows from these differences, the gravest first."""
    return (
        *(_of_default(found.default, wanted, observed) if found.default else ()),
        *_of_keywords(found, observed),
        *_of_groups(found),
    )


def _of_default(change: DefaultChange, wanted: PartitionTable, observed: ObservedFabric | None) -> Iterator[Effect]:
    if change.opens:
        yield Effect(
            "default_opens",
            "Default opens: every HCA port becomes a full member unless it is excepted, so each port can reach each "
            "other, whatever its partitions. Tenants are no longer kept apart.",
        )
    if change.closes:
        yield from _of_closing(change, wanted, observed)
    before, after = ({m.guid: m.membership for m in side.members} for side in (change.before, change.after))
    if change.after.is_open:
        canaries = [g for g, m in after.items() if m == Membership.LIMITED and before.get(g) != m]
        if canaries:
            yield Effect(
                "canaries",
                f"{_ports(canaries, wanted)} limited in Default while the others stay full: it shows what becomes of "
                "programs that take the key at index 0. It still reaches every full member, only not another canary: "
                "that Default carries nothing more between servers shows only once it is closed.",
                len(canaries),
            )
    else:
        exceptions = [g for g, m in after.items() if m == Membership.FULL and before.get(g) != m]
        if exceptions:
            yield Effect(
                "full_exceptions",
                f"{_ports(exceptions, wanted)} full in Default: it can reach every port of the fabric, and each can "
                "reach it. Only monitoring and storage that the provider runs may be.",
                len(exceptions),
            )


def _of_closing(change: DefaultChange, wanted: PartitionTable, observed: ObservedFabric | None) -> Iterator[Effect]:
    full = [member.guid for member in change.after.members if member.membership == Membership.FULL]
    read = None
    if observed is not None:
        read = sum(wanted.default_of(guid, "CA") == Membership.LIMITED for guid in observed.end_ports)
    how_many = "Every HCA port" if read is None else f"{read} HCA ports that were read"
    yield Effect(
        "default_closes",
        f"Default closes: {how_many} become limited members, and two limited members cannot talk. Servers reach one "
        "another only in partitions from then on; at once, also over connections that stand.",
        read,
    )
    yield Effect(
        "sa_access",
        "Every port goes on reaching the subnet administrator: "
        + (f"the SM ports {', '.join(wanted.sm_ports)} stay full members." if wanted.sm_ports else "")
        + " A subnet manager on any other port could not be reached after a takeover.",
    )
    yield Effect(
        "index_0",
        "Index 0 of each port holds 0x7fff instead of 0xffff. Programs that take index 0, or the first full key they "
        "find, then hang or pick another partition: set NCCL_IB_PKEY (an index), UCX_IB_PKEY or the like before.",
    )
    yield Effect(
        "ipoib_parents",
        "IPoIB over the parent interface (ib0) stops between servers: limited members hear broadcasts of full members "
        "only. Give servers a child interface in a partition with ipoib before.",
    )
    exceptions = f"{_ports(full, wanted)} full" if full else "none is excepted"
    yield Effect(
        "storage",
        "Storage and monitoring that servers reach over Default stop, unless their ports are excepted as full members "
        f"or both sides share a partition: {exceptions}.",
    )


def _of_keywords(found: Difference, observed: ObservedFabric | None) -> Iterator[Effect]:
    for change in found.keywords:
        if change.pkey.is_default:
            continue
        word = f"{change.keyword}={change.to_membership or change.from_membership}"
        if change.keyword is Keyword.SELF:
            yield Effect(
                "self_moves",
                f"SELF in {change.partition} ({change.pkey}) stands for the port of the SM that reads the file: at a "
                "takeover the key moves from one manager host to the other. Name the ports by GUID instead.",
                1,
            )
            continue
        count = None
        if observed is not None:
            count = sum(change.keyword.matches(port.node_type, is_self=False) for port in observed.ports.values())
        goes = "no longer stands" if change.to_membership is None else "stands"
        yield Effect(
            "keyword_reaches",
            f"{word} {goes} in {change.partition} ({change.pkey}): it reaches "
            f"{'every such port' if count is None else f'{count} ports that were read'}, and each that comes later.",
            count,
        )


def _of_groups(found: Difference) -> Iterator[Effect]:
    """OpenSM makes a group once: later values count only when the partition has emptied or another SM takes over."""
    told = set()
    for flag in found.flags:
        drops = flag.flag == "ipoib" and not flag.after
        had_group = not any(f.pkey == flag.pkey and f.flag == "ipoib" and f.after for f in found.flags)
        if (drops or (flag.flag in _OF_GROUPS and had_group)) and flag.pkey not in told:
            told.add(flag.pkey)
            yield Effect(
                "group_stays",
                f"Multicast groups of {flag.partition} ({flag.pkey}) that exist stay as they are: the flags count only "
                "once the partition has emptied or another SM takes over. A wrong value may show first then.",
            )
    for lines in found.mgids:
        if set(lines.before) - set(lines.after) and lines.pkey not in told:
            told.add(lines.pkey)
            yield Effect(
                "group_stays",
                f"Multicast groups of {lines.partition} ({lines.pkey}) whose lines go stay until the partition has "
                "emptied or another SM takes over.",
            )


def _ports(guids: list[GUID], table: PartitionTable) -> str:
    """“Port 0x… of srv-001 is”, “Ports 0x…, 0x… and 7 more are”."""
    named = [f"{g} of {table.labels[g]}" if g in table.labels else str(g) for g in guids[:_MOST_LISTED]]
    more = f" and {len(guids) - _MOST_LISTED} more" if len(guids) > _MOST_LISTED else ""
    one = len(guids) == 1
    return f"{'Port' if one else 'Ports'} {', '.join(named)}{more} {'is' if one else 'are'}"
