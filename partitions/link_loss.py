"""Link loss: the fabric itself shows that a server which left its tenant went down since, so no connection survived.

The third way to become clean, beside an operator's word and the provisioning system's (`partitions/cleaning.py`). Seen
counts what two discoveries in a row agree on, both begun after the last thing that may have given a port a key: of one
alone an answer may have been lost. A scan goes by a list that may be older than that, so it only makes us look. What
the server says of itself counts for nothing (ADR 36).
"""

from collections import defaultdict
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet

from audit.values import SYSTEM
from deploy import operations as deploy
from deploy.drift_models import Drift
from deploy.models import Rollout
from deploy.whole_looks import WholeLook
from inventory.models import Port, Server, Subnet
from partitions import cleaning
from partitions.errors import MoveRefused
from partitions.models import LinkLoss, Membership
from subnet.observed import has_link

_BEFORE_ALL: Final = datetime.min.replace(tzinfo=UTC)
LOOK: Final = "links"  # why a discovery is asked for


def notice(look: WholeLook) -> None:
    """Write down which ports between two tenants have no link; clean the servers that lost all of theirs.

    Called after each look at the whole fabric. One query when nothing is between two tenants.
    """
    ports = list(between_tenants(look.subnet).order_by("pk"))
    if look.is_discovery and ports:
        _write_down(ports, look)
    if not ports or not settings.CLEAN_BY_LINK_LOSS:
        return
    seen = lost(ports)
    if not look.is_discovery and any(_has_link(port, look) is False and str(port.guid) not in seen for port in ports):
        deploy.request_observation(subnet=look.subnet, why=LOOK)
    of_server: dict[Server, list[Port]] = defaultdict(list)
    for port in ports:
        assert port.hca is not None  # noqa: S101  only those of servers were asked for
        of_server[port.hca.server].append(port)
    for server, its in of_server.items():
        if all(str(port.guid) in seen for port in its):
            _clean(server, [seen[str(port.guid)] for port in its])


def lost(ports: Collection[Port]) -> dict[str, datetime]:
    """Port GUID → when its link was last seen down, of ports of one subnet that lost it since they may have had a key.

    Three queries at most.
    """
    rows = LinkLoss.objects.filter(port__in=ports, again_at__isnull=False).order_by("seen_at")
    found = list(rows.values_list("port__guid", "seen_at", "again_at"))
    since = _since(next(iter(ports)).subnet) if found else None
    return {
        str(guid): again for guid, first, again in found if since is not None and first > since and again is not None
    }


def between_tenants(subnet: Subnet) -> QuerySet[Port]:
    """The ports of servers that have left a tenant and are not clean."""
    member = Membership.objects.filter(port=OuterRef("pk"), partition__tenant__isnull=False)
    return (
        Port.objects.filter(~Exists(member), subnet=subnet, hca__isnull=False)
        .exclude(former_tenant=None)
        .select_related("hca__server", "subnet")
    )


def _has_link(port: Port, look: WholeLook) -> bool | None:
    return has_link(look.readings.get(port.guid), leaf=port.leaf_guid, switches=look.switches)


@transaction.atomic
def _write_down(ports: list[Port], look: WholeLook) -> None:
    # Of two looks that are told at once, one waits here.
    list(Port.objects.filter(pk__in=[port.pk for port in ports]).select_for_update().order_by("pk").values_list("pk"))
    rows = {row.port_id: row for row in LinkLoss.objects.filter(port__in=ports).order_by("seen_at")}
    for port in ports:
        _see(port, rows.get(port.pk), has_link=_has_link(port, look), at=look.at)


def _see(port: Port, row: LinkLoss | None, *, has_link: bool | None, at: datetime) -> None:
    """Bring the port's newest row up to what the discovery begun at `at` found. An older look changes nothing."""
    if has_link is None or (row is not None and at <= (row.up_at or row.again_at or row.seen_at)):
        return
    if has_link:
        if row is not None and row.again_at is None:
            row.delete()  # one look alone: it may have missed an answer
        elif row is not None and row.up_at is None:
            row.up_at = at
            row.save(update_fields=["up_at"])
    elif row is None or row.up_at is not None:
        LinkLoss.objects.create(port=port, seen_at=at)
    else:
        # The last two looks of those in a row: a server that was off before its keys were taken away may still be.
        row.seen_at, row.again_at = row.again_at or row.seen_at, at
        row.save(update_fields=["seen_at", "again_at"])


def _clean(server: Server, seen: list[datetime]) -> None:
    since = f"{min(seen):%Y-%m-%d %H:%M:%S} UTC"
    how = f"Link loss: two looks at the fabric in a row found all its {len(seen)} ports down, the last at {since}."
    try:
        cleaning.clean(server=server, by=None, actor=SYSTEM, reason=how)
    except MoveRefused:
        return  # not proven yet; the next look asks again


def _since(subnet: Subnet) -> datetime | None:
    """When anything last ended that may have given a port of the subnet a key; None while something still may.

    Every rollout that may have placed a file counts, a put-back among them, and everything that was not as planned,
    whichever ports it was about. Two queries.
    """
    harmless = (Rollout.State.REFUSED, Rollout.State.CANCELLED)
    rollouts = (
        Rollout.objects.filter(subnet=subnet)
        .exclude(state__in=harmless)
        .aggregate(
            last=Max("finished_at"),
            released=Max("released_at"),
            still=Count("pk", filter=Q(finished_at=None) | Q(state=Rollout.State.STUCK, released_at=None)),
        )
    )
    drifts = Drift.objects.filter(subnet=subnet).aggregate(
        last=Max("closed_at"), still=Count("pk", filter=Q(closed_at=None))
    )
    if rollouts["still"] or drifts["still"]:
        return None
    ends = rollouts["last"], rollouts["released"], drifts["last"]
    return max([ended for ended in ends if ended is not None], default=_BEFORE_ALL)
