"""A move between tenants as the two tables it takes: first everything that ends, and once that is proven the rest.

A key that is taken and a key that is given in one sweep would let a connection that survived at the freed index pass
into the new tenant's partition (ground truth: OpenSM, 5.4).
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from subnet.change import Added, Difference, Removed, difference
from subnet.guid import GUID
from subnet.pkey import PKey
from subnet.table import Member, Partition, PartitionTable

# Each port's owners beside those whose partitions it is in: the tenants who had it, or its server, last.
type OwnersOf = Callable[[Collection[GUID]], Mapping[GUID, Collection[str]]]


@dataclass(frozen=True, slots=True)
class Passing:
    """A port that `tenant` would take while `holder` still has it: tenants' labels, as in `Partition.tenant`."""

    guid: GUID
    tenant: str
    holder: str
    joins: bool  # False: it stays in its partition, and that passes to another owner


def between_tenants(
    current: PartitionTable, wanted: PartitionTable, owner_of: Callable[[GUID], str | None]
) -> tuple[PartitionTable, PartitionTable] | None:
    """(removing, adding) when a port passes from one tenant to another; None when one revision will do.

    `owner_of` says to whom a port belongs whatever it is in: the tenant who had it last, until its server is clean.
    `removing` is `wanted` without anything new for such ports: they keep only what they hold already of partitions
    that are the provider's in both tables. `adding` is `wanted`. Between the two the removal must be proven and each
    server clean; the ports are those of `passing`.
    """

    def owners(guids: Collection[GUID]) -> dict[GUID, tuple[str, ...]]:
        return {guid: () if (owner := owner_of(guid)) is None else (owner,) for guid in guids}

    moving = frozenset(taken.guid for taken in passing(difference(current, wanted), current, owners))
    if not moving:
        return None
    held = {(p.pkey, m.guid): m for p, m in current.memberships() if p.tenant is None and m.guid in moving}
    return replace(wanted, partitions=tuple(_without(p, moving, held) for p in wanted.partitions)), wanted


def owners(table: PartitionTable) -> dict[GUID, set[str]]:
    """Each port that a tenant's partition names, with the tenants it is named by."""
    found: dict[GUID, set[str]] = {}
    for partition, member in table.memberships():
        if partition.tenant is not None:
            found.setdefault(member.guid, set()).add(partition.tenant)
    return found


def given(current: PartitionTable, wanted: PartitionTable) -> tuple[tuple[GUID, str], ...]:
    """The ports that a tenant has in `wanted` and had not in `current`, each with that tenant, in order of GUID."""
    before = owners(current)
    fresh = {guid: tenants - before.get(guid, set()) for guid, tenants in owners(wanted).items()}
    return tuple((guid, min(tenants)) for guid, tenants in sorted(fresh.items()) if tenants)


def needs_every_standby(current: PartitionTable, wanted: PartitionTable) -> str:
    """Why no standby may be left on `current` while the fabric holds `wanted`, as the end of a sentence; "" if one may.

    A takeover would bring `current` back. That is bearable where somebody gains a key, and where a port moves between
    partitions of one owner; it is not where a key was taken away, or what a partition or Default itself is changes.
    """
    found = difference(current, wanted)
    if found.keywords or found.default is not None or found.flags or found.mgids:
        return "it changes what a partition or Default itself is"
    if any(change.what == "passed on" for change in found.partitions):
        return "it gives a partition to another owner"
    owner = {partition.pkey: partition.tenant for table in (current, wanted) for partition in table.partitions}
    gains = {(change.guid, owner.get(change.pkey)) for change in found.changes if isinstance(change, Added)}
    for change in found.changes:
        if isinstance(change, Added):
            continue
        if change.pkey.is_default or not isinstance(change, Removed):
            return f"it changes what port {change.guid} is in {change.partition}"
        if (change.guid, owner.get(change.pkey)) not in gains:
            return f"it takes port {change.guid} out of {change.partition}"
    return ""


def passing(found: Difference, current: PartitionTable, owners_of: OwnersOf) -> tuple[Passing, ...]:
    """The ports that a tenant takes by `found` and that belong to another tenant still, in order of GUID.

    A port belongs to every tenant in whose partition it is in `current`, and to those whom `owners_of` names; it is
    asked once, for the ports that tenants take, and not at all when there are none.
    """
    takers = sorted(set(_takers(found, current)))
    if not takers:
        return ()
    guids = {guid for guid, _, _ in takers}
    holders = {guid: set(names) for guid, names in owners_of(guids).items()}
    for partition, member in current.memberships():
        if partition.tenant is not None and member.guid in guids:
            holders.setdefault(member.guid, set()).add(partition.tenant)
    return tuple(
        Passing(guid, tenant, min(others), joins)
        for guid, tenant, joins in takers
        if (others := holders.get(guid, set()) - {tenant})
    )


def _takers(found: Difference, current: PartitionTable) -> Iterator[tuple[GUID, str, bool]]:
    """Each port with the tenant who gets it, and whether it joins."""
    for change in found.changes:
        if isinstance(change, Added) and change.tenant is not None:
            yield change.guid, change.tenant, True
    passed_on = {
        change.pkey: change.tenant_after
        for change in found.partitions
        if change.what == "passed on" and change.tenant_after is not None
    }
    if not passed_on:
        return
    leaving = _leaving(found)
    for partition, member in current.memberships():
        tenant = passed_on.get(partition.pkey)
        if tenant is not None and (partition.pkey, member.guid) not in leaving:
            yield member.guid, tenant, False


def _leaving(found: Difference) -> frozenset[tuple[PKey, GUID]]:
    return frozenset((change.pkey, change.guid) for change in found.changes if isinstance(change, Removed))


def _without(partition: Partition, moving: frozenset[GUID], held: dict[tuple[PKey, GUID], Member]) -> Partition:
    """`partition` with no moving port that it does not hold already; a tenant's holds none."""
    members = []
    for member in partition.members:
        if member.guid not in moving:
            members.append(member)
        elif partition.tenant is None and (partition.pkey, member.guid) in held:
            members.append(held[partition.pkey, member.guid])
    return replace(partition, members=tuple(members))
