"""The plan as its page shows it: each server's way, each port's P_Keys before and after, in words and texts."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from partitions.handover import Waiting
from partitions.models import StagedChange
from partitions.operations import DrawnPlan
from people.models import Tenant
from subnet.index import Prediction
from subnet.pkey import FULL_BIT, PKey, entry_text
from subnet.plan import PortChange

UNASSIGNED_NAME = "Unassigned"


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of a P_Key table: index (“2”, or the indexes it may take), the entry, the partition's name."""

    index: str
    entry: str
    partition: str
    change: str  # "", "gain" or "loss"
    takeover: str = ""  # the indexes it may take when another SM takes over, where they are others


@dataclass(frozen=True, slots=True)
class PortRow:
    """One affected port. `before` and `after` are None when the port was not read."""

    guid: str
    device: str
    before: tuple[Key, ...] | None
    after: tuple[Key, ...] | None
    gains: tuple[Key, ...]
    losses: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One server of the plan, its way, and its affected ports."""

    hostname: str
    key: str
    leaves: str
    joins: str
    by: str
    ports: tuple[PortRow, ...]


@dataclass(frozen=True, slots=True)
class SecondHalf:
    """A server that another tenant takes once it is clean: the half of its move that this plan leaves out."""

    hostname: str
    key: str
    joins: str
    tenant: str  # who will have it
    former: str  # who has, or had it
    leaves_now: bool  # whether its first half is in this plan
    is_member: bool  # whether it is still a member somewhere of the former's
    ports: int
    by: str


def second_halves(drawn: DrawnPlan) -> tuple[SecondHalf, ...]:
    """What waits, server by server."""
    by_server: dict[int, list[Waiting]] = defaultdict(list)
    for waiting in drawn.waiting:
        by_server[waiting.server.pk].append(waiting)
    leaving = {change.port_id for change in drawn.changes if change.kind_to is None}
    names = dict(Tenant.objects.values_list("slug", "name")) if by_server else {}
    halves = []
    for rows in by_server.values():
        first = rows[0]
        halves.append(
            SecondHalf(
                hostname=first.server.hostname,
                key=first.server.public_id,
                joins=_named(row.change for row in rows),
                tenant=str(first.change.partition.tenant or "the provider"),
                former=", ".join(names.get(slug, slug) for slug in first.tenants),
                leaves_now=any(row.change.port_id in leaving for row in rows),
                is_member=any(row.is_member for row in rows),
                ports=len({row.change.port_id for row in rows}),
                by=", ".join(sorted({str(row.change.by) for row in rows})),
            )
        )
    return tuple(sorted(halves, key=lambda half: half.hostname))


def actions_here(drawn: DrawnPlan) -> int:
    """What the same costs with FabricUI: stage each server and Default, review, confirm; none with nothing to do."""
    staged = len(drawn.servers) + (drawn.default is not None)
    return 0 if drawn.is_idle else staged + 2


def server_rows(drawn: DrawnPlan) -> tuple[ServerRow, ...]:
    """Every server of the plan by hostname, with its ports in order of GUID."""
    names = {int(partition.pkey): partition.name for partition in (*drawn.current.partitions, *drawn.table.partitions)}
    changes: dict[int, list[StagedChange]] = defaultdict(list)
    for change in drawn.changes:
        if change.port.hca is not None:
            changes[change.port.hca.server_id].append(change)
    planned = {port.guid: port for port in drawn.plan.ports}
    held = drawn.current.by_port()
    rows = []
    for server in drawn.servers:
        staged = changes[server.pk]
        devices = {change.port.guid: change.port.hca.device for change in staged if change.port.hca is not None}
        rows.append(
            ServerRow(
                hostname=server.hostname,
                key=server.public_id,
                leaves=_named(change for change in staged if change.kind_to is None)
                or ("" if any(guid in held for guid in devices) else UNASSIGNED_NAME),
                joins=_joined(staged),
                by=", ".join(sorted({str(change.by) for change in staged})),
                ports=tuple(
                    port_row(planned[guid], device, names)
                    for guid, device in sorted(devices.items())
                    if guid in planned
                ),
            )
        )
    return tuple(rows)


def index_text(indexes: Collection[int]) -> str:
    """A set of indexes in few characters: `2`, `2–31`, `2, 5–9`; “no room” for none."""
    if not indexes:
        return "no room"
    spans: list[list[int]] = []
    for index in sorted(indexes):
        if spans and spans[-1][1] == index - 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in spans)


def table_keys(table: Mapping[int, int], names: Mapping[int, str]) -> tuple[Key, ...]:
    """A P_Key table in order of index."""
    return tuple(_key(str(index), number, names) for index, number in sorted(table.items()))


def _named(changes: Iterable[StagedChange]) -> str:
    return ", ".join(sorted({change.partition.name for change in changes}))


def _joined(staged: list[StagedChange]) -> str:
    joined = _named(change for change in staged if change.kind_to is not None and change.kind_from is None)
    altered = sorted(
        {f"{change.partition.name} ({change.kind_to})" for change in staged if change.kind_from and change.kind_to}
    )
    return ", ".join([*([joined] if joined else []), *altered]) or UNASSIGNED_NAME


def port_row(port: PortChange, device: str, names: Mapping[int, str]) -> PortRow:
    """One affected port's table as read and as predicted; `names` are the partitions' by 15-bit key."""
    losses, gains = set(port.losses), set(port.gains)
    before = after = None
    if port.before is not None:
        before = tuple(
            _key(str(index), number, names, "loss" if number in losses else "")
            for index, number in sorted(port.before.items())
        )
    if port.prediction is not None:
        kept = [
            _key(str(index), number, names, "gain" if number in gains else "")
            for index, number in sorted(port.prediction.survivors.items())
        ]
        new = [
            _key(index_text(port.prediction.new[number]), number, names, "gain", _takeover(port.prediction, number))
            for number in sorted(port.prediction.new)
        ]
        after = (*kept, *new)
    return PortRow(
        guid=port.guid,
        device=device,
        before=before,
        after=after,
        gains=tuple(_key("", number, names, "gain") for number in port.gains),
        losses=tuple(_key("", number, names, "loss") for number in port.losses),
    )


def _takeover(prediction: Prediction, number: int) -> str:
    """Where a new entry may stand after a takeover; empty when that is where a re-read puts it."""
    indexes = prediction.after_takeover.get(number, prediction.new[number])
    return "" if indexes == prediction.new[number] else index_text(indexes)


def _key(index: str, number: int, names: Mapping[int, str], change: str = "", takeover: str = "") -> Key:
    key = number & ~FULL_BIT
    name = "Default" if PKey(key).is_default else names.get(key, "not ours")
    kind = "full" if number & FULL_BIT else "limited"
    return Key(index=index, entry=entry_text(number), partition=f"{name}, {kind}", change=change, takeover=takeover)
