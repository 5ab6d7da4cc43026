"""Standing: where servers' InfiniBand ports are, and where people want them next. Six queries for up to 500 ports."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from inventory.models import ManagerHost, Port, PortConflict, Server
from partitions import mirror
from partitions.models import Membership, MembershipKind, Partition, StagedChange
from people.models import Tenant

type Place = tuple[int, int]  # row ids of port and partition


@dataclass(frozen=True)
class Standing:
    """A server's ports with their memberships and staged changes, keyed by port and partition."""

    server: Server
    ports: tuple[Port, ...]  # those that can join a partition here, and all that are members or staged
    memberships: dict[Place, Membership]
    staged: dict[Place, StagedChange]

    # What keeps ports from moving, of the known ones: SM port GUID → its manager host, and the oldest open conflict.
    sm_ports: Mapping[str, str] = field(default_factory=dict)
    disputed: PortConflict | None = None

    @classmethod
    def of(cls, server: Server) -> "Standing":
        """Read one server's, as `of_all`."""
        return cls.of_all([server])[server.pk]

    @classmethod
    def of_all(cls, servers: Iterable[Server]) -> dict[int, "Standing"]:
        """Read them, by row id of the server, and hold the servers' rows until the transaction ends.

        So two people stage in turn; the rows are held in their order, so that none waits for the other in a ring.
        Link layer and subnet prefix are the server's own words: they may keep a port from joining, never from leaving.
        """
        asked = {server.pk: server for server in servers}
        known: dict[int, list[Port]] = defaultdict(list)
        for some in mirror.batches(sorted(asked)):
            list(Server.objects.select_for_update().filter(pk__in=some).order_by("pk").values_list("pk"))
        for some in mirror.batches(sorted(asked)):
            ports = Port.objects.filter(hca__server__in=some).select_related("former_tenant", "hca")
            for port in ports.order_by("guid"):
                assert port.hca is not None  # noqa: S101  the filter says so
                known[port.hca.server_id].append(port)
        owner = {port.pk: server for server, its in known.items() for port in its}
        memberships: dict[int, list[Membership]] = defaultdict(list)
        staged: dict[int, list[StagedChange]] = defaultdict(list)
        conflicts: dict[int, list[PortConflict]] = defaultdict(list)
        for some in mirror.batches(sorted(owner)):
            for row in Membership.objects.filter(port__in=some).select_related("partition__tenant"):
                memberships[owner[row.port_id]].append(row)
            for change in StagedChange.objects.filter(port__in=some).select_related("partition__tenant", "by"):
                staged[owner[change.port_id]].append(change)
            disputes = PortConflict.objects.filter(port__in=some, closed_at=None)
            for dispute in disputes.select_related("port", "claimed_by").order_by("pk"):
                conflicts[owner[dispute.port_id]].append(dispute)
        managers = ManagerHost.objects.filter(subnet__in={server.subnet_id for server in asked.values()})
        hosts = {(subnet, guid): name for subnet, guid, name in managers.values_list("subnet", "port_guid", "name")}
        found: dict[int, Standing] = {}
        for pk, server in asked.items():
            held = {row.port_id for row in memberships[pk]} | {row.port_id for row in staged[pk]}
            fit = {port.pk: port for port in known[pk] if port.pk in held or _may_join(port, server)}
            places = {port.guid: (server.subnet_id, port.guid) for port in fit.values()}
            found[pk] = cls(
                server=server,
                ports=tuple(fit.values()),
                memberships={(row.port_id, row.partition_id): row for row in memberships[pk]},
                staged={(row.port_id, row.partition_id): row for row in staged[pk]},
                sm_ports={guid: hosts[place] for guid, place in places.items() if place in hosts},
                disputed=next((one for one in conflicts[pk] if one.port_id in fit), None),
            )
        return found

    def current(self, place: Place) -> MembershipKind | None:
        """How the port belongs to the partition in the current revision."""
        row = self.memberships.get(place)
        return None if row is None else MembershipKind(row.kind)

    def wanted(self, place: Place) -> MembershipKind | None:
        """How it belongs once everything staged is current: what the board shows."""
        row = self.staged.get(place)
        if row is None:
            return self.current(place)
        return None if row.kind_to is None else MembershipKind(row.kind_to)

    def partitions_now(self) -> list[Partition]:
        """The partitions of the current revision that any port is in, in order of name."""
        return _by_name(row.partition for row in self.memberships.values())

    def partitions_wanted(self) -> list[Partition]:
        """The partitions that the board shows the server in, in order of name."""
        rows: tuple[Membership | StagedChange, ...] = (*self.memberships.values(), *self.staged.values())
        return _by_name(row.partition for row in rows if self.wanted((row.port_id, row.partition_id)) is not None)

    def is_in(self, partition: Partition) -> bool:
        """Whether the board shows the server in `partition`."""
        return any(self.wanted((port.pk, partition.pk)) is not None for port in self.ports)

    def tenants_now(self) -> set[Tenant]:
        """Whose partitions the ports are in, or were last proven in."""
        now = {partition.tenant for partition in self.partitions_now()}
        former = {port.former_tenant for port in self.ports}
        return {tenant for tenant in now | former if tenant is not None}


def _may_join(port: Port, server: Server) -> bool:
    """Whether the port says it is InfiniBand and cabled to this subnet; a move to here concerns no other."""
    is_elsewhere = port.subnet_prefix is not None and port.subnet_prefix != server.subnet.prefix
    return port.link_layer == Port.LinkLayer.INFINIBAND and not is_elsewhere


def in_words(partitions: Iterable[Partition]) -> str:
    """Their names as a list in a sentence, or “no partition”."""
    names = [partition.name for partition in partitions]
    if not names:
        return "no partition"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _by_name(partitions: Iterable[Partition]) -> list[Partition]:
    return sorted(set(partitions), key=lambda partition: partition.name.lower())
