"""Link loss: the fabric itself shows that a server which left its tenant went down since, so no connection survived.

The third way to become clean, beside an operator's word and the provisioning system's (`partitions/cleaning.py`). Seen
counts what two looks in a row from the first port to the last agree on: of one alone an answer may have been lost. What
the server says of itself counts for nothing.
"""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from audit.values import SYSTEM
from deploy.models import Rollout
from inventory.models import Port, Server, Subnet
from partitions import cleaning, refusals
from partitions.errors import MoveRefused
from partitions.models import LinkLoss, Membership
from subnet.witness import ABSENT

DOWN: Final = frozenset({ABSENT, "DOWN"})
MOST_ROLLOUTS: Final = 100  # that far back the one is looked for which took the keys away


def notice(subnet: Subnet) -> None:
    """Write down which ports between two tenants the last whole look found down; clean the servers that lost all links.

    Called after each such look. Three queries when nothing is between two tenants.
    """
    subnet = Subnet.objects.get(pk=subnet.pk)
    if subnet.looked_at is None:
        return
    with transaction.atomic():
        ports = list(between_tenants(subnet).select_for_update(of=("self",)).order_by("pk"))
        rows = {row.port_id: row for row in LinkLoss.objects.filter(port__in=ports).order_by("seen_at")}
        for port in ports:
            _see(port, rows.get(port.pk), at=subnet.looked_at)
    if settings.CLEAN_BY_LINK_LOSS:
        of_server: dict[Server, list[Port]] = defaultdict(list)
        for port in ports:
            assert port.hca is not None  # noqa: S101  only those of servers were asked for
            of_server[port.hca.server].append(port)
        for server, its in of_server.items():
            _clean(server, its)


def lost(ports: Collection[Port]) -> dict[str, datetime]:
    """Port GUID → when its link was last seen down, if that was after what gave or took its last keys.

    A few queries.
    """
    rows = LinkLoss.objects.filter(port__in=ports, again_at__isnull=False).order_by("seen_at")
    found = rows.values_list("port__guid", "seen_at", "again_at")
    newest = {str(guid): (first, again) for guid, first, again in found if again is not None}
    since = _since(next(iter(ports)).subnet, set(newest)) if newest else {}
    return {guid: again for guid, (first, again) in newest.items() if guid in since and first > since[guid]}


def between_tenants(subnet: Subnet) -> QuerySet[Port]:
    """The ports of servers that have left a tenant and are not clean."""
    member = Membership.objects.filter(port=OuterRef("pk"), partition__tenant__isnull=False)
    return (
        Port.objects.filter(~Exists(member), subnet=subnet, hca__isnull=False)
        .exclude(former_tenant=None)
        .select_related("hca__server", "subnet")
    )


def _see(port: Port, row: LinkLoss | None, *, at: datetime) -> None:
    """Bring a port's newest row up to what the look of `at` saw. A port that was never seen says nothing."""
    if port.seen_state not in DOWN:
        if row is not None and row.again_at is None:
            row.delete()  # one look alone: it may have missed an answer
    elif row is None or (port.seen_at is not None and port.seen_at > row.seen_at):  # it was up in between
        if row is not None and row.again_at is None:
            row.delete()
        LinkLoss.objects.create(port=port, seen_at=at)
    elif at > (row.again_at or row.seen_at):
        row.again_at = at
        row.save(update_fields=["again_at"])


def _clean(server: Server, ports: list[Port]) -> None:
    seen = lost(ports)
    if len(seen) < len(ports):
        return
    since = f"{min(seen.values()):%Y-%m-%d %H:%M:%S} UTC"
    how = f"Link loss: two looks at the fabric in a row found all its {len(ports)} ports down, the last at {since}."
    try:
        cleaning.clean(server=server, by=None, actor=SYSTEM, reason=how)
    except MoveRefused:
        return  # not proven yet; the next look asks again


def _since(subnet: Subnet, guids: set[str]) -> dict[str, datetime]:
    """When the last rollout ended that gave each port a tenant's key or took one away, proven or not."""
    found: dict[str, datetime] = {}
    ended = (
        Rollout.objects.filter(subnet=subnet, finished_at__isnull=False)
        .exclude(state__in=(Rollout.State.REFUSED, Rollout.State.CANCELLED))
        .select_related("revision", "parent")
        .order_by("-pk")
    )
    for rollout in ended[:MOST_ROLLOUTS]:
        left = guids - set(found)
        if not left:
            break
        touched = refusals.held(rollout.parent, left) ^ refusals.held(rollout.revision, left)
        for _, guid, _ in touched:
            if rollout.finished_at is not None:
                found.setdefault(str(guid), rollout.finished_at)
    return found
