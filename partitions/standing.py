"""Standing: where one server's InfiniBand ports are, and where people want them next. Read in four queries."""

from collections.abc import Iterable
from dataclasses import dataclass

from inventory.models import Port, Server
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

    @classmethod
    def of(cls, server: Server) -> "Standing":
        """Read it, and hold the server's row until the transaction ends, so that two people stage in turn.

        Link layer and subnet prefix are the server's own words: they may keep a port from joining, never from leaving.
        """
        Server.objects.select_for_update().get(pk=server.pk)
        known = list(Port.objects.filter(hca__server=server).select_related("former_tenant").order_by("guid"))
        memberships = list(Membership.objects.filter(port__in=known).select_related("partition__tenant"))
        staged = list(StagedChange.objects.filter(port__in=known).select_related("partition__tenant", "by"))
        held = {row.port_id for row in memberships} | {row.port_id for row in staged}
        return cls(
            server=server,
            ports=tuple(port for port in known if port.pk in held or _may_join(port, server)),
            memberships={(row.port_id, row.partition_id): row for row in memberships},
            staged={(row.port_id, row.partition_id): row for row in staged},
        )

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
