"""Handover: a server that goes from one tenant to another leaves first, and joins only once it is clean.

Two revisions, never one: the first takes the former tenant's keys away; once that is PROVEN and an operator has said
that nothing of the tenant is left (`partitions/cleaning.py`), the second gives the new tenant's. Both halves are
staged as one move. What waits is worked out from what is, and stored nowhere, so that nothing can forget to wait.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from inventory.models import Port, Server
from partitions.mirror import batches
from partitions.models import StagedChange
from subnet.guid import GUID
from subnet.plan import Added, Plan
from subnet.policy import Violation
from subnet.table import PartitionTable


@dataclass(frozen=True, slots=True)
class Waiting:
    """One staged addition that no plan takes yet, and for whose sake it waits: names of tenants."""

    change: StagedChange
    tenants: tuple[str, ...]
    is_member: bool  # whether the server is still in a partition of one of them

    @property
    def server(self) -> Server:
        """Whose port it is; additions are staged for servers only."""
        assert self.change.port.hca is not None  # noqa: S101  a port without a server waits for nothing
        return self.change.port.hca.server


@dataclass(frozen=True, slots=True)
class Ties:
    """What binds servers to tenants: for each server the tenants' slugs, and those of which it is a member now."""

    bound: Mapping[int, frozenset[str]]
    members: Mapping[int, frozenset[str]]

    @classmethod
    def of(cls, servers: Collection[int], current: PartitionTable) -> "Ties":
        """Read them for these row ids: what each port holds in `current`, and whose it was last. One query.

        A server is bound as a whole: whoever is root on it reaches all its ports.
        """
        owner: dict[GUID, set[str]] = defaultdict(set)
        for partition, member in current.memberships():
            if partition.tenant is not None:
                owner[member.guid].add(partition.tenant)
        bound: dict[int, set[str]] = defaultdict(set)
        members: dict[int, set[str]] = defaultdict(set)
        rows = Port.objects.filter(hca__server__in=servers).values_list("hca__server", "guid", "former_tenant__slug")
        for server, guid, former in rows if servers else ():
            members[server] |= owner.get(GUID(guid), set())
            bound[server] |= members[server] | ({former} if former else set())
        return cls(
            bound={server: frozenset(slugs) for server, slugs in bound.items()},
            members={server: frozenset(slugs) for server, slugs in members.items()},
        )


def split(
    changes: Iterable[StagedChange], current: PartitionTable
) -> tuple[tuple[StagedChange, ...], tuple[Waiting, ...]]:
    """Which of `changes` may go into the next revision, and which additions wait. One query, none without any."""
    rows = tuple(changes)
    joining = {change.pk for change in rows if change.kind_from is None and change.partition.tenant is not None}
    servers = {change.port.hca.server_id for change in rows if change.pk in joining and change.port.hca is not None}
    if not servers:
        return rows, ()
    ties = Ties.of(servers, current)
    going: list[StagedChange] = []
    waiting: list[Waiting] = []
    for change in rows:
        tenant, hca = change.partition.tenant, change.port.hca
        if change.pk not in joining or hca is None or tenant is None:
            going.append(change)
            continue
        others = ties.bound.get(hca.server_id, frozenset()) - {tenant.slug}
        if others:
            is_member = bool(others & ties.members.get(hca.server_id, frozenset()))
            waiting.append(Waiting(change, tuple(sorted(others)), is_member=is_member))
        else:
            going.append(change)
    return tuple(going), tuple(waiting)


def overtaking(plan: Plan, current: PartitionTable) -> Iterable[Violation]:
    """Refuse what `split` should have kept back, from the plan itself: each port that would change hands. One query.

    Whatever staged the change: a port gains no tenant's key while another's is on it or was last.
    """
    gains: dict[GUID, set[str]] = defaultdict(set)
    for change in plan.changes:
        if isinstance(change, Added) and change.tenant is not None:
            gains[change.guid].add(change.tenant)
    if not gains:
        return
    held = current.by_port()
    tenant_of = {partition.pkey: partition.tenant for partition in current.partitions}
    former = _former(gains)
    for guid, tenants in sorted(gains.items()):
        had = {slug for pkey in held.get(guid, {}) if (slug := tenant_of[pkey]) is not None} | former.get(guid, set())
        for tenant in sorted(tenants):
            if had - {tenant}:
                yield Violation(
                    rule="between_tenants",
                    severity="refuse",
                    where=str(guid),
                    sentence=f"Port {guid} is or was last in a partition of {min(had - {tenant})}, so {tenant} may not "
                    "take it: it leaves first, and joins only once that is proven and its server is marked clean.",
                )


def _former(guids: Collection[GUID]) -> dict[GUID, set[str]]:
    """Whose these ports were last, and whose any other port of the same server was. Two queries."""
    rows: list[tuple[str, int | None, str | None]] = []
    for batch in batches(sorted(guids)):
        rows += Port.objects.filter(guid__in=batch).values_list("guid", "hca__server", "former_tenant__slug")
    of_server: dict[int, set[str]] = defaultdict(set)
    for ids in batches(sorted({server for _, server, _ in rows if server is not None})):
        bound = Port.objects.filter(hca__server__in=ids).exclude(former_tenant=None)
        for server, slug in bound.values_list("hca__server", "former_tenant__slug"):
            of_server[server].add(slug)
    former: dict[GUID, set[str]] = {}
    for guid, server_id, own in rows:
        shared = set() if server_id is None else of_server.get(server_id, set())
        former[GUID(guid)] = shared | ({own} if own else set())
    return former
