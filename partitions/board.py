"""The board as values: columns of cards and the tray, in a few queries whatever the size of the subnet.

The database counts ports per server and partition; Python only lays out what differs. Nothing here asks who may see
it: the board is the provider's, and the view decides that.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Case, Count, Exists, IntegerField, Min, OuterRef, Q, QuerySet, When

from inventory.models import Port, PortConflict, Server, Subnet
from inventory.ownership import untrusted
from partitions import mirror
from partitions.models import Membership, MembershipKind, Partition, StagedChange
from partitions.tray import Replaced, Tray, replaced, tray_of
from people.models import User
from subnet.pkey import PKey

UNASSIGNED = "unassigned"  # the key of the first column


class Direction(StrEnum):
    """What is staged for a server in a column."""

    IN = "in"
    OUT = "out"
    CHANGE = "change"  # full to limited or back


@dataclass(frozen=True, slots=True)
class Mark:
    """That something is staged, by whom and since when."""

    direction: Direction
    by: str
    is_mine: bool
    at: datetime
    waits: bool = False  # for the server to be clean of its former tenant: no plan takes it yet


class Card(NamedTuple):
    """One server in one column. A tuple with little in it: five thousand are made for the largest board."""

    of: "_Server"
    held: "_Held | None"  # its ports that are (or will be) in this partition; None in Unassigned
    mark: Mark | None

    @property
    def pk(self) -> int:
        """Row id of the server."""
        return self.of.pk

    @property
    def server(self) -> str:
        """Its public id."""
        return self.of.public_id

    @property
    def hostname(self) -> str:
        """Its name."""
        return self.of.hostname

    @property
    def ports(self) -> int:
        """The server's InfiniBand ports, and its members."""
        return self.of.ports

    @property
    def ports_here(self) -> int:
        """Those that are (or will be) in this partition."""
        return self.of.ports if self.held is None else self.held.all

    @property
    def kind(self) -> str:
        """full, limited, mixed; empty in Unassigned."""
        if self.held is None:
            return ""
        if self.held.limited == 0:
            return "full"
        return "limited" if self.held.limited == self.held.all else "mixed"

    @property
    def is_in_conflict(self) -> bool:
        """Whether another server claims one of its ports."""
        return bool(self.of.conflict)

    @property
    def is_unconfirmed(self) -> bool:
        """Whether one of its ports is not confirmed."""
        return self.of.unconfirmed > 0

    @property
    def down(self) -> int:
        """How many of the ports are down, as far as their server or the fabric says."""
        return self.of.down

    @property
    def can_move(self) -> bool:
        """Whether the card may be picked up at all; who has staged it is another question."""
        return bool(self.ports) and not self.is_in_conflict and not self.is_unconfirmed


@dataclass(frozen=True, slots=True)
class Column:
    """Unassigned, or one partition, with its cards as everybody's staged changes want them."""

    pk: int | None  # row id of the partition
    key: str  # "unassigned", or the partition's public id
    name: str
    pkey: str  # 0x…; empty for Unassigned
    tenant: str  # name; empty for Unassigned and for the provider's
    is_provider: bool
    is_retired: bool
    cards: tuple[Card, ...]
    leaving: tuple[Card, ...]  # still members, staged out


@dataclass(frozen=True, slots=True)
class Board:
    """Everything on the page."""

    columns: tuple[Column, ...]
    tray: Tray
    servers: int
    is_settling: bool  # a rollout has ended and the rows do not show it yet


class _Staged(NamedTuple):
    server: int
    port: int
    partition: int
    tenant: int | None  # whose partition it is
    former: int | None  # whose partitions the port was last in
    kind_from: str | None
    kind_to: str | None
    by: int
    first_name: str
    last_name: str
    username: str
    at: datetime

    @property
    def person(self) -> str:
        return f"{self.first_name} {self.last_name}".strip() or self.username


class _Server(NamedTuple):
    pk: int
    public_id: str
    hostname: str
    ports: int
    unconfirmed: int
    conflict: int  # 1: another server claims one of its ports
    down: int


class _Held(NamedTuple):
    """Ports of one server in one partition."""

    all: int
    limited: int


_NOTHING = _Held(0, 0)
_PARTITION, _BY = _Staged._fields.index("partition"), _Staged._fields.index("by")

type _Place = tuple[int, int]  # row ids of server and partition

# A port counts as down when its server says so, when the fabric shows it so or not at all, or when it went missing.
_DOWN = (
    Q(hcas__ports__state__in=("DOWN", "Down", "1: DOWN"))
    | Q(hcas__ports__seen_state__in=("DOWN", "ABSENT"))
    | Q(hcas__ports__missing_since__isnull=False)
)


def board(*, subnet: Subnet, user: User, is_settling: bool | None = None) -> Board:
    """The board of `subnet` as `user` sees it. Four queries, and one more unless the caller says `is_settling`."""
    staged, waiting = _staged(subnet)
    held = _held(subnet)
    servers = _servers(subnet)
    partitions = list(Partition.objects.filter(subnet=subnet).select_related("tenant"))
    return Board(
        columns=tuple(_columns(servers, partitions, held, staged, user)),
        tray=tray_of(staged, waiting, user),
        servers=len(servers),
        is_settling=mirror.is_settling(subnet) if is_settling is None else is_settling,
    )


def tray(*, subnet: Subnet, user: User) -> Tray:
    """The tray alone. One query."""
    return tray_of(*_staged(subnet), user)


def _staged(subnet: Subnet) -> tuple[list[_Staged], list[Replaced]]:
    """What is staged, and what was replaced and waits for a rollout. One query."""
    rows = StagedChange.objects.of_subnet(subnet).values_list(
        "port__hca__server_id",
        "port_id",
        "partition_id",
        "partition__tenant_id",
        "port__former_tenant_id",
        "kind_from",
        "kind_to",
        "by_id",
        "by__first_name",
        "by__last_name",
        "by__username",
        "at",
    )
    everything: Iterable[tuple[Any, ...]] = rows.union(replaced(subnet), all=True)
    staged, waiting = [], []
    for row in everything:
        if row[_PARTITION] is None:
            waiting.append(Replaced(*row[:2], *row[_BY : _BY + 4]))
        else:
            staged.append(_Staged(*row))
    return staged, waiting


def _held(subnet: Subnet) -> dict[_Place, _Held]:
    rows = (
        Membership.objects.filter(partition__subnet=subnet, port__hca__isnull=False)
        .values_list("port__hca__server_id", "partition_id")
        .annotate(all=Count("pk"), limited=Count("pk", filter=Q(kind=MembershipKind.LIMITED)))
    )
    return {(server, partition): _Held(ports, limited) for server, partition, ports, limited in _as_they_come(rows)}


def _servers(subnet: Subnet) -> list[_Server]:
    infiniband = Q(hcas__ports__link_layer=Port.LinkLayer.INFINIBAND)
    # Asked once and not for each server: this is most of what a large board costs.
    disputed = PortConflict.objects.filter(closed_at=None, port__hca__isnull=False).values("port__hca__server")
    # A member counts whatever its server calls it by now: it can still be taken away.
    is_member = Exists(Membership.objects.filter(port=OuterRef("hcas__ports")))
    rows = (
        Server.objects.filter(subnet=subnet)
        .values_list("pk")  # grouped by it alone: each further column is compared for each of the ports
        .annotate(
            Min("public_id"),
            name=Min("hostname"),
            ports=Count("hcas__ports", filter=infiniband | Q(is_member)),
            unconfirmed=Count("hcas__ports", filter=infiniband & untrusted("hcas__ports__")),
            conflict=Case(When(pk__in=disputed, then=1), default=0, output_field=IntegerField()),
            down=Count("hcas__ports", filter=infiniband & _DOWN),
        )
        .order_by("name")
    )
    return [_Server._make(row) for row in _as_they_come(rows)]


def _as_they_come(asked: QuerySet[Any, tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows of texts and numbers just as the database gives them: Django looks at each value by itself, which takes
    half as long as the query.
    """
    with connection.cursor() as cursor:
        cursor.execute(*asked.query.get_compiler(connection=connection).as_sql())
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _columns(
    servers: list[_Server],
    partitions: list[Partition],
    held: Mapping[_Place, _Held],
    staged: Iterable[_Staged],
    user: User,
) -> Iterable[Column]:
    changes: dict[_Place, list[_Staged]] = defaultdict(list)
    by_server: dict[int, list[_Staged]] = defaultdict(list)
    for change in staged:
        changes[change.server, change.partition].append(change)
        by_server[change.server].append(change)
    bound = _bound(partitions, held, by_server)
    stays = _staying(partitions, held, changes, by_server)

    here: dict[int, list[Card]] = defaultdict(list)  # by row id of the partition
    leaving: dict[int, list[Card]] = defaultdict(list)
    in_partitions: dict[int, list[int]] = defaultdict(list)
    for pk, partition in {**held, **dict.fromkeys(changes)}:
        in_partitions[pk].append(partition)
    unassigned: list[Card] = []
    assigned: list[Card] = []
    for server in servers:
        is_wanted_somewhere = was_somewhere = False
        for partition in in_partitions.get(server.pk, ()):
            now = held.get((server.pk, partition), _NOTHING)
            wanted, mark = now, None
            if rows := changes.get((server.pk, partition)):
                wanted, mark = _after(now, rows), _mark(rows, user, bound=bound[server.pk], stays=stays[server.pk])
            was_somewhere |= now.all > 0
            if wanted.all:
                is_wanted_somewhere = True
                here[partition].append(Card(server, wanted, mark))
            elif now.all:
                leaving[partition].append(Card(server, now, mark))
        if not is_wanted_somewhere:
            mark = _mark(by_server[server.pk], user, Direction.IN) if was_somewhere else None
            unassigned.append(Card(server, None, mark))
        elif not was_somewhere:
            assigned.append(Card(server, None, _mark(by_server[server.pk], user, Direction.OUT)))

    yield Column(None, UNASSIGNED, "Unassigned", "", "", False, False, tuple(unassigned), tuple(assigned))
    for row in sorted(partitions, key=_column_order):
        cards, gone = here.get(row.pk, ()), leaving.get(row.pk, ())
        if row.retired_at is not None and not cards and not gone:
            continue
        yield Column(
            pk=row.pk,
            key=row.public_id,
            name=row.name,
            pkey=str(PKey(row.pkey)),
            tenant="" if row.tenant is None else row.tenant.name,
            is_provider=row.tenant is None,
            is_retired=row.retired_at is not None,
            cards=tuple(cards),
            leaving=tuple(gone),
        )


def _column_order(partition: Partition) -> tuple[bool, str, str]:
    """By tenant and name, the provider's last."""
    tenant = partition.tenant
    return tenant is None, "" if tenant is None else tenant.name.lower(), partition.name.lower()


def _after(now: _Held, rows: Iterable[_Staged]) -> _Held:
    """What a server will hold in a partition once `rows` are current."""
    ports, limited = now
    for row in rows:
        ports += (row.kind_to is not None) - (row.kind_from is not None)
        limited += (row.kind_to == MembershipKind.LIMITED) - (row.kind_from == MembershipKind.LIMITED)
    return _Held(ports, limited)


def _bound(
    partitions: Iterable[Partition], held: Iterable[_Place], by_server: Mapping[int, list[_Staged]]
) -> dict[int, set[int]]:
    """For each server with staged changes whose partitions it is in, or was last as far as its staged ports say.

    See `handover.py`.
    """
    owner = {partition.pk: partition.tenant_id for partition in partitions}
    bound: dict[int, set[int]] = defaultdict(set)
    for server, partition in held:
        if server in by_server and (tenant := owner.get(partition)) is not None:
            bound[server].add(tenant)
    for server, rows in by_server.items():
        bound[server] |= {row.former for row in rows if row.former is not None}
    return bound


def _staying(
    partitions: Iterable[Partition],
    held: Mapping[_Place, _Held],
    changes: Mapping[_Place, list[_Staged]],
    by_server: Mapping[int, list[_Staged]],
) -> dict[int, set[int]]:
    """For each server with staged changes the tenants in whose partitions it will be once all is current."""
    owner = {partition.pk: partition.tenant_id for partition in partitions}
    stays: dict[int, set[int]] = defaultdict(set)
    for place in {**held, **dict.fromkeys(changes)}:
        if place[0] not in by_server or (tenant := owner.get(place[1])) is None:
            continue
        if _after(held.get(place, _NOTHING), changes.get(place, ())).all:
            stays[place[0]].add(tenant)
    return stays


def _mark(
    rows: list[_Staged],
    user: User,
    direction: Direction | None = None,
    *,
    bound: Collection[int] = (),
    stays: Collection[int] = (),
) -> Mark:
    newest = max(rows, key=lambda row: row.at)
    if direction is None:
        ends = {(row.kind_from is None, row.kind_to is None) for row in rows}
        direction = {(True, False): Direction.IN, (False, True): Direction.OUT}.get(ends.pop(), Direction.CHANGE)
        if ends:
            direction = Direction.CHANGE
    joins = {row.tenant for row in rows if row.kind_from is None}
    # All rows of one mark are of one partition, so of one owner; the provider's are for tenants that stay.
    others = set(bound) - (set(stays) if joins == {None} else joins)
    return Mark(
        direction=direction,
        by=newest.person,
        is_mine=newest.by == user.pk,
        at=newest.at,
        waits=bool(joins and others),
    )
