"""A server's ports as its page shows them: what the agent said beside what the fabric was last read to hold."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from console import lamps
from console.four_lamps import Fabric, Four, waiting
from console.plans import Key, table_keys
from deploy import queries
from inventory.models import Port, PortConflict, Server
from inventory.ownership import is_trusted
from partitions.models import Membership, Partition, StagedChange
from subnet.witness import ABSENT

NO_FABRIC: Final = Fabric()


@dataclass(frozen=True, slots=True)
class PortRow:
    """One port. `keys` is None when the fabric was never read, or did not show the port."""

    port: Port
    device: str
    standing: lamps.Lamp | None  # None for Ethernet, which can never be a member
    is_unconfirmed: bool
    keys: tuple[Key, ...] | None
    partitions: tuple[str, ...]
    four: Four | None  # None for Ethernet


def port_rows(
    server: Server, *, staged: Iterable[StagedChange] = (), fabric: Fabric = NO_FABRIC, now: datetime
) -> list[PortRow]:
    """All ports of `server`, in order of device and number; with what is staged for them and known of the fabric."""
    ports = list(Port.objects.of_server(server).select_related("subnet"))
    observation = queries.latest_observation(server.subnet)
    seen = {} if observation is None else queries.observed_fabric(observation).ports
    names = dict(Partition.objects.filter(subnet=server.subnet).values_list("pkey", "name"))
    contested = set(PortConflict.objects.filter(port__in=ports, closed_at=None).values_list("port_id", flat=True))
    memberships: dict[int, list[str]] = {}
    homes: dict[int, list[int]] = defaultdict(list)
    changes: dict[int, set[str]] = defaultdict(set)
    for change in staged:
        changes[change.port_id].add(str(change.by))
    for member in Membership.objects.filter(port__in=ports).select_related("partition").order_by("partition__name"):
        memberships.setdefault(member.port_id, []).append(f"{member.partition.name}, {member.kind}")
        homes[member.port_id].append(member.partition_id)
    rows = []
    for port in ports:
        is_infiniband = port.link_layer == Port.LinkLayer.INFINIBAND
        reading = seen.get(port.guid)
        rows.append(
            PortRow(
                port=port,
                device=port.hca.device if port.hca is not None else "",
                standing=lamps.port(is_confirmed=is_trusted(port), has_conflict=port.pk in contested)
                if is_infiniband
                else None,
                is_unconfirmed=is_infiniband and not is_trusted(port),
                keys=table_keys(reading.pkeys, names) if reading is not None and reading.is_read else None,
                partitions=tuple(memberships.get(port.pk, ())),
                four=fabric.port(
                    guid=str(port.guid),
                    server=server.pk,
                    partitions=homes[port.pk],
                    staged=waiting(changes[port.pk]),
                    joins=bool(changes[port.pk]) and not homes[port.pk],
                    now=now,
                    is_there=port.seen_state != ABSENT and port.missing_since is None,
                )
                if is_infiniband
                else None,
            )
        )
    return rows
