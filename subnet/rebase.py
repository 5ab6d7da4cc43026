"""A plan drawn up on one revision, brought onto a newer one, when the two have nothing to do with each other.

Three tables: the one both began with, the newer current one, and the one that was wanted. Ours and theirs may not
touch the same port, nor the same attribute of a partition, and a keyword touches every port.
"""

from dataclasses import dataclass, replace

from subnet.change import Difference, apply, difference
from subnet.errors import SubnetError
from subnet.guid import GUID
from subnet.pkey import PKey
from subnet.table import PartitionTable

_MOST_LISTED = 3


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why a plan cannot be brought onto the newer revision, for a person; `ports` are those that both touch."""

    sentence: str
    ports: tuple[GUID, ...] = ()


def rebase(base: PartitionTable, newer: PartitionTable, wanted: PartitionTable) -> PartitionTable | Conflict:
    """`newer` with the changes that lead from `base` to `wanted`, or why they do not go together.

    Labels are `wanted`'s, which are as new as the plan. The outcome is a table like any other: check it by the
    policy and show its plan again, because what it does to a port is seen only against the newer revision.
    """
    ours, theirs = difference(base, wanted), difference(base, newer)
    conflict = (
        _over_keywords(ours, theirs, newer)
        or _over_ports(ours, theirs, wanted)
        or _over_partitions(ours, theirs)
        or _over_default(ours, theirs)
    )
    if conflict is not None:
        return conflict
    try:
        merged = apply(_as_far_as_ours(ours, theirs), newer)
    except SubnetError as error:
        return Conflict(f"{error} Draw up the plan again.")
    merged = _with_default_of_both(merged, ours, theirs)
    return replace(merged, labels={**newer.labels, **wanted.labels})


def _over_keywords(ours: Difference, theirs: Difference, newer: PartitionTable) -> Conflict | None:
    """Keywords reach ports that nobody named, so they go together with nothing that reaches a port."""
    for found, other, whose in ((theirs, ours, "The newer revision"), (ours, theirs, "This plan")):
        if found.keywords and not other.reaches_nothing:
            change = found.keywords[0]
            return Conflict(
                f"{whose} changes {change.keyword} in {change.partition} ({change.pkey}), which reaches ports that "
                "nobody named. Draw up the plan again and look at what it does."
            )
    return None


def _over_ports(ours: Difference, theirs: Difference, wanted: PartitionTable) -> Conflict | None:
    both = tuple(sorted(_touched(ours) & _touched(theirs)))
    if not both:
        return None
    named = [f"{guid} ({wanted.labels[guid]})" if guid in wanted.labels else str(guid) for guid in both[:_MOST_LISTED]]
    more = f" and {len(both) - _MOST_LISTED} more" if len(both) > _MOST_LISTED else ""
    return Conflict(
        f"By now another revision has changed {'port' if len(both) == 1 else 'ports'} {', '.join(named)}{more}, which "
        "this plan changes too. Draw up the plan again.",
        both,
    )


def _touched(found: Difference) -> frozenset[GUID]:
    """Each port that is named in a change, also as an SM port or as an exception of Default."""
    ports = {change.guid for change in found.changes}
    if found.default is not None:
        ports |= set(found.default.sm_ports_before) ^ set(found.default.sm_ports_after)
        ports |= {m.guid for m in set(found.default.before.members) ^ set(found.default.after.members)}
    return frozenset(ports)


def _over_partitions(ours: Difference, theirs: Difference) -> Conflict | None:
    """Names, owners, flags and groups of one partition may be changed by one side only, unless both say the same."""
    named = {change.pkey: change for change in theirs.partitions}
    for change in ours.partitions:
        other = named.get(change.pkey)
        if other is not None and (other.name_after, other.tenant_after) != (change.name_after, change.tenant_after):
            name = other.name_after or other.name_before or change.name_after
            return Conflict(
                f"By now another revision has {other.what} the partition {name} ({change.pkey}), which is "
                f"{change.what} by this plan. Draw up the plan again."
            )
    gone = {change.pkey: change for change in theirs.partitions if change.what == "retired"}
    for joined in ours.changes:
        if joined.pkey in gone and joined.to_membership is not None:
            return Conflict(
                f"By now another revision has taken the last port out of {joined.partition} ({joined.pkey}), which "
                f"port {joined.guid} joins by this plan. Draw up the plan again."
            )
    owners = {c.pkey: c for c in theirs.partitions if c.what == "passed on"} | {
        c.pkey: c for c in ours.partitions if c.what == "passed on"
    }
    for pkey in sorted(owners.keys() & _partitions_of(ours) & _partitions_of(theirs)):
        return Conflict(
            f"P_Key {pkey} passes from {owners[pkey].tenant_before or 'the provider'} to "
            f"{owners[pkey].tenant_after or 'the provider'}, and ports join or leave it meanwhile. Draw up the plan "
            "again."
        )
    flags = {(flag.pkey, flag.flag): flag.after for flag in theirs.flags}
    for flag in ours.flags:
        if flags.get((flag.pkey, flag.flag), flag.after) != flag.after:
            return Conflict(
                f"By now another revision has set {flag.flag} of {flag.partition} ({flag.pkey}) otherwise. "
                "Draw up the plan again."
            )
    groups = {lines.pkey: lines.after for lines in theirs.mgids}
    for lines in ours.mgids:
        if groups.get(lines.pkey, lines.after) != lines.after:
            return Conflict(
                f"By now another revision has changed the multicast groups of {lines.partition} ({lines.pkey}). "
                "Draw up the plan again."
            )
    return None


def _partitions_of(found: Difference) -> set[PKey]:
    return {change.pkey for change in found.changes} | {change.pkey for change in found.partitions}


def _over_default(ours: Difference, theirs: Difference) -> Conflict | None:
    """Exceptions of two sides go together; what Default says of everybody may be changed by one side only."""
    if ours.default is None or theirs.default is None:
        return None
    a, b = ours.default.after, theirs.default.after
    base = ours.default.before
    told_a, told_b = (a.keywords, a.flags, a.mgids), (b.keywords, b.flags, b.mgids)
    if told_a != told_b and told_a != (base.keywords, base.flags, base.mgids) != told_b:
        return Conflict("By now another revision has changed what Default says of every port. Draw up the plan again.")
    return None


def _as_far_as_ours(ours: Difference, theirs: Difference) -> Difference:
    """Ours without Default, without what theirs has brought in the same way, and without the end of partitions.

    A partition that our last port leaves ends by itself when theirs have not joined it meanwhile; if they have, it
    keeps its flags and groups.
    """
    brought = {change.pkey for change in theirs.partitions}
    ended = {change.pkey for change in ours.partitions if change.name_after is None}
    return replace(
        ours,
        partitions=tuple(c for c in ours.partitions if c.pkey not in ended and c.pkey not in brought),
        flags=tuple(flag for flag in ours.flags if flag.pkey not in ended),
        mgids=tuple(lines for lines in ours.mgids if lines.pkey not in ended),
        default=None,
    )


def _with_default_of_both(merged: PartitionTable, ours: Difference, theirs: Difference) -> PartitionTable:
    """`merged`, which has their Default, with ours in it."""
    if ours.default is None:
        return merged
    if theirs.default is None:
        return replace(merged, default=ours.default.after, sm_ports=ours.default.sm_ports_after)
    base, after = ours.default.before, ours.default.after
    changed = (after.keywords, after.flags, after.mgids) != (base.keywords, base.flags, base.mgids)
    body = after if changed else merged.default
    gone = set(base.members) - set(after.members)
    come = set(after.members) - set(base.members)
    members = (set(merged.default.members) - gone) | come
    was, will = set(ours.default.sm_ports_before), set(ours.default.sm_ports_after)
    return replace(
        merged,
        default=replace(body, members=tuple(members)),
        sm_ports=tuple((set(merged.sm_ports) - (was - will)) | (will - was)),
    )
