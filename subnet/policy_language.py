"""The rules about what a partition carries beside its ports: keywords, flags, multicast groups, and Default.

A keyword stands for every port there is and every one that comes later, so nobody can say who is in that partition.
FabricUI writes none by itself; an adopted file may hold them, and goes on being planned with a warning.
"""

from collections.abc import Iterator
from ipaddress import IPv6Address

from subnet.flags import USUAL_MTU, USUAL_RATE, Flags
from subnet.member import Keyword, KeywordMember, NodeType, membership_by_keyword
from subnet.pkey import DEFAULT, Membership, PKey
from subnet.table import Partition, PartitionTable
from subnet.violation import Severity, Violation

_ENDPOINTS: tuple[tuple[NodeType, str], ...] = (("SW", "switches"), ("RT", "routers"))
_IP_SIGNATURES = {0x401B, 0x601B}


def violations(table: PartitionTable, standing: PartitionTable | None) -> Iterator[Violation]:
    """Every rule of this kind that `table` breaks; what `standing` says already is warned of, not refused."""
    for partition in table.partitions:
        before = standing.partition(partition.pkey) if standing else None
        yield from _keywords(partition, before)
        yield from _flags_without_effect(partition.name, partition.pkey, partition.flags, partition.mgids)
        yield from _groups(partition.name, partition.pkey, partition.flags, partition.mgids)
    yield from _default(table, standing)
    default = table.default
    yield from _flags_without_effect("Default", DEFAULT, default.flags, default.mgids)
    yield from _groups("Default", DEFAULT, default.flags, default.mgids)


def _keywords(partition: Partition, before: Partition | None) -> Iterator[Violation]:
    if not partition.keywords:
        return
    stands: tuple[KeywordMember, ...] = ()
    if before is not None and before.tenant == partition.tenant:
        stands = before.keywords
    where, name = str(partition.pkey), f"{partition.name} ({partition.pkey})"
    for member in partition.keywords:
        severity: Severity = "warn" if member in stands else "refuse"
        if member.keyword is Keyword.SELF:
            yield Violation(
                "self_in_partition",
                severity,
                where,
                f"{member} in {name} stands for the port of the SM that reads the file, so the key moves at a "
                "takeover. Name the manager hosts' ports by GUID.",
            )
        elif partition.tenant is not None:
            yield Violation(
                "keyword_in_tenants_partition",
                severity,
                where,
                f"{member} puts every such port into {name} of {partition.tenant}, other tenants' and the ones that "
                "come later too. Name the ports by GUID.",
            )
    is_full = membership_by_keyword(partition.keywords, "CA", is_self=False) == Membership.FULL
    if partition.tenant is None and is_full:
        was_full = membership_by_keyword(stands, "CA", is_self=False) == Membership.FULL
        yield Violation(
            "keyword_full_in_provider",
            "warn" if was_full else "refuse",
            where,
            f"Every HCA port that is not named otherwise is a full member of the provider's partition {name}, so each "
            "can reach each other there, across tenants. Make the keyword limited, or name the ports by GUID.",
        )


def _default(table: PartitionTable, standing: PartitionTable | None) -> Iterator[Violation]:
    default = table.default
    if default.is_open:
        limited = sum(member.membership == Membership.LIMITED for member in default.members)
        but = f", except {limited} limited {'port' if limited == 1 else 'ports'}" if limited else ""
        yield Violation(
            "default_open",
            "warn",
            "table",
            f"Default is open: every HCA port is a full member{but}, so each can reach each other whatever its "
            "partitions. Close Default once nothing depends on it; try it on canary servers first.",
        )
    if default.membership_of("CA", is_self=True) != Membership.FULL:
        stands = standing is not None and standing.default.keywords == default.keywords
        yield Violation(
            "self_limited_in_default",
            "warn" if stands else "refuse",
            "table",
            "Default demotes the port of the SM that reads the file, so no limited port could reach an SM that is "
            "not registered here. Put SELF=full behind the other keywords.",
        )
    for node_type, what in _ENDPOINTS:
        if default.membership_of(node_type, is_self=False) != Membership.FULL:
            yield Violation(
                f"{what}_limited_in_default",
                "warn",
                "table",
                f"The {what} are limited members of Default, so limited ports cannot reach them: monitoring through "
                f"GMPs fails there. Put ALL_{what.upper()}=full into Default.",
            )


def _flags_without_effect(name: str, pkey: PKey, flags: Flags, mgids: tuple[str, ...]) -> Iterator[Violation]:
    idle = [flag for flag in flags.written() if not flag.startswith(("ipoib", "sl="))]
    if idle and not flags.ipoib and not mgids:
        yield Violation(
            "flags_without_group",
            "warn",
            str(pkey),
            f"{', '.join(idle)} of {name} ({pkey}) shape a multicast group, and there is none. Add ipoib, or leave "
            "them out.",
        )


def _groups(name: str, pkey: PKey, flags: Flags, mgids: tuple[str, ...]) -> Iterator[Violation]:
    """OpenSM skips a group for IP of another rate, mtu or P_Key than the partition's (osm_prtn_config.c)."""
    for line in mgids:
        word, *rest = line.split(",")
        packed = IPv6Address(word.removeprefix("mgid=")).packed
        if int.from_bytes(packed[2:4]) not in _IP_SIGNATURES:
            continue
        said = {"mtu": flags.mtu or USUAL_MTU, "rate": flags.rate or USUAL_RATE}
        wanted = dict(said)
        for flag in rest:
            given, _, value = flag.partition("=")
            for known in ("mtu", "rate"):
                if given and known.startswith(given) and value:
                    wanted[known] = _number(value)
        key = int.from_bytes(packed[4:6])
        is_broadcast = packed == IPv6Address("ff12:401b:ffff::ffff:ffff").packed
        if wanted != said or not (is_broadcast or key in (0, int(pkey))):
            yield Violation(
                "group_skipped",
                "warn",
                str(pkey),
                f"OpenSM skips “{line}” of {name} ({pkey}) and logs an error: a group for IP must have the rate and "
                "the mtu of its partition, and 0000 or the P_Key without the membership bit in its address.",
            )


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return 0
