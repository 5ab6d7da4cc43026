"""Which ports of a table must not reach each other, and which pairs of them to check. Pure: no Django, no clock.

Two ports are strangers when no tenant has both and no partition of the table lets them talk. Default is left out on
purpose: an open Default, with full members only, lets all tenants talk, and a check is to say so.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random

from subnet.guid import GUID
from subnet.pkey import Membership, PKey
from subnet.table import PartitionTable

type Pair = tuple[GUID, GUID]

FORMER_NEIGHBOURS = 2  # that a moved port is checked with


@dataclass(frozen=True)
class Tenancy:
    """Who has which port in a table, by tenant's label and by P_Key."""

    tenants: Mapping[GUID, frozenset[str]]
    ports: Mapping[str, tuple[GUID, ...]]
    keys: Mapping[GUID, Mapping[PKey, Membership]]
    members: Mapping[PKey, tuple[GUID, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: PartitionTable) -> "Tenancy":
        """The tenancy of `table`; partitions of the provider give no tenant."""
        tenants: dict[GUID, set[str]] = defaultdict(set)
        ports: dict[str, dict[GUID, None]] = defaultdict(dict)
        members: dict[PKey, list[GUID]] = defaultdict(list)
        for partition, member in table.memberships():
            members[partition.pkey].append(member.guid)
            if partition.tenant is not None:
                tenants[member.guid].add(partition.tenant)
                ports[partition.tenant][member.guid] = None
        return cls(
            {guid: frozenset(names) for guid, names in tenants.items()},
            {name: tuple(sorted(guids)) for name, guids in ports.items()},
            table.by_port(),
            {pkey: tuple(guids) for pkey, guids in members.items()},
        )

    def of_port(self, guid: GUID) -> frozenset[str]:
        """The tenants that have the port; none for one that is in no tenant's partition."""
        return self.tenants.get(guid, frozenset())

    def shared_key(self, one: GUID, other: GUID) -> PKey | None:
        """A P_Key in which the two may talk: both hold it, at least one of them as a full member."""
        theirs = self.keys.get(other, {})
        for pkey, membership in self.keys.get(one, {}).items():
            if pkey in theirs and Membership.FULL in (membership, theirs[pkey]):
                return pkey
        return None

    def are_strangers(self, one: GUID, other: GUID) -> bool:
        """Whether the two must not reach each other, and at least one of them is a tenant's."""
        mine, theirs = self.of_port(one), self.of_port(other)
        if one == other or not (mine | theirs) or mine & theirs:
            return False
        return self.shared_key(one, other) is None

    def peer(self, guid: GUID, *, among: Iterable[GUID] | None = None) -> tuple[GUID, PKey] | None:
        """Another port that may talk with `guid`, and in which P_Key: what a positive control is made with."""
        allowed = None if among is None else set(among)
        for pkey, membership in self.keys.get(guid, {}).items():
            for other in self.members.get(pkey, ()):
                if other == guid or (allowed is not None and other not in allowed):
                    continue
                if Membership.FULL in (membership, self.keys[other][pkey]):
                    return other, pkey
        return None


def moved(before: Tenancy, after: Tenancy) -> list[GUID]:
    """The ports that other tenants have than before, in order."""
    everybody = before.tenants.keys() | after.tenants.keys()
    return sorted(guid for guid in everybody if before.of_port(guid) != after.of_port(guid))


def pairs_after(before: Tenancy, after: Tenancy, *, draw: Random, most: int) -> list[Pair]:
    """The pairs to check after a change: each moved port with former neighbours first, then one of each other tenant.

    At most `most`; every moved port comes once before any comes twice.
    """
    queues: list[list[Pair]] = []
    for guid in moved(before, after):
        left = [
            other
            for tenant in sorted(before.of_port(guid) - after.of_port(guid))
            for other in _some(after.ports.get(tenant, ()), FORMER_NEIGHBOURS, draw)
        ]
        rest = [
            other
            for tenant in sorted(after.ports.keys() - after.of_port(guid))
            for other in _some(after.ports[tenant], 1, draw)
        ]
        queues.append([(guid, other) for other in dict.fromkeys([*left, *rest]) if after.are_strangers(guid, other)])
    chosen: dict[frozenset[GUID], Pair] = {}
    for place in range(max((len(queue) for queue in queues), default=0)):
        for queue in queues:
            if place < len(queue) and len(chosen) < most:
                chosen.setdefault(frozenset(queue[place]), queue[place])
    return list(chosen.values())


def sampled(tenancy: Tenancy, *, draw: Random, most: int) -> list[Pair]:
    """Up to `most` pairs of strangers. Tenants are drawn first, so that a small one comes as often as a large one."""
    names = sorted(tenancy.ports)
    chosen: dict[frozenset[GUID], Pair] = {}
    if len(names) < 2:
        return []
    for _ in range(8 * most):  # two drawn tenants may share a partition of the provider, or a port
        if len(chosen) == most:
            break
        one, other = (draw.choice(tenancy.ports[name]) for name in draw.sample(names, 2))
        if tenancy.are_strangers(one, other):
            chosen.setdefault(frozenset((one, other)), (one, other))
    return list(chosen.values())


def _some(guids: tuple[GUID, ...], count: int, draw: Random) -> list[GUID]:
    return draw.sample(guids, min(count, len(guids)))
