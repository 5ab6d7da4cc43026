"""Verdicts on isolation and results of probes, of a tenant's own servers. What is at the other end is never told."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Q

from inventory.models import Server
from partitions.models import Partition
from people.models import Tenant
from probes.models import IsolationCheck, ProbePair
from probes.verdict import Isolation

LOOKS_BACK: Final = timedelta(days=30)
MOST_CHECKS: Final = 20_000  # newest, that are gone through
MOST_PAIRS: Final = 500
UNKNOWN: Final = "unknown"

Plane = IsolationCheck.Plane
# The worst first: of several ports outside the one that was reached counts.
_WORST: Final = (Isolation.LEAK, Isolation.INCONCLUSIVE, Isolation.ISOLATED)


def isolation(tenant: Tenant, servers: Collection[Server], *, now: datetime) -> list[dict[str, Any]]:
    """For each server and plane the worst of the newest verdicts on each port outside. One query.

    Only of the time in which the server was this tenant's, and with the day alone: the moment of a check after a
    rollout would be that of a change of somebody else's.
    """
    ids = {server.pk for server in servers}
    mine = Q(sender__in=ids) | Q(target__in=ids)
    rows = IsolationCheck.objects.filter(mine, state=IsolationCheck.State.DONE, finished_at__gte=now - LOOKS_BACK)
    columns = (
        "plane", "sender_id", "sender_guid", "sender_tenant", "target_id", "target_guid", "target_tenant", "verdict",
        "finished_at",
    )  # fmt: skip
    newest: dict[tuple[int, str], dict[tuple[object, ...], tuple[str, datetime]]] = defaultdict(dict)
    for plane, *ends, verdict, at in rows.order_by("-pk").values_list(*columns)[:MOST_CHECKS]:
        own = [end for end in (ends[:3], ends[3:]) if end[0] in ids]
        if len(own) == 2:  # they were strangers then; by now both are the tenant's
            continue
        ((server, _, label),) = own
        if tenant.slug in label.split(", "):
            newest[server, plane].setdefault(tuple(ends), (verdict, at))
    return [
        {
            "server": server.public_id,
            "name": server.hostname,
            **{plane.value.lower(): _verdict(newest[server.pk, plane.value].values()) for plane in Plane},
        }
        for server in servers
    ]


def _verdict(found: Iterable[tuple[str, datetime]]) -> dict[str, str]:
    found = list(found)
    if not found:
        return {"verdict": UNKNOWN, "day": UNKNOWN}
    worst = next(verdict for verdict in _WORST if any(verdict == one for one, _ in found))
    return {"verdict": worst.value, "day": f"{max(at for one, at in found if one == worst):%Y-%m-%d}"}


def probes(partitions: Collection[Partition], servers: Collection[Server]) -> dict[str, Any]:
    """The newest result of each pair of own servers in own partitions, those that went wrong first. One query.

    A server that was another's meanwhile is left out: its name would be theirs.
    """
    ids = [server.pk for server in servers]
    rows = ProbePair.objects.filter(
        scope__partition__in=partitions, sender__server__in=ids, target__server__in=ids
    ).select_related("scope__partition", "sender__server", "target__server")
    ordered = sorted(rows, key=lambda row: row.newest_at, reverse=True)
    ordered.sort(key=lambda row: (row.outcome in ("OK", "TCP_OK"), row.verdict == "GOOD"))
    pairs = [
        {
            "partition": row.scope.partition.called if row.scope.partition else "",
            "sender": row.sender.server.hostname,
            "target": row.target.server.hostname,
            "profile": row.profile,
            "kind": row.kind,
            "outcome": row.outcome,
            "verdict": row.verdict,
            "gbps": UNKNOWN if row.gbps is None else round(row.gbps, 3),
            "p50_us": UNKNOWN if row.p50_ns is None else round(row.p50_ns / 1000, 1),
            "at": row.newest_at,
        }
        for row in ordered[:MOST_PAIRS]
    ]
    return {"pairs": pairs, "left_out": max(0, len(ordered) - MOST_PAIRS)}
