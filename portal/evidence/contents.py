"""The facts about one tenant as plain values: what the page shows, and what is signed. Nothing of others is in it.

No number of anything that is counted over all tenants (revisions, events, rows), no name of the provider's people, no
name in a file. What is not known is “unknown”, and what was read too long ago says so.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final

from audit.actions import Action
from audit.models import Event
from audit.values import SYSTEM
from deploy.models import Rollout
from inventory.models import Server
from partitions.models import Partition
from people.models import Tenant, User
from portal import sight
from portal.door import Seat
from portal.evidence import checks
from portal.models import RolloutPart
from portal.ports import Held, PortRow, ServerRow, server_rows
from portal.stability import Stability, newest_changes
from subnet.pkey import PKey

STALE_AFTER: Final = timedelta(hours=24)
MOST_ROLLOUTS: Final = 100
UNKNOWN: Final = "unknown"
OPERATOR: Final = "the operator"

_TOLD: Final = (
    Action.ROLLOUT_START, Action.ROLLOUT_PROVEN, Action.ROLLOUT_REFUSED, Action.ROLLOUT_CANCELLED,
    Action.ROLLOUT_RESTORED, Action.ROLLOUT_UNPROVEN, Action.ROLLOUT_DEGRADED, Action.ROLLOUT_STUCK,
)  # fmt: skip


def gather(seat: Seat, *, now: datetime) -> dict[str, Any]:
    """Everything about the tenant of `seat`, as its person may see it now. About twenty queries a fabric.

    Keys: tenant, look, partitions, servers, isolation, probes, rollouts. Times are datetimes; a document has them as
    text.
    """
    servers = list(sight.own_servers(seat).order_by("subnet", "hostname", "pk"))
    rows, stable = _read(servers)
    partitions = list(sight.own_partitions(seat).order_by("name", "pk"))
    shared = list(sight.shared_partitions(seat))
    rollouts = _rollouts(seat.tenant)
    return {
        "tenant": {"id": seat.tenant.public_id, "name": seat.tenant.name},
        "look": _look(rows, rollouts["newest"], now=now),
        "partitions": [_partition(one, rows, seat.tenant) for one in [*partitions, *shared]],
        "servers": [_server(row, stable[row.server.subnet_id]) for row in rows],
        "isolation": checks.isolation(seat.tenant, servers, now=now),
        "probes": checks.probes(partitions, servers),
        "rollouts": rollouts["newest"],
        "rollouts_left_out": rollouts["left_out"],
    }


def _read(servers: Sequence[Server]) -> tuple[list[ServerRow], dict[int, Stability]]:
    """The rows of the servers as their fabric was last read, and how long each index has stood."""
    rows: list[ServerRow] = []
    stable: dict[int, Stability] = {}
    for subnet, some in groupby(servers, key=lambda server: server.subnet):
        its = server_rows(list(some))
        ports = [port for row in its for port in row.ports]
        stable[subnet.pk] = newest_changes(
            subnet=subnet,
            guids=[str(port.port.guid) for port in ports],
            pkeys={held.partition.pkey for port in ports for held in port.held},
        )
        rows += its
    return rows, stable


def _look(rows: Collection[ServerRow], rollouts: Sequence[dict[str, Any]], *, now: datetime) -> dict[str, Any]:
    """How old the oldest reading is that the rest stands on, and whether it is too old to be believed."""
    read = [port.read_at for row in rows for port in row.ports if port.read_at is not None]
    if not read:
        return {"read_at": UNKNOWN, "age_s": UNKNOWN, "is_stale": True, "because": "never read"}
    at = min(read)
    ended = max((one["ended_at"] for one in rollouts if one["ended_at"] != UNKNOWN), default=at)
    # The reading that proves a rollout begins before the rollout ends.
    begun = max((one["begun_at"] for one in rollouts if one["state"] != "refused"), default=at)
    because = "old" if now - at > STALE_AFTER else "changed since" if begun > at and ended > at else ""
    age_s = max(0, int((now - at).total_seconds()))
    return {"read_at": at, "age_s": age_s, "is_stale": bool(because), "because": because}


def _partition(partition: Partition, rows: Collection[ServerRow], tenant: Tenant) -> dict[str, Any]:
    ports = [
        (row.server.pk, port)
        for row in rows
        for port in row.ports
        if any(held.partition.pk == partition.pk for held in port.held)
    ]
    is_own = partition.tenant_id == tenant.pk
    return {
        "id": partition.public_id,
        "name": partition.called,
        "pkey": str(PKey(partition.pkey)),
        "owner": "tenant" if is_own else "provider",
        "servers": len({server for server, _ in ports}),
        "ports": len(ports),
        "created_at": partition.created_at if is_own else "",
        "retired_at": partition.retired_at or "",
    }


def _server(row: ServerRow, stable: Stability) -> dict[str, Any]:
    return {
        "id": row.server.public_id,
        "name": row.server.hostname,
        "ports": [_port(port, stable) for port in row.ports],
    }


def _port(port: PortRow, stable: Stability) -> dict[str, Any]:
    is_read = port.read_at is not None
    return {
        "guid": str(port.port.guid),
        "device": port.device,
        "port": port.port.number,
        "state": port.state.value,
        "read_at": port.read_at or UNKNOWN,
        "default": (port.default or "absent") if is_read else UNKNOWN,
        "keys": [_key(held, port, stable) for held in port.held],
        "unexpected_keys": port.unexpected if is_read else UNKNOWN,
    }


def _key(held: Held, port: PortRow, stable: Stability) -> dict[str, Any]:
    place = (str(port.port.guid), held.partition.pkey)
    change = stable.changes.get(place)
    index: int | str = UNKNOWN if port.read_at is None else "absent" if held.index is None else held.index
    return {
        "partition": held.partition.public_id,
        "name": held.name,
        "pkey": held.pkey,
        "membership": held.kind,
        "index": index,
        "index_changed_at": change.at if change is not None else "",
        "index_known_since": (isinstance(index, int) and stable.known.get(place)) or UNKNOWN,
    }


def _rollouts(tenant: Tenant) -> dict[str, Any]:
    """What changed this tenant's memberships, newest first, with the hashes of the trail's events. Four queries."""
    parts = RolloutPart.objects.filter(tenant=tenant).select_related("rollout").defer("rollout__read_back")
    found = list(parts.order_by("-rollout")[:MOST_ROLLOUTS])
    events = _events([part.rollout.public_id for part in found])
    people = {one.public_id: str(one) for one in User.objects.filter(tenant_roles__tenant=tenant)}
    return {
        "newest": [_rollout(part, events[part.rollout.public_id], people) for part in found],
        "left_out": max(0, parts.count() - MOST_ROLLOUTS),
    }


def _events(rollouts: Collection[str]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = defaultdict(list)
    rows = Event.objects.filter(rollout_key__in=rollouts, action__in=[action.value for action in _TOLD])
    for event in rows.order_by("number").only("rollout_key", "action", "at", "hash"):
        found[event.rollout_key].append(event)
    return found


def _rollout(part: RolloutPart, events: Collection[Event], people: dict[str, str]) -> dict[str, Any]:
    rollout = part.rollout
    state = Rollout.State(rollout.state)
    by = "FabricUI" if rollout.started_by_key == SYSTEM.key else people.get(rollout.started_by_key, OPERATOR)
    return {
        "begun_at": rollout.requested_at,
        "ended_at": rollout.finished_at or UNKNOWN,
        "state": "running" if state.is_running else state.label,
        "by": by,
        "changes": part.changes,
        "events": [{"action": event.action, "at": event.at, "hash": event.hash} for event in events],
    }
