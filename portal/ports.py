"""A tenant's ports with their P_Keys and indexes, as the fabric was last read."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.utils.translation import gettext

from console.lamps import Colour, Lamp
from deploy.queries import latest_observation, observed_fabric
from inventory.models import Port, Server
from partitions.models import Membership, Partition
from subnet.observed import PortReading
from subnet.pkey import DEFAULT_NUMBER, FULL_BIT, PKey


class PortState(StrEnum):
    """What the latest reading says of a port."""

    UNKNOWN = "unknown"  # it was never read
    NO_LINK = "no link"
    SILENT = "did not answer"
    WRONG = "not as it should be"
    RIGHT = "as it should be"


@dataclass(frozen=True, slots=True)
class Held:
    """One partition that a port is to be in, and where its key stands; `index` None: not there when last read."""

    partition: Partition
    name: str
    pkey: str
    kind: str
    index: int | None

    @property
    def is_shared(self) -> bool:
        """Whether it is the provider's."""
        return self.partition.tenant_id is None


@dataclass(frozen=True, slots=True)
class PortRow:
    """One InfiniBand port of a server. `read_at` None: not read. `unexpected` entries are none that it should hold.

    `default`: how the port holds the Default partition, full or limited; "" when it was not read, or does not.
    """

    port: Port
    device: str
    held: tuple[Held, ...]
    lamp: Lamp
    read_at: datetime | None
    unexpected: int
    state: PortState
    default: str


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One server with its ports in order of device and number."""

    server: Server
    ports: tuple[PortRow, ...]

    @property
    def partitions(self) -> tuple[str, ...]:
        """The names of all it is in."""
        return tuple(sorted({held.name for row in self.ports for held in row.held}))

    @property
    def lamp(self) -> Lamp:
        """The worst of its ports."""
        worst = [Colour.BAD, Colour.WARN, Colour.IDLE, Colour.BUSY, Colour.GOOD]
        lamps = [row.lamp for row in self.ports]
        if not lamps:
            return Lamp(Colour.IDLE, "help-circle", gettext("no InfiniBand port"))
        return min(lamps, key=lambda one: worst.index(one.colour))


def server_rows(servers: Collection[Server]) -> list[ServerRow]:
    """The rows of these servers, of one subnet, in their order. Four queries, and parsing the latest reading once."""
    servers = list(servers)
    ports: dict[int, list[Port]] = defaultdict(list)
    rows = Port.objects.filter(hca__server__in=servers, link_layer=Port.LinkLayer.INFINIBAND)
    for port in rows.select_related("hca").order_by("hca__device", "number", "guid"):
        assert port.hca is not None  # noqa: S101  the filter says so
        ports[port.hca.server_id].append(port)
    members: dict[int, list[Membership]] = defaultdict(list)
    ids = [port.pk for its in ports.values() for port in its]
    for row in Membership.objects.filter(port__in=ids).select_related("partition").order_by("partition__name"):
        members[row.port_id].append(row)
    look = latest_observation(servers[0].subnet) if servers else None
    seen: Mapping[str, PortReading] = (
        {} if look is None else {str(k): v for k, v in observed_fabric(look).ports.items()}
    )
    read_at = None if look is None else look.read_at
    return [
        ServerRow(
            server, tuple(_row(port, members[port.pk], seen.get(str(port.guid)), read_at) for port in ports[server.pk])
        )
        for server in servers
    ]


def _row(port: Port, members: Collection[Membership], reading: PortReading | None, read_at: datetime | None) -> PortRow:
    is_read = reading is not None and reading.is_read
    table = reading.pkeys if reading is not None and is_read else {}
    indexes = {number: index for index, number in sorted(table.items(), reverse=True)}
    held = tuple(
        Held(
            partition=row.partition,
            name=row.partition.called,
            pkey=str(PKey(row.partition.pkey)),
            kind=row.kind,
            index=indexes.get(row.partition.pkey | (FULL_BIT if row.kind == "full" else 0)),
        )
        for row in members
    )
    known = {row.partition.pkey for row in members} | {DEFAULT_NUMBER}
    unexpected = sum((number & ~FULL_BIT) not in known for number in table.values())
    state = _state(port, reading, held, unexpected, is_read=is_read)
    default = next((number for number in table.values() if number & ~FULL_BIT == DEFAULT_NUMBER), None)
    assert port.hca is not None  # noqa: S101  only a server's ports come here
    return PortRow(
        port, port.hca.device, held, lamp_of(state), read_at if is_read else None, unexpected, state,
        "" if default is None else "full" if default & FULL_BIT else "limited",
    )  # fmt: skip


def _state(
    port: Port, reading: PortReading | None, held: Collection[Held], unexpected: int, *, is_read: bool
) -> PortState:
    if reading is None and port.seen_at is None:
        return PortState.UNKNOWN
    if reading is None or reading.state == "DOWN" or port.missing_since is not None:
        return PortState.NO_LINK
    if not is_read:
        return PortState.SILENT
    if unexpected or any(one.index is None for one in held):
        return PortState.WRONG
    return PortState.RIGHT


def lamp_of(state: PortState) -> Lamp:
    """How a port's state is drawn."""
    return {
        PortState.UNKNOWN: Lamp(Colour.IDLE, "help-circle", gettext("not read yet")),
        PortState.NO_LINK: Lamp(Colour.WARN, "plug-connected-x", gettext("no link")),
        PortState.SILENT: Lamp(Colour.WARN, "help-circle", gettext("did not answer")),
        PortState.WRONG: Lamp(Colour.BAD, "alert-triangle", gettext("not as it should be")),
        PortState.RIGHT: Lamp(Colour.GOOD, "circle-check", gettext("as it should be")),
    }[state]
