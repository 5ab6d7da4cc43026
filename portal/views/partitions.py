"""My partitions: the tenant's own board, and what may be done with each partition."""

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console.requests import told_as_json, wants_json
from partitions.models import Partition
from portal import moves, own_partitions, sight
from portal.board import own_board
from portal.door import Seat, acting, refusal, tenant_page
from portal.errors import Refused
from portal.frame import frame
from portal.ports import server_rows


class NameForm(forms.Form):
    """What a tenant calls a partition; the rules are `subnet.table.partition_name`'s."""

    name = forms.CharField(max_length=200)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@tenant_page
def partitions(request: HttpRequest, seat: Seat) -> HttpResponse:
    """The tenant's partitions with their servers, and what becomes of staged moves; POST creates a partition."""
    return _create(request, seat) if request.method == "POST" else _board(request, seat)


@acting
def _create(request: HttpRequest, seat: Seat) -> HttpResponse:
    subnet = sight.the_subnet(seat)
    form = NameForm(request.POST)
    if subnet is None or not form.is_valid():
        return _board(request, seat, error=gettext("Give the partition a name."), status=422)
    title = form.cleaned_data["name"]
    try:
        made = own_partitions.create(seat=seat, subnet=subnet, title=title)
    except Refused as refused:
        return _board(request, seat, error=str(refused), name=title, status=409)
    messages.success(request, gettext("%(name)s is there, and empty. Move servers into it.") % {"name": made.called})
    return redirect("portal:partitions", seat.tenant.public_id)


def _board(request: HttpRequest, seat: Seat, *, error: str = "", name: str = "", status: int = 200) -> HttpResponse:
    shown = {**frame(seat, "partitions"), "board": own_board(seat), "error": error, "name": name}
    page = "portal/partitions.html#live" if request.htmx else "portal/partitions.html"  # type: ignore[attr-defined]
    return render(request, page, shown, status=status)


@require_POST
@tenant_page
@acting
def move(request: HttpRequest, seat: Seat) -> HttpResponse:
    """Stage that one own server moves from one own partition to another. 409 with the reason when it may not."""
    server = sight.own_server(seat, request.POST.get("server", ""))
    source, target = (_known(seat, request.POST.get(name, "")) for name in ("source", "target"))
    try:
        moves.move(seat=seat, server=server, source=source, target=target)
    except Refused as refused:
        return refusal(request, seat, str(refused))
    sentence = gettext("%(server)s goes to %(target)s.") % {"server": server, "target": target.called}
    return _answer(request, seat, sentence)


@require_POST
@tenant_page
@acting
def take_back(request: HttpRequest, seat: Seat) -> HttpResponse:
    """Take back what this person has staged for one server."""
    server = sight.own_server(seat, request.POST.get("server", ""))
    try:
        moves.take_back(seat=seat, server=server)
    except Refused as refused:
        return refusal(request, seat, str(refused))
    return _answer(request, seat, gettext("%(server)s stays where it is.") % {"server": server})


@require_POST
@tenant_page
@acting
def try_again(request: HttpRequest, seat: Seat) -> HttpResponse:
    """Have what is staged go out once more."""
    subnet = sight.the_subnet(seat)
    if subnet is None:
        raise Http404
    try:
        anything = moves.try_again(seat=seat, subnet=subnet)
    except Refused as refused:
        return refusal(request, seat, str(refused))
    return _answer(request, seat, gettext("It is tried again.") if anything else gettext("Nothing is staged."))


@require_safe
@never_cache
@tenant_page
def partition(request: HttpRequest, seat: Seat, public_id: str) -> HttpResponse:
    """One own partition with its servers."""
    return _partition_page(request, seat, sight.own_partition(seat, public_id))


@require_POST
@tenant_page
@acting
def rename(request: HttpRequest, seat: Seat, public_id: str) -> HttpResponse:
    """Call it otherwise."""
    found = sight.own_partition(seat, public_id)
    form = NameForm(request.POST)
    title = form.cleaned_data["name"] if form.is_valid() else ""
    try:
        own_partitions.rename(seat=seat, partition=found, title=title)
    except Refused as refused:
        return _partition_page(request, seat, found, error=str(refused), status=409)
    messages.success(request, gettext("It is called %(name)s now.") % {"name": title})
    return redirect("portal:partition", seat.tenant.public_id, found.public_id)


@require_POST
@tenant_page
@acting
def retire(request: HttpRequest, seat: Seat, public_id: str) -> HttpResponse:
    """Retire it, if it is empty."""
    found = sight.own_partition(seat, public_id)
    try:
        own_partitions.retire(seat=seat, partition=found)
    except Refused as refused:
        return _partition_page(request, seat, found, error=str(refused), status=409)
    messages.success(request, gettext("%(name)s is retired.") % {"name": found.called})
    return redirect("portal:partitions", seat.tenant.public_id)


def _partition_page(
    request: HttpRequest, seat: Seat, found: Partition, *, error: str = "", status: int = 200
) -> HttpResponse:
    servers = sight.own_servers(seat).filter(hcas__ports__memberships__partition=found).distinct()
    shown = {**frame(seat, "partitions"), "partition": found, "rows": server_rows(servers), "error": error}
    return render(request, "portal/partition.html", shown, status=status)


def _known(seat: Seat, key: str) -> Partition:
    """An own partition or a shared one that is in sight; Http404 for any other."""
    shared = sight.shared_partitions(seat).filter(public_id=key).first()
    return shared if shared is not None else sight.own_partition(seat, key)


def _answer(request: HttpRequest, seat: Seat, sentence: str) -> HttpResponse:
    if wants_json(request):
        return told_as_json(sentence)
    messages.success(request, sentence)
    return redirect("portal:partitions", seat.tenant.public_id)
