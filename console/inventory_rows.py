"""The inventory as its pages list it: servers with their ports counted, leaves, and ports that only one side knows.

Each function costs the same number of queries whatever the size of the subnet.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Count, Q, QuerySet

from console import lamps
from console.lamps import Colour, Lamp
from inventory import ownership
from inventory.models import ManagerHost, Port, PortConflict, Server, Subnet
from inventory.querysets import PortQuerySet
from partitions.models import Partition
from subnet.guid import GUID
from subnet.witness import ABSENT, Verdict

SILENT_AFTER: Final = timedelta(hours=2, minutes=10)  # the agent reports every hour; two that are missing are news
_INFINIBAND = Q(link_layer=Port.LinkLayer.INFINIBAND)
_UP = Q(state="ACTIVE") & ~Q(seen_state=ABSENT)


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One server of the list, with its InfiniBand ports counted."""

    server: Server
    partitions: tuple[str, ...]
    standing: Lamp
    witnesses: Lamp
    is_silent: bool
    counts: dict[str, int] = field(default_factory=dict)  # ports, up, gone, missing, unconfirmed, disagree …


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf switch as far as ports hang on it."""

    guid: GUID
    ports: int
    servers: int
    gone: int
    strangers: int


def server_rows(servers: Sequence[Server], *, now: datetime) -> list[ServerRow]:
    """The rows of one page. Three queries."""
    ids = [server.pk for server in servers]
    counted = (
        Port.objects.filter(_INFINIBAND, hca__server__in=ids)
        .order_by()
        .values("hca__server")
        .annotate(
            ports=Count("pk"),
            up=Count("pk", filter=_UP),
            gone=Count("pk", filter=Q(seen_state=ABSENT)),
            missing=Count("pk", filter=Q(missing_since__isnull=False)),
            unconfirmed=Count("pk", filter=ownership.untrusted()),
            disagree=Count("pk", filter=Q(testimony=Verdict.DISAGREES)),
            agree=Count("pk", filter=Q(testimony=Verdict.AGREES)),
            unseen=Count("pk", filter=Q(testimony=Verdict.UNSEEN)),
            unheard=Count("pk", filter=Q(testimony="")),
        )
    )
    counts: dict[int, dict[str, Any]] = {row["hca__server"]: dict(row) for row in counted}
    disputed = PortConflict.objects.filter(Q(port__hca__server__in=ids) | Q(claimed_by__in=ids), closed_at=None)
    contested = {pk for pair in disputed.values_list("port__hca__server", "claimed_by") for pk in pair}
    names = _partition_names(ids)
    return [
        ServerRow(
            server=server,
            partitions=tuple(names.get(server.pk, ())),
            standing=_standing(counts.get(server.pk, {}), is_contested=server.pk in contested),
            witnesses=_witnesses(counts.get(server.pk, {})),
            is_silent=is_silent(server, now),
            counts=counts.get(server.pk, {"ports": 0}),
        )
        for server in servers
    ]


def totals(subnet: Subnet) -> dict[str, int]:
    """What stands above the list: ports and how they are, open conflicts, ports that only one side knows. 2 queries."""
    managers = ManagerHost.objects.filter(subnet=subnet).values("port_guid")
    registered, seen = Q(hca__isnull=False), Q(seen_at__isnull=False)
    counted: dict[str, int] = Port.objects.filter(_INFINIBAND, subnet=subnet).aggregate(
        ports=Count("pk", filter=registered),
        up=Count("pk", filter=registered & _UP),
        gone=Count("pk", filter=registered & Q(seen_state=ABSENT)),
        unconfirmed=Count("pk", filter=registered & ownership.untrusted()),
        disagree=Count("pk", filter=registered & Q(testimony=Verdict.DISAGREES)),
        strangers=Count("pk", filter=~registered & seen & ~Q(guid__in=managers)),
        unseen=Count("pk", filter=registered & ~seen),
    )
    return counted | {"conflicts": open_conflicts(subnet).count()}


def open_conflicts(subnet: Subnet) -> QuerySet[PortConflict]:
    """Conflicts that wait for a person, the oldest first."""
    return PortConflict.objects.filter(closed_at=None, claimed_by__subnet=subnet).order_by("opened_at")


def seen_only(subnet: Subnet) -> PortQuerySet:
    """Ports that the fabric has shown and no server ever registered; those that run our SMs are known."""
    managers = ManagerHost.objects.filter(subnet=subnet).values("port_guid")
    strangers = Port.objects.filter(_INFINIBAND, subnet=subnet, hca=None, seen_at__isnull=False)
    return strangers.exclude(guid__in=managers).order_by("leaf_guid", "leaf_port", "guid")


def registered_only(subnet: Subnet) -> PortQuerySet:
    """Ports that a server has registered and no reading of the fabric ever showed."""
    return (
        Port.objects.filter(_INFINIBAND, subnet=subnet, hca__isnull=False, seen_at=None)
        .select_related("hca__server")
        .order_by("hca__server__hostname", "hca__device", "number")
    )


def leaves(subnet: Subnet) -> list[Leaf]:
    """Every switch that a port was seen on, in order of GUID. One query."""
    rows = (
        Port.objects.filter(_INFINIBAND, subnet=subnet, leaf_guid__isnull=False)
        .values("leaf_guid")
        .annotate(
            ports=Count("pk"),
            servers=Count("hca__server", distinct=True),
            gone=Count("pk", filter=Q(seen_state=ABSENT)),
            strangers=Count("pk", filter=Q(hca=None)),
        )
        .order_by("leaf_guid")
    )
    return [
        Leaf(GUID(str(row["leaf_guid"])), row["ports"], row["servers"], row["gone"], row["strangers"]) for row in rows
    ]


def leaf_ports(subnet: Subnet, guid: GUID) -> PortQuerySet:
    """What hangs on one leaf, by its port."""
    return (
        Port.objects.filter(_INFINIBAND, subnet=subnet, leaf_guid=guid)
        .select_related("hca__server")
        .order_by("leaf_port", "guid")
    )


def is_silent(server: Server, now: datetime) -> bool:
    """Whether the server's agent has not reported for longer than it should."""
    return server.reported_at is None or server.reported_at < now - SILENT_AFTER


def _standing(counts: dict[str, Any], *, is_contested: bool) -> Lamp:
    if is_contested:
        return Lamp(Colour.BAD, "alert-triangle", "conflict")
    if not counts.get("ports"):
        return Lamp(Colour.IDLE, "help-circle", "no ports")
    if counts["unconfirmed"]:
        return Lamp(Colour.WARN, "circle-dashed", f"{counts['unconfirmed']} unconfirmed")
    return lamps.port(is_confirmed=True, has_conflict=False)


def _witnesses(counts: dict[str, Any]) -> Lamp:
    """The worst that stands between a server's words and the fabric's; agreement only if it is about every port."""
    ports = counts.get("ports", 0)
    if counts.get("disagree"):
        return Lamp(Colour.BAD, "alert-triangle", f"{counts['disagree']} of {ports} disagree")
    if counts.get("gone"):
        return Lamp(Colour.WARN, "plug-connected-x", f"{counts['gone']} of {ports} not there")
    if counts.get("unseen"):
        return Lamp(Colour.WARN, "eye", f"{counts['unseen']} of {ports} never seen")
    if ports and counts.get("agree") == ports:
        return Lamp(Colour.GOOD, "circle-check", "both agree")
    if not ports or counts.get("unheard") == ports:
        return Lamp(Colour.IDLE, "help-circle", "not compared yet")
    return Lamp(Colour.IDLE, "help-circle", "not provable here")


def _partition_names(ids: list[int]) -> dict[int, list[str]]:
    """Names of the partitions that each server is in, by row id. One query."""
    rows = (
        Partition.objects.filter(memberships__port__hca__server__in=ids)
        .order_by("name")
        .values_list("memberships__port__hca__server_id", "name")
        .distinct()
    )
    names: dict[int, list[str]] = defaultdict(list)
    for pk, name in rows:
        names[pk].append(name)
    return names
