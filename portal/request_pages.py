"""What pages show of a request: its words, its lamp, who said what. For tenants the provider has no names."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.utils.translation import gettext, ngettext

from console.lamps import Colour, Lamp
from inventory.models import Port, Server
from portal import sight
from portal.asking import MOST_COMMENTS
from portal.door import Seat
from portal.models import RequestComment, StorageOffer, TenantRequest
from portal.words import PROVIDER

Kind, State = TenantRequest.Kind, TenantRequest.State

SHOWN: Final = 100  # requests that are over, on a page


@dataclass(frozen=True, slots=True)
class Line:
    """One request in a list: the row, what it asks for, and its lamp."""

    row: TenantRequest
    words: str
    lamp: Lamp


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that was said: by whom as the reader may know it, when, and what."""

    who: str
    is_provider: bool
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Named:
    """A server of a request; `address` is empty where the reader does not see it any more."""

    name: str
    public_id: str


def line(row: TenantRequest) -> Line:
    """A request for a list. No query where the row came `whole()`."""
    return Line(row, words(row), lamp(row.state))


def lines(rows: Sequence[TenantRequest]) -> list[Line]:
    """Several of them."""
    return [line(row) for row in rows]


def words(row: TenantRequest) -> str:
    """What it asks for, in one line."""
    if row.kind == Kind.MORE_SERVERS:
        number = row.count or 0
        return ngettext("%(count)d more server", "%(count)d more servers", number) % {"count": number}
    if row.kind == Kind.RETURN_SERVERS:
        return gettext("Return servers")
    return gettext("%(partition)s shares %(storage)s") % {
        "partition": row.partition.called if row.partition is not None else "–",
        "storage": row.storage.name if row.storage is not None else "–",
    }


def lamp(state: str) -> Lamp:
    """The lamp of a state."""
    return {
        State.OPEN: Lamp(Colour.WARN, "hourglass", gettext("open")),
        State.APPROVED: Lamp(Colour.BUSY, "loader-2", gettext("approved")),
        State.DECLINED: Lamp(Colour.BAD, "ban", gettext("declined")),
        State.WITHDRAWN: Lamp(Colour.IDLE, "circle-minus", gettext("withdrawn")),
        State.DONE: Lamp(Colour.GOOD, "circle-check", gettext("done")),
    }[State(state)]


def means(row: TenantRequest) -> str:
    """What its state means for the tenant."""
    return {
        State.OPEN: gettext("Your provider has not answered yet."),
        State.APPROVED: gettext("Your provider has agreed. It is done when the fabric was read and shows it."),
        State.DECLINED: gettext("Your provider has said no; nothing was changed."),
        State.WITHDRAWN: gettext("It was taken back; nothing was changed."),
        State.DONE: gettext("The fabric was read, and shows it."),
    }[State(row.state)]


def thread(row: TenantRequest, *, is_for_tenant: bool) -> list[Said]:
    """What was said to it, the oldest first. One query."""
    comments = RequestComment.objects.filter(request=row).select_related("by").order_by("at", "pk")[:MOST_COMMENTS]
    return [
        Said(
            str(PROVIDER) if comment.by_provider and is_for_tenant else str(comment.by),
            comment.by_provider,
            comment.at,
            comment.text,
        )
        for comment in comments
    ]


def servers_for_tenant(seat: Seat, row: TenantRequest) -> list[Named]:
    """The servers of a request that the tenant may know: those it named, and those that are its own by now."""
    own = set(sight.own_servers(seat).values_list("pk", flat=True))
    found = row.servers.select_related("server").order_by("name")
    return [
        Named(one.name, one.server.public_id if one.server_id in own else "")
        for one in found
        if row.kind == Kind.RETURN_SERVERS or one.server_id in own
    ]


def sorts_of(servers: Sequence[Server]) -> list[str]:
    """The sorts of servers among these, as anybody would say it: “2 ports of 400 Gb/s”. One query."""
    ports: dict[int, list[float]] = {server.pk: [] for server in servers}
    rows = Port.objects.filter(hca__server__in=servers, link_layer=Port.LinkLayer.INFINIBAND)
    for server, rate in rows.values_list("hca__server", "rate_gbps"):
        ports[server].append(rate or 0)
    return sorted({sort_of(rates) for rates in ports.values() if rates})


def sort_of(rates: Sequence[float]) -> str:
    """The sort of a server whose InfiniBand ports have these rates in Gb/s; 0: not known."""
    ports = ngettext("%(count)d port", "%(count)d ports", len(rates)) % {"count": len(rates)}
    fastest = max(rates)
    return gettext("%(ports)s of %(rate)d Gb/s") % {"ports": ports, "rate": round(fastest)} if fastest else ports


def offers(seat: Seat) -> list[StorageOffer]:
    """The storage that the tenant may ask to share, on the fabrics of its partitions. One query."""
    subnets = sight.own_partitions(seat).filter(retired_at=None).order_by().values("subnet")
    known = StorageOffer.objects.visible_to(seat.person).filter(partition__subnet__in=subnets)
    return list(known.select_related("partition").order_by("partition__name"))
