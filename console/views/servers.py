"""Servers: the list, and one server with its HCAs and ports."""

import json
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console import inventory_filter, inventory_rows, witnesses
from console.between import passage
from console.board_facts import lamps_of
from console.frame import the_subnet
from console.members import server_places, server_ties
from console.ports import port_rows
from console.requests import filter_text, person
from console.views.home import no_subnet
from inventory import operations
from inventory.errors import InventoryError
from inventory.models import Port, PortConflict, Server
from partitions import operations as staging
from partitions import replacement
from partitions.errors import PartitionsError
from partitions.models import Partition, Replacement, StagedChange
from people.actor import actor_of
from people.permissions import is_operator, operator_required, reviewer_required
from probes.models import ProbeRun
from subnet.errors import InvalidGUID
from subnet.guid import GUID

PAGE = 100
HISTORY = 50  # entries on a server's page


@require_safe
@never_cache
@reviewer_required
def servers(request: HttpRequest) -> HttpResponse:
    """All servers of the subnet, filtered by the words in the address (`console/inventory_filter.py`)."""
    subnet = the_subnet(request)
    if subnet is None:
        return no_subnet(request)
    now = timezone.now()
    text = filter_text(request, "q")
    found = inventory_filter.parse(text, now=now)
    everything = Server.objects.visible_to(request.user).filter(subnet=subnet)
    matching = inventory_filter.filtered(everything, found).select_related("tenant").order_by("hostname")
    page = Paginator(matching, PAGE).get_page(request.GET.get("page"))
    name = "console/servers.html#body" if request.htmx else "console/servers.html"  # type: ignore[attr-defined]
    return render(
        request,
        name,
        {
            "subnet": subnet,
            "page": page,
            "rows": inventory_rows.server_rows(list(page), now=now),
            "search": text,
            "found": found,
            "query": urlencode({"q": text}) if text else "",
            "everything": everything.count(),
            "totals": inventory_rows.totals(subnet),
            "may_act": is_operator(request.user),
        },
    )


@require_safe
@never_cache
@reviewer_required
def server(request: HttpRequest, public_id: str) -> HttpResponse:
    """One server: what it said, what the fabric says, where it is, and what is staged for it."""
    shown = get_object_or_404(
        Server.objects.visible_to(request.user).select_related("subnet", "tenant"), public_id=public_id
    )
    staged = StagedChange.objects.of_server(shown).whole().order_by("partition__name", "port__guid")
    now = timezone.now()
    fabric = lamps_of(request, shown.subnet_id, now=now)
    rows = port_rows(shown, staged=staged, fabric=fabric, now=now)
    heard = [witnesses.heard(row.port) for row in rows if row.standing is not None]
    gone, new, _ = replacement.proposed_pairs(shown)
    name = "console/server.html#body" if request.htmx else "console/server.html"  # type: ignore[attr-defined]
    return render(
        request,
        name,
        {
            "server": shown,
            "heard": heard,
            "moved": [one.port for one in heard if one.has_moved],
            "history": shown.history.select_related("port").order_by("-id")[:HISTORY],
            "replaced": Replacement.objects.pending().filter(port__hca__server=shown).order_by("old_guid"),
            "may_replace": bool(gone and new),
            "is_silent": inventory_rows.is_silent(shown, now),
            "probe": _last_probe(shown),
            "raw": json.dumps(shown.report, indent=1, ensure_ascii=False) if shown.report else "",
            "rows": rows,
            "staged": staged,
            "places": server_places(shown),
            "ties": server_ties(shown),
            "passage": passage(shown),
            "by_link_loss": settings.CLEAN_BY_LINK_LOSS,
            "is_at": Partition.objects.filter(memberships__port__hca__server=shown).distinct().order_by("name"),
            "partitions": Partition.objects.in_use()
            .filter(subnet=shown.subnet)
            .select_related("tenant")
            .order_by("name"),
            "conflicts": PortConflict.objects.filter(closed_at=None)
            .filter(Q(port__hca__server=shown) | Q(claimed_by=shown))
            .select_related("port__hca__server", "claimed_by"),
            "looked_at": shown.subnet.looked_at,
            "credentials": shown.credentials.filter(revoked_at=None).select_related("token").order_by("id"),
            "unconfirmed": [row for row in rows if row.is_unconfirmed],
            "may_act": is_operator(request.user),
        },
    )


@require_POST
@operator_required
def confirm_port(request: HttpRequest, guid: str) -> HttpResponse:
    """Confirm that a port is where its server says it is; it can be staged from then on."""
    try:
        port = get_object_or_404(Port.objects.visible_to(request.user).select_related("hca__server"), guid=GUID(guid))
    except InvalidGUID as error:
        raise Http404 from error
    if port.hca is None:
        raise Http404
    try:
        operations.confirm_port(port=port, actor=actor_of(request.user), reason=request.POST.get("reason", ""))
    except InventoryError as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, f"Port {port.guid} is confirmed: it may be staged from now on.")
    return redirect("console:server", public_id=port.hca.server.public_id)


@require_POST
@operator_required
def mark_clean(request: HttpRequest, public_id: str) -> HttpResponse:
    """Take an operator's word that nothing of its former tenant is left on a server."""
    cleaned = get_object_or_404(Server.objects.visible_to(request.user).select_related("subnet"), public_id=public_id)
    try:
        staging.mark_clean(server=cleaned, actor=person(request), reason=request.POST.get("reason", ""))
    except PartitionsError as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, f"{cleaned} is clean: any tenant may take it from now on.")
    return redirect("console:server", public_id=public_id)


def _last_probe(server: Server) -> ProbeRun | None:
    """The newest finished transfer that it took part in, as sender or as target."""
    took_part = Q(sender__server=server) | Q(target__server=server)
    runs = ProbeRun.objects.filter(took_part, test=ProbeRun.Test.TRANSFER, finished_at__isnull=False)
    return runs.select_related("sender__server", "target__server").order_by("-finished_at").first()
