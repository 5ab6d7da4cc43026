"""Servers: the list, and one server with its HCAs and ports."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Exists, OuterRef, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from console.between import passage
from console.frame import the_subnet
from console.members import server_places, server_ties
from console.ports import port_rows
from console.requests import filter_text, person
from console.views.home import no_subnet
from inventory import operations
from inventory.errors import InventoryError
from inventory.models import Port, PortConflict, Server
from partitions import operations as staging
from partitions.errors import PartitionsError
from partitions.models import Partition, StagedChange
from people.actor import actor_of
from people.permissions import is_operator, operator_required, reviewer_required
from subnet.errors import InvalidGUID
from subnet.guid import GUID

PAGE = 100


@require_safe
@reviewer_required
def servers(request: HttpRequest) -> HttpResponse:
    """All servers of the subnet, filtered by what the address says."""
    subnet = the_subnet(request)
    if subnet is None:
        return no_subnet(request)
    search, only = filter_text(request, "q"), request.GET.get("only", "")
    infiniband = Q(hcas__ports__link_layer=Port.LinkLayer.INFINIBAND)
    conflict = PortConflict.objects.filter(closed_at=None).filter(
        Q(port__hca__server=OuterRef("pk")) | Q(claimed_by=OuterRef("pk"))
    )
    found = (
        Server.objects.visible_to(request.user)
        .filter(subnet=subnet)
        .annotate(
            ports=Count("hcas__ports", filter=infiniband, distinct=True),
            up=Count("hcas__ports", filter=infiniband & Q(hcas__ports__state__icontains="active"), distinct=True),
            unconfirmed=Count("hcas__ports", filter=infiniband & Q(hcas__ports__confirmed_at=None), distinct=True),
            in_conflict=Exists(conflict),
        )
        .order_by("hostname")
    )
    everything = found.count()
    if search:
        # The inner query keeps the filter from multiplying the rows that are counted.
        by_guid = Server.objects.filter(hcas__ports__guid__icontains=search.lower())
        found = found.filter(Q(hostname__icontains=search) | Q(pk__in=by_guid.values("pk")))
    if only == "unconfirmed":
        found = found.filter(unconfirmed__gt=0)
    elif only == "conflict":
        found = found.filter(in_conflict=True)
    page = Paginator(found, PAGE).get_page(request.GET.get("page"))
    names = _partition_names([row.pk for row in page])
    rows = [(row, names.get(row.pk, [])) for row in page]
    shown = {"subnet": subnet, "page": page, "rows": rows, "search": search, "only": only, "everything": everything}
    return render(request, "console/servers.html", shown)


@require_safe
@reviewer_required
def server(request: HttpRequest, public_id: str) -> HttpResponse:
    """One server: what it said, what the fabric says, where it is, and what is staged for it."""
    shown = get_object_or_404(Server.objects.visible_to(request.user).select_related("subnet"), public_id=public_id)
    staged = StagedChange.objects.of_server(shown).whole().order_by("partition__name", "port__guid")
    rows = port_rows(shown)
    return render(
        request,
        "console/server.html",
        {
            "server": shown,
            "rows": rows,
            "staged": staged,
            "places": server_places(shown),
            "ties": server_ties(shown),
            "passage": passage(shown),
            "is_at": Partition.objects.filter(memberships__port__hca__server=shown).distinct().order_by("name"),
            "partitions": Partition.objects.in_use()
            .filter(subnet=shown.subnet)
            .select_related("tenant")
            .order_by("name"),
            "conflicts": PortConflict.objects.filter(closed_at=None)
            .filter(Q(port__hca__server=shown) | Q(claimed_by=shown))
            .select_related("port__hca__server", "claimed_by"),
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


@require_POST
@operator_required
def reject_claim(request: HttpRequest, pk: int) -> HttpResponse:
    """Decide that the other server's claim to a port is wrong."""
    conflicts = PortConflict.objects.select_related("port__hca__server", "claimed_by")
    conflict = get_object_or_404(conflicts, pk=pk, port__in=Port.objects.visible_to(request.user))
    operations.reject_claim(conflict=conflict, actor=actor_of(request.user), reason=request.POST.get("reason", ""))
    messages.success(request, f"The claim of {conflict.claimed_by} to port {conflict.port} is rejected.")
    owner = conflict.port.server or conflict.claimed_by
    return redirect("console:server", public_id=owner.public_id)


def _partition_names(ids: list[int]) -> dict[int, list[str]]:
    """Names of the partitions that each server is in, by row id."""
    rows = (
        Partition.objects.filter(memberships__port__hca__server__in=ids)
        .order_by("name")
        .values_list("memberships__port__hca__server_id", "name")
        .distinct()
    )
    names: dict[int, list[str]] = {}
    for pk, name in rows:
        names.setdefault(pk, []).append(name)
    return names
