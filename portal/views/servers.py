"""My servers, and one of them with what to paste."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from portal import sight
from portal.door import Seat, tenant_page
from portal.frame import frame
from portal.ports import server_rows
from portal.server_page import server_page


@require_safe
@never_cache
@tenant_page
def servers(request: HttpRequest, seat: Seat) -> HttpResponse:
    """The tenant's servers with each port's device, P_Keys and indexes as last read."""
    rows = server_rows(sight.own_servers(seat))
    name = "portal/servers.html#body" if request.htmx else "portal/servers.html"  # type: ignore[attr-defined]
    return render(request, name, {**frame(seat, "servers"), "rows": rows})


@require_safe
@never_cache
@tenant_page
def server(request: HttpRequest, seat: Seat, public_id: str) -> HttpResponse:
    """One server: its ports, the settings for each partition it is in, and how stable its indexes are."""
    shown = server_page(sight.own_server(seat, public_id))
    return render(request, "portal/server.html", {**frame(seat, "servers"), "page": shown})
