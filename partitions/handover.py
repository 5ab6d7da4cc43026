"""Handover: a server that goes from one tenant to another leaves first, and joins only once it is clean.

Two revisions, never one: the first takes the former tenant's keys away; once that is PROVEN and an operator has said
that nothing of the tenant is left (`partitions/cleaning.py`), the second gives the new tenant's. In between the server
takes no new key at all, the provider's included: what its former tenant left on it would get it. Both halves are
staged as one move. What waits is worked out from what is, and stored nowhere, so that nothing can forget to wait.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from inventory.models import Port, Server
from partitions.mirror import batches
from partitions.models import StagedChange
from subnet.change import Added
from subnet.guid import GUID
from subnet.moves import passing
from subnet.plan import Plan
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
    places: Mapping[int, frozenset[tuple[str, int, GUID]]]  # tenant, P_Key and port of each membership

    @classmethod
    def of(cls, servers: Collection[int], current: PartitionTable) -> "Ties":
        """Read them for these row ids: what each port holds in `current`, and whose it was last. One query.

        A server is bound as a whole: whoever is root on it reaches all its ports.
        """
        held: dict[GUID, set[tuple[str, int, GUID]]] = defaultdict(set)
        for partition, member in current.memberships():
            if partition.tenant is not None:
                held[member.guid].add((partition.tenant, int(partition.pkey), member.guid))
        bound: dict[int, set[str]] = defaultdict(set)
        places: dict[int, set[tuple[str, int, GUID]]] = defaultdict(set)
        rows = Port.objects.filter(hca__server__in=servers).values_list("hca__server", "guid", "former_tenant__slug")
        for server, guid, former in rows if servers else ():
            its = held.get(GUID(guid), set())
            places[server] |= its
            bound[server] |= {tenant for tenant, _, _ in its} | ({former} if former else set())
        return cls(
            bound={server: frozenset(slugs) for server, slugs in bound.items()},
            members={server: frozenset(tenant for tenant, _, _ in its) for server, its in places.items()},
            places={server: frozenset(its) for server, its in places.items()},
        )


def split(
    changes: Iterable[StagedChange], current: PartitionTable
) -> tuple[tuple[StagedChange, ...], tuple[Waiting, ...]]:
    """Which of `changes` may go into the next revision, and which additions wait. One query, none without any."""
    rows = tuple(changes)
    joining = {change.pk for change in rows if change.kind_from is None}
    servers = {change.port.hca.server_id for change in rows if change.pk in joining and change.port.hca is not None}
    if not servers:
        return rows, ()
    ties = Ties.of(servers, current)
    staying = _staying(rows, ties)
    going: list[StagedChange] = []
    waiting: list[Waiting] = []
    for change in rows:
        tenant, hca = change.partition.tenant, change.port.hca
        if change.pk not in joining or hca is None:
            going.append(change)
            continue
        # A tenant's own servers share the provider's partitions; one that has left it, or is leaving, joins nothing.
        its_own = staying.get(hca.server_id, frozenset()) if tenant is None else {tenant.slug}
        others = ties.bound.get(hca.server_id, frozenset()) - its_own
        if others:
            is_member = bool(others & ties.members.get(hca.server_id, frozenset()))
            waiting.append(Waiting(change, tuple(sorted(others)), is_member=is_member))
        else:
            going.append(change)
    return tuple(going), tuple(waiting)


def _staying(rows: Iterable[StagedChange], ties: Ties) -> dict[int, frozenset[str]]:
    """For each server the tenants in whose partitions it still is, or is again, once `rows` are current."""
    places = {server: set(its) for server, its in ties.places.items()}
    for change in rows:
        tenant, hca = change.partition.tenant, change.port.hca
        if tenant is None or hca is None or hca.server_id not in places:
            continue
        place = (tenant.slug, int(change.partition.pkey), GUID(change.port.guid))
        if change.kind_to is None:
            places[hca.server_id].discard(place)
        elif not ties.bound.get(hca.server_id, frozenset()) - {tenant.slug}:
            places[hca.server_id].add(place)  # another tenant's addition waits itself
    return {server: frozenset(tenant for tenant, _, _ in its) for server, its in places.items()}


def overtaking(plan: Plan, current: PartitionTable, table: PartitionTable) -> Iterable[Violation]:
    """Refuse what `split` should have kept back, from the plan itself: each port that would change hands.

    Whatever staged the change: a port gains no tenant's key while another's is on its server or was last, and none of
    the provider's while its server leaves a tenant by `table` or is not clean of one. A partition that passes on with
    its ports is a plan that asks for a reason, and no move. Four queries at most.
    """
    yield from _unclean(plan, current, table)
    for taken in passing(plan.found, current, lambda guids: _owners(guids, current)):
        if taken.joins:
            yield Violation(
                rule="between_tenants",
                severity="refuse",
                where=str(taken.guid),
                sentence=f"Port {taken.guid} or its server is or was last in a partition of {taken.holder}, so "
                f"{taken.tenant} may not take it: it leaves first, and joins only once that is proven and its server "
                "is marked clean.",
            )


def _unclean(plan: Plan, current: PartitionTable, table: PartitionTable) -> Iterable[Violation]:
    """A key of the provider's for a port whose server is bound to a tenant that it is with no more."""
    taken = {change.guid for change in plan.found.changes if isinstance(change, Added) and change.tenant is None}
    if not taken:
        return
    after: dict[GUID, set[str]] = defaultdict(set)
    for partition, member in table.memberships():
        if partition.tenant is not None:
            after[member.guid].add(partition.tenant)
    server_of: dict[GUID, int] = {}
    for batch in batches(sorted(taken)):
        rows = Port.objects.filter(guid__in=batch, hca__isnull=False).values_list("guid", "hca__server")
        server_of |= {GUID(guid): server for guid, server in rows}
    ports_of: dict[int, set[GUID]] = defaultdict(set)
    for server, guid in Port.objects.filter(hca__server__in=set(server_of.values())).values_list("hca__server", "guid"):
        ports_of[server].add(GUID(guid))
    for guid, owners in sorted(_owners(taken, current).items()):
        stays = set().union(*(after[port] for port in ports_of.get(server_of.get(guid, 0), {guid})))
        left = sorted(owners - stays)
        if left:
            yield Violation(
                rule="not_clean",
                severity="refuse",
                where=str(guid),
                sentence=f"Port {guid} or its server leaves {left[0]}, or left it and was not marked clean since. "
                "Until then it takes no new key, the provider's included. Take the addition out of this plan; it goes "
                "once the removal is proven and the server is marked clean.",
            )


def _owners(guids: Collection[GUID], current: PartitionTable) -> dict[GUID, set[str]]:
    """To whom the servers of these ports are bound, and whose a port without a server was last. Two queries."""
    rows: list[tuple[str, int | None, str | None]] = []
    for batch in batches(sorted(guids)):
        rows += Port.objects.filter(guid__in=batch).values_list("guid", "hca__server", "former_tenant__slug")
    bound = Ties.of({server for _, server, _ in rows if server is not None}, current).bound
    owners: dict[GUID, set[str]] = {}
    for guid, server, own in rows:
        owners[GUID(guid)] = {own} if own else set()
        if server is not None:
            owners[GUID(guid)] |= bound.get(server, frozenset())
    return owners
