"""One server's page as values: ports, what to paste for each partition, and when an index last changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from inventory.models import Server
from portal.pasting import Paste, Place, settings_for
from portal.ports import PortRow, ServerRow, server_rows
from portal.stability import Change, Stability, newest_changes


@dataclass(frozen=True, slots=True)
class Moved:
    """The newest change of an index: on which port, from where to where, and when."""

    device: str
    number: int
    change: Change


@dataclass(frozen=True, slots=True)
class PartitionPart:
    """One partition that the server is in, with what to paste and the newest change of its index on each port.

    `since`: from when on FabricUI can say of every port whether its index changed; None if of one it cannot.
    """

    name: str
    pkey: str
    is_shared: bool
    paste: Paste
    moved: tuple[Moved, ...]
    since: datetime | None


@dataclass(frozen=True, slots=True)
class ServerPage:
    """All of it."""

    row: ServerRow
    parts: tuple[PartitionPart, ...]

    @property
    def read_at(self) -> datetime | None:
        """When the fabric was last read."""
        return max((port.read_at for port in self.row.ports if port.read_at is not None), default=None)


def server_page(server: Server) -> ServerPage:
    """The page of one server. Ten queries at most."""
    row = server_rows([server])[0]
    guids = [str(one.port.guid) for one in row.ports]
    found = {held.partition.pk: held for one in row.ports for held in one.held}
    numbers = {held.partition.pkey for held in found.values()}
    stability = newest_changes(subnet=server.subnet, guids=guids, pkeys=numbers)
    parts = []
    for pk, held in sorted(found.items(), key=lambda item: (item[1].is_shared, item[1].name.lower())):
        places = _places(row.ports, pk)
        changes = [
            Moved(one.device, one.port.number, stability.changes[key])
            for one in row.ports
            if (key := (str(one.port.guid), held.partition.pkey)) in stability.changes
        ]
        is_limited = any(other.kind != "full" for one in row.ports for other in one.held if other.partition.pk == pk)
        parts.append(
            PartitionPart(
                name=held.name,
                pkey=held.pkey,
                is_shared=held.is_shared,
                paste=settings_for(places=places, pkey=held.pkey, is_limited=is_limited),
                moved=tuple(sorted(changes, key=lambda moved: moved.change.at, reverse=True)),
                since=_since(row.ports, pk, stability),
            )
        )
    return ServerPage(row, tuple(parts))


def _places(ports: Sequence[PortRow], partition: int) -> list[Place]:
    return [
        Place(one.device, one.port.number, held.index)
        for one in ports
        for held in one.held
        if held.partition.pk == partition
    ]


def _since(ports: Sequence[PortRow], partition: int, stability: Stability) -> datetime | None:
    found = [
        stability.known.get((str(one.port.guid), held.partition.pkey)) if held.index is not None else None
        for one in ports
        for held in one.held
        if held.partition.pk == partition
    ]
    times = [at for at in found if at is not None]
    return max(times) if times and len(times) == len(found) else None
