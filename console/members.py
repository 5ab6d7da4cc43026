"""Who is where, as the pages of a partition and of a server show it: now, and as people want it next."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from console.four_lamps import Fabric, Four, together, waiting
from deploy.queries import current_revision
from inventory.models import Port, Server
from partitions import handover
from partitions.models import Cleaning, Membership, Partition, StagedChange
from people.models import Tenant


@dataclass(frozen=True, slots=True)
class PortPlace:
    """One port's membership now and as it is wanted; empty means none."""

    guid: str
    device: str
    now: str
    wanted: str


@dataclass(frozen=True, slots=True)
class MemberRow:
    """One server in a partition, or (without a key) the ports that no server has reported."""

    hostname: str
    key: str
    ports: tuple[PortPlace, ...]
    by: str  # whose staged change it is; empty when nothing is staged
    waits: bool  # joins only once it is clean
    server: int = 0  # row id; 0 without one

    def four(self, fabric: Fabric, partition: int, now: datetime) -> Four:
        """The lamps of this server here, or of the ports that have none."""
        staged, joins = waiting([self.by]) if self.is_changing else "", not self.now
        if self.server:
            return fabric.card(server=self.server, partition=partition, staged=staged, joins=joins, now=now)
        here = (partition,)
        its = [
            fabric.port(guid=port.guid, server=0, partitions=here, staged=staged, joins=joins, now=now)
            for port in self.ports
        ]
        return together(its) or its[0]  # a row has a port

    @property
    def now(self) -> str:
        """full, limited, mixed, or empty: not a member yet."""
        return _one(port.now for port in self.ports)

    @property
    def wanted(self) -> str:
        """As `now`, once what is staged has come true; empty: it leaves."""
        return _one(port.wanted for port in self.ports)

    @property
    def is_changing(self) -> bool:
        """Whether anything is staged for it here."""
        return any(port.now != port.wanted for port in self.ports)


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """One partition that a server is in, or will be."""

    partition: Partition
    now: str
    wanted: str
    may_be_full: bool


@dataclass(frozen=True, slots=True)
class ServerTies:
    """The tenant that a server is bound to, while it is in nobody's partition; and who cleaned it last."""

    former: tuple[Tenant, ...]
    is_member: bool
    cleaned: tuple[str, str, datetime, str] | None  # by whom, of which tenant, when, how


def member_rows(partition: Partition) -> tuple[MemberRow, ...]:
    """The members of `partition` by server, those that are staged into it included. Five queries."""
    places: dict[int, dict[str, str]] = defaultdict(lambda: {"now": "", "wanted": ""})
    ports: dict[int, Port] = {}
    for row in Membership.objects.filter(partition=partition).select_related("port__hca__server"):
        ports[row.port_id] = row.port
        places[row.port_id] = {"now": row.kind, "wanted": row.kind}
    staged = list(StagedChange.objects.filter(partition=partition).whole())
    for change in staged:
        ports[change.port_id] = change.port
        places[change.port_id]["wanted"] = change.kind_to or ""
    current = current_revision(partition.subnet)
    # Beside what else is staged for these servers: one that leaves its tenant joins nothing until it is clean.
    servers = {change.port.hca.server_id for change in staged if change.port.hca is not None}
    beside = StagedChange.objects.filter(port__hca__server__in=servers).exclude(partition=partition).whole()
    both = [*staged, *beside] if staged else []
    held_back = [
        row
        for row in (handover.split(both, current.partition_table())[1] if current is not None and both else ())
        if row.change.partition_id == partition.pk
    ]
    waits = {row.server.pk for row in held_back}
    by: dict[int, set[str]] = defaultdict(set)
    for change in staged:
        by[_server_pk(change.port)].add(str(change.by))
    of_server: dict[int, list[Port]] = defaultdict(list)
    for port in ports.values():
        of_server[_server_pk(port)].append(port)
    rows = [
        MemberRow(
            hostname=its[0].hca.server.hostname if its[0].hca is not None else "Ports without a server",
            key=its[0].hca.server.public_id if its[0].hca is not None else "",
            ports=tuple(
                PortPlace(guid=str(port.guid), device="" if port.hca is None else port.hca.device, **places[port.pk])
                for port in sorted(its, key=lambda port: str(port.guid))
            ),
            by=", ".join(sorted(by[server])),
            waits=server in waits,
            server=server,
        )
        for server, its in of_server.items()
    ]
    return tuple(sorted(rows, key=lambda row: (not row.key, row.hostname)))


def server_places(server: Server) -> tuple[ServerPlace, ...]:
    """The partitions that `server` is in now or will be, by name. Three queries."""
    now: dict[int, set[str]] = defaultdict(set)
    wanted: dict[int, dict[int, str]] = defaultdict(dict)
    partitions: dict[int, Partition] = {}
    for row in Membership.objects.filter(port__hca__server=server).select_related("partition__tenant"):
        partitions[row.partition_id] = row.partition
        now[row.partition_id].add(row.kind)
        wanted[row.partition_id][row.port_id] = row.kind
    for change in StagedChange.objects.of_server(server).select_related("partition__tenant"):
        partitions[change.partition_id] = change.partition
        wanted[change.partition_id][change.port_id] = change.kind_to or ""
    bound = any(partition.tenant_id is not None for partition in partitions.values())
    bound = bound or Port.objects.filter(hca__server=server).exclude(former_tenant=None).exists()
    return tuple(
        ServerPlace(
            partition=partition,
            now=_one(now[pk]),
            wanted=_one(wanted[pk].values()),
            may_be_full=partition.tenant_id is not None or not bound,
        )
        for pk, partition in sorted(partitions.items(), key=lambda item: item[1].name.lower())
    )


def server_ties(server: Server) -> ServerTies:
    """What keeps another tenant from taking `server`. Three queries."""
    ports = Port.objects.filter(hca__server=server)
    former = Tenant.objects.filter(pk__in=ports.exclude(former_tenant=None).values("former_tenant")).order_by("name")
    newest = Cleaning.objects.filter(port__in=ports).select_related("by", "tenant").order_by("-at").first()
    return ServerTies(
        former=tuple(former),
        is_member=Membership.objects.filter(port__in=ports, partition__tenant__isnull=False).exists(),
        cleaned=None if newest is None else (newest.doer, newest.tenant.name, newest.at, newest.reason),
    )


def _server_pk(port: Port) -> int:
    return 0 if port.hca is None else port.hca.server_id


def _one(kinds: Iterable[str]) -> str:
    """The kind that all ports share, without those that have none; “mixed” for several."""
    found = {kind for kind in kinds if kind}
    return found.pop() if len(found) == 1 else "mixed" if found else ""
