"""A move between tenants as the two tables it takes: first everything that ends, and once that is proven the rest.

A key that is taken and a key that is given in one sweep would let a connection that survived at the freed index pass
into the new tenant's partition (ground truth: OpenSM, 5.4).
"""

from collections.abc import Callable
from dataclasses import replace

from subnet.guid import GUID
from subnet.pkey import PKey
from subnet.table import Member, Partition, PartitionTable

_TENANT = str  # the tenant's label, as in `Partition.tenant`


def between_tenants(
    current: PartitionTable, wanted: PartitionTable, owner_of: Callable[[GUID], str | None]
) -> tuple[PartitionTable, PartitionTable] | None:
    """(removing, adding) when a port passes from one tenant to another; None when one revision will do.

    `owner_of` says to whom a port belongs that no tenant's partition holds in `current`: the tenant who had it last,
    until its server is clean. `removing` is `wanted` without anything new for such ports: they keep only what they
    hold already of partitions that are the provider's in both tables. `adding` is `wanted`. Between the two the
    removal must be proven and each server clean; the ports are those of `passing`.
    """
    moving = passing(current, wanted, owner_of)
    if not moving:
        return None
    held = {(p.pkey, m.guid): m for p, m in current.memberships() if p.tenant is None and m.guid in moving}
    return replace(wanted, partitions=tuple(_without(p, moving, held) for p in wanted.partitions)), wanted


def passing(current: PartitionTable, wanted: PartitionTable, owner_of: Callable[[GUID], str | None]) -> frozenset[GUID]:
    """The ports that join a tenant's partition and belong to another tenant still."""
    before, after = _tenants(current), _tenants(wanted)
    found = set()
    for guid, tenants in after.items():
        last = before.get(guid)
        if last is None:
            owner = owner_of(guid)
            last = frozenset() if owner is None else frozenset({owner})
        if last and not tenants <= last:
            found.add(guid)
    return frozenset(found)


def _tenants(table: PartitionTable) -> dict[GUID, frozenset[_TENANT]]:
    found: dict[GUID, frozenset[_TENANT]] = {}
    for partition in table.partitions:
        if partition.tenant is not None:
            mine = frozenset({partition.tenant})
            for member in partition.members:
                found[member.guid] = found[member.guid] | mine if member.guid in found else mine
    return found


def _without(partition: Partition, moving: frozenset[GUID], held: dict[tuple[PKey, GUID], Member]) -> Partition:
    """`partition` with no moving port that it does not hold already; a tenant's holds none."""
    members = []
    for member in partition.members:
        if member.guid not in moving:
            members.append(member)
        elif partition.tenant is None and (partition.pkey, member.guid) in held:
            members.append(held[partition.pkey, member.guid])
    return replace(partition, members=tuple(members))
