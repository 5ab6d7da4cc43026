"""Leaf switches with what hangs on them, and ports that only one witness knows."""

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console import inventory_rows, witnesses
from console.frame import the_subnet
from console.views.home import no_subnet
from people.permissions import reviewer_required
from subnet.errors import InvalidGUID
from subnet.guid import GUID

PAGE = 100


@require_safe
@reviewer_required
def leaves(request: HttpRequest) -> HttpResponse:
    """Every leaf that a reading of the fabric showed, with counts."""
    subnet = the_subnet(request)
    if subnet is None:
        return no_subnet(request)
    page = Paginator(inventory_rows.leaves(subnet), PAGE).get_page(request.GET.get("page"))
    shown = {"page": page, "subnet": subnet, "totals": inventory_rows.totals(subnet)}
    return render(request, "console/leaves.html", shown)


@require_safe
@reviewer_required
def leaf(request: HttpRequest, guid: str) -> HttpResponse:
    """One leaf: its ports and the servers at their other ends."""
    subnet = the_subnet(request)
    if subnet is None:
        return no_subnet(request)
    try:
        ports = inventory_rows.leaf_ports(subnet, GUID(guid))
    except InvalidGUID as error:
        raise Http404 from error
    page = Paginator(ports, PAGE).get_page(request.GET.get("page"))
    if not page.paginator.count:
        raise Http404
    rows = [(port, witnesses.verdict(port.testimony)) for port in page]
    shown = {"guid": GUID(guid), "page": page, "rows": rows, "totals": inventory_rows.totals(subnet)}
    return render(request, "console/leaf.html", shown)


@require_safe
@reviewer_required
def strays(request: HttpRequest) -> HttpResponse:
    """Ports that the fabric shows and nobody registered, and ports that were registered and never seen."""
    subnet = the_subnet(request)
    if subnet is None:
        return no_subnet(request)
    return render(
        request,
        "console/strays.html",
        {
            "subnet": subnet,
            "seen": Paginator(inventory_rows.seen_only(subnet), PAGE).get_page(request.GET.get("seen")),
            "registered": Paginator(inventory_rows.registered_only(subnet), PAGE).get_page(
                request.GET.get("registered")
            ),
            "totals": inventory_rows.totals(subnet),
        },
    )
