"""The board as values: columns of cards, who has staged what, and the counts of the tray.

Read in five queries whatever the size (the subnet is a sixth), because 5,000 servers are 40,000 ports.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.db.models import Exists, OuterRef

from console import lamps
from inventory.models import Port, PortConflict, Server, Subnet
from partitions.models import Membership, Partition, StagedChange
from people.models import User
from subnet.pkey import PKey

UNASSIGNED = "unassigned"  # stands where a partition's public id would


@dataclass(frozen=True, slots=True)
class StagedNote:
    """What is staged for a server, in words: "from → to", and by whom. `leaves` is empty when it only joins."""

    leaves: str
    joins: str
    by: str
    is_mine: bool


@dataclass(frozen=True, slots=True)
class Card:
    """One server in one column. `trouble` is None when all its ports may be staged."""

    key: str
    hostname: str
    ports: int
    trouble: lamps.Lamp | None
    staged: StagedNote | None

    @property
    def search(self) -> str:
        """What the search box looks through."""
        words = [self.hostname.lower()]
        if self.staged is not None:
            words += ["staged", self.staged.by.lower()]
        if self.trouble is not None:
            words.append(self.trouble.word)
        return " ".join(words)


@dataclass(slots=True)
class Column:
    """One partition, or the servers that are in none (`key` is UNASSIGNED)."""

    key: str
    name: str
    pkey: str
    tenant: str
    cards: list[Card] = field(default_factory=list)
    loose_ports: int = 0  # members that no server has reported


@dataclass(frozen=True, slots=True)
class Group:
    """A tenant's columns, or the provider's."""

    name: str
    columns: tuple[Column, ...]

    @property
    def servers(self) -> int:
        """How many different servers stand in them."""
        return len({card.key for column in self.columns for card in column.cards})


@dataclass(frozen=True, slots=True)
class Share:
    """How much one person has staged."""

    name: str
    servers: int
    ports: int


@dataclass(frozen=True, slots=True)
class Tray:
    """Everything staged, mine apart from others'."""

    mine: Share
    others: tuple[Share, ...]
    servers: int
    ports: int


@dataclass(frozen=True, slots=True)
class Board:
    """All of it."""

    unassigned: Column
    groups: tuple[Group, ...]
    tray: Tray
    servers: int

    @property
    def has_partitions(self) -> bool:
        """Whether there is any column beside Unassigned."""
        return bool(self.groups)


@dataclass(frozen=True, slots=True)
class _Staged:
    server: int
    port: int
    partition: int
    kind_from: str | None
    kind_to: str | None
    by: int


def read_board(*, subnet: Subnet, user: User) -> Board:
    """The board as `user` may see it."""
    partitions = {
        partition.pk: partition
        for partition in Partition.objects.filter(subnet=subnet, retired_at=None)
        .select_related("tenant")
        .order_by("tenant__name", "name")
    }
    servers = {
        pk: (key, hostname)
        for pk, key, hostname in Server.objects.visible_to(user)
        .filter(subnet=subnet)
        .order_by("hostname")
        .values_list("pk", "public_id", "hostname")
    }
    ports = _ports(subnet)
    wanted = {(port, partition): kind for port, partition, kind in _memberships(subnet)}
    staged, names = _staged(subnet)
    for change in staged:
        if change.kind_to is None:
            wanted.pop((change.port, change.partition), None)
        else:
            wanted[change.port, change.partition] = change.kind_to

    columns = {pk: _column(partition) for pk, partition in partitions.items()}
    places: dict[int, set[int]] = defaultdict(set)  # server → partitions
    for port, partition in wanted:
        server = ports[port][0] if port in ports else None
        if partition not in columns:
            continue
        if server is None or server not in servers:
            columns[partition].loose_ports += 1
        else:
            places[server].add(partition)

    notes = _notes(staged, names, partitions, user)
    cards = _cards(servers=servers, ports=ports, notes=notes)
    unassigned = Column(UNASSIGNED, "Unassigned", "", "")
    for server in servers:
        homes = places.get(server)
        if not homes:
            unassigned.cards.append(cards[server])
        for partition in homes or ():
            columns[partition].cards.append(cards[server])
    return Board(
        unassigned=unassigned,
        groups=tuple(_groups(columns[pk] for pk in partitions)),
        tray=_tray(staged, names, user),
        servers=len(servers),
    )


def _ports(subnet: Subnet) -> dict[int, tuple[int | None, bool, bool, str]]:
    """Row id → (server, confirmed, in conflict, link state), of InfiniBand ports."""
    conflict = PortConflict.objects.filter(port=OuterRef("pk"), closed_at=None)
    rows = (
        Port.objects.filter(subnet=subnet, link_layer=Port.LinkLayer.INFINIBAND)
        .annotate(in_conflict=Exists(conflict))
        .values_list("pk", "hca__server_id", "confirmed_at", "in_conflict", "state")
    )
    return {pk: (server, confirmed is not None, conflict, state) for pk, server, confirmed, conflict, state in rows}


def _memberships(subnet: Subnet) -> Iterable[tuple[int, int, str]]:
    return Membership.objects.filter(partition__subnet=subnet).values_list("port_id", "partition_id", "kind")


def _staged(subnet: Subnet) -> tuple[list[_Staged], dict[int, str]]:
    """The staged changes of servers' ports, and the names of those who staged them."""
    rows, names = [], {}
    for change in (
        StagedChange.objects.filter(partition__subnet=subnet, port__hca__isnull=False)
        .select_related("by", "port__hca")
        .order_by("pk")
    ):
        assert change.port.hca is not None  # noqa: S101  the filter says so
        server = change.port.hca.server_id
        names[change.by_id] = str(change.by)
        rows.append(
            _Staged(server, change.port_id, change.partition_id, change.kind_from, change.kind_to, change.by_id)
        )
    return rows, names


def _column(partition: Partition) -> Column:
    tenant = partition.tenant.name if partition.tenant is not None else "Provider"
    return Column(partition.public_id, partition.name, str(PKey(partition.pkey)), tenant)


def _groups(columns: Iterable[Column]) -> Iterable[Group]:
    """Columns by tenant in order of name; the provider's own last."""
    by_tenant: dict[str, list[Column]] = defaultdict(list)
    for column in columns:
        by_tenant[column.tenant].append(column)
    for name in sorted(by_tenant, key=lambda name: (name == "Provider", name.lower())):
        yield Group(name, tuple(by_tenant[name]))


def _cards(
    *,
    servers: Mapping[int, tuple[str, str]],
    ports: Mapping[int, tuple[int | None, bool, bool, str]],
    notes: Mapping[int, StagedNote],
) -> dict[int, Card]:
    counts: dict[int, int] = defaultdict(int)
    trouble: dict[int, list[lamps.Lamp]] = defaultdict(list)
    for server, is_confirmed, in_conflict, state in ports.values():
        if server is None:
            continue
        counts[server] += 1
        for lamp in (lamps.port(is_confirmed=is_confirmed, has_conflict=in_conflict), lamps.link(state)):
            if lamp.colour in (lamps.Colour.BAD, lamps.Colour.WARN):
                trouble[server].append(lamp)
    return {
        pk: Card(
            key=key,
            hostname=hostname,
            ports=counts[pk],
            trouble=min(trouble[pk], key=_urgency) if trouble[pk] else None,
            staged=notes.get(pk),
        )
        for pk, (key, hostname) in servers.items()
    }


def _urgency(lamp: lamps.Lamp) -> int:
    return 0 if lamp.colour is lamps.Colour.BAD else 1


def _notes(
    staged: Iterable[_Staged], names: Mapping[int, str], partitions: Mapping[int, Partition], user: User
) -> dict[int, StagedNote]:
    """For each server with staged changes: what it leaves, what it joins, and by whom."""
    by_server: dict[int, list[_Staged]] = defaultdict(list)
    for change in staged:
        by_server[change.server].append(change)
    notes = {}
    for server, changes in by_server.items():
        leaves = {change.partition for change in changes if change.kind_to is None}
        joins = {change.partition for change in changes if change.kind_from is None}
        stays = [change for change in changes if change.kind_from is not None and change.kind_to is not None]
        if stays and not leaves and not joins:
            name = _names([stays[0].partition], partitions)
            left, joined = f"{stays[0].kind_from} in {name}", f"{stays[0].kind_to}"
        else:
            left = _names(leaves, partitions)
            joined = _names(joins, partitions) or "nowhere else"
        owners = sorted({change.by for change in changes})
        notes[server] = StagedNote(
            left, joined, by=", ".join(names[owner] for owner in owners), is_mine=user.pk in owners
        )
    return notes


def _names(ids: Iterable[int], partitions: Mapping[int, Partition]) -> str:
    return ", ".join(sorted(partitions[pk].name for pk in ids if pk in partitions))


def _tray(staged: Iterable[_Staged], names: Mapping[int, str], user: User) -> Tray:
    servers: dict[int, set[int]] = defaultdict(set)
    ports: dict[int, set[int]] = defaultdict(set)
    for change in staged:
        servers[change.by].add(change.server)
        ports[change.by].add(change.port)
    shares = {owner: Share(names[owner], len(servers[owner]), len(ports[owner])) for owner in servers}
    return Tray(
        mine=shares.get(user.pk, Share(str(user), 0, 0)),
        others=tuple(shares[owner] for owner in sorted(shares, key=lambda owner: names[owner]) if owner != user.pk),
        servers=len(set().union(*servers.values())),
        ports=len(set().union(*ports.values())),
    )
