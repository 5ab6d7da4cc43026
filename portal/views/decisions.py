"""The operator's pages of requests: the list with what else tenants wait for, one request, and the answers to it."""

from collections.abc import Callable

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console.requests import filter_text, person
from inventory.models import Port, Server
from partitions import quotas
from partitions.models import Partition
from partitions.selection import Selection
from people.permissions import is_operator, operator_required, reviewer_required
from portal import deciding
from portal import request_pages as shown
from portal.errors import Refused
from portal.left_to_operators import left_moves
from portal.models import StorageOffer, TenantRequest

Kind, State = TenantRequest.Kind, TenantRequest.State


@require_safe
@never_cache
@reviewer_required
def requests(request: HttpRequest) -> HttpResponse:
    """What tenants ask for, what they staged and left to an operator, and the storage that they may ask for."""
    return _list(request)


def _list(request: HttpRequest, *, error: str = "", status: int = 200) -> HttpResponse:
    rows = TenantRequest.objects.visible_to(request.user).whole()
    waiting = rows.unanswered().order_by("asked_at", "pk")
    approved = rows.filter(state=State.APPROVED).order_by("decided_at", "pk")
    over = rows.exclude(state__in=(State.OPEN, State.APPROVED)).order_by("-asked_at", "-pk")[: shown.SHOWN]
    offers = StorageOffer.objects.select_related("partition", "by").order_by("partition__name")
    page = {
        "waiting": shown.lines(list(waiting)),
        "approved": shown.lines(list(approved)),
        "over": shown.lines(list(over)),
        "left": left_moves(),
        "offers": list(offers),
        "may_act": is_operator(request.user),
        "error": error,
    }
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "portal/operator_requests.html#live", page, status=status)
    offered = [offer.partition_id for offer in page["offers"]]
    free = Partition.objects.in_use().filter(tenant=None).exclude(pk__in=offered)
    page["offerable"] = list(free.order_by("name"))
    return render(request, "portal/operator_requests.html", page, status=status)


@require_safe
@never_cache
@reviewer_required
def request_page(request: HttpRequest, public_id: str) -> HttpResponse:
    """One request, with what there is to choose from."""
    return _page(request, _found(request, public_id))


@require_POST
@operator_required
def approve(request: HttpRequest, public_id: str) -> HttpResponse:
    """Stage what was asked for."""

    def act(found: TenantRequest) -> None:
        keys = request.POST.getlist("servers")
        servers = list(Server.objects.visible_to(request.user).filter(public_id__in=keys).order_by("hostname"))
        if len(servers) != len(set(keys)):
            raise Http404
        partition = Partition.objects.visible_to(request.user).filter(
            public_id=request.POST.get("partition", ""), tenant=found.tenant
        )
        done = deciding.approve(
            request=found, actor=person(request), answer=request.POST.get("answer", ""), servers=servers,
            partition=partition.first(),
        )  # fmt: skip
        is_done = done.state == State.DONE
        messages.success(
            request,
            gettext("Approved, and nothing was left to do: the fabric shows it already.")
            if is_done
            else gettext("Approved, and staged. Look at the plan and roll it out; then the request is done by itself."),
        )

    return _step(request, public_id, act)


@require_POST
@operator_required
def decline(request: HttpRequest, public_id: str) -> HttpResponse:
    """Say no."""

    def act(found: TenantRequest) -> None:
        deciding.decline(request=found, actor=person(request), answer=request.POST.get("answer", ""))
        messages.success(request, gettext("Declined; the tenant reads why."))

    return _step(request, public_id, act)


@require_POST
@operator_required
def reopen(request: HttpRequest, public_id: str) -> HttpResponse:
    """Open it again."""

    def act(found: TenantRequest) -> None:
        deciding.reopen(request=found, actor=person(request), answer=request.POST.get("answer", ""))
        messages.success(request, gettext("It is open again."))

    return _step(request, public_id, act)


@require_POST
@operator_required
def comment(request: HttpRequest, public_id: str) -> HttpResponse:
    """Say something to the tenant."""

    def act(found: TenantRequest) -> None:
        deciding.comment(request=found, actor=person(request), text=request.POST.get("text", ""))

    return _step(request, public_id, act)


@require_POST
@operator_required
def offer(request: HttpRequest) -> HttpResponse:
    """Let tenants ask for a storage, or (`keep`) not any more."""
    key = request.POST.get("partition", "")
    partition = get_object_or_404(Partition.objects.visible_to(request.user).filter(tenant=None), public_id=key)
    try:
        if "keep" in request.POST:
            deciding.keep_storage(partition=partition, actor=person(request))
        else:
            deciding.offer_storage(partition=partition, words=request.POST.get("words", ""), actor=person(request))
    except Refused as refused:
        return _list(request, error=str(refused), status=409)
    return redirect("portal:operator_requests")


def _step(request: HttpRequest, public_id: str, act: Callable[[TenantRequest], None]) -> HttpResponse:
    found = _found(request, public_id)
    try:
        act(found)
    except Refused as refused:
        return _page(request, _found(request, public_id), error=str(refused), status=409)
    return redirect("portal:operator_request", public_id)


def _found(request: HttpRequest, public_id: str) -> TenantRequest:
    found = TenantRequest.objects.visible_to(request.user).whole().filter(public_id=public_id).first()
    if found is None:
        raise Http404
    return found


def _page(request: HttpRequest, found: TenantRequest, *, error: str = "", status: int = 200) -> HttpResponse:
    page = {
        "line": shown.line(found),
        "request_row": found,
        "said": shown.thread(found, is_for_tenant=False),
        "named": found.servers.select_related("server").order_by("name"),
        "may_act": is_operator(request.user),
        "error": error,
        "typed": request.POST,
        "has_servers": len(quotas.servers_wanted(found.tenant)),
        "staged": deciding.staged_for(found).values("port__hca__server").distinct().count()
        if found.state == State.APPROVED
        else 0,
        "plan": f"{reverse('console:plan')}?selection={Selection.of_tenant(found.tenant)}",
    }
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "portal/operator_request.html#live", page, status=status)
    if found.state == State.OPEN and found.kind == Kind.MORE_SERVERS and page["may_act"]:
        page |= _choice(request, found)
    return render(request, "portal/operator_request.html", page, status=status)


def _choice(request: HttpRequest, found: TenantRequest) -> dict[str, object]:
    """The pool to choose from, and the tenant's partitions. A few queries whatever its size."""
    named = filter_text(request, "find")
    free = deciding.pool(found)
    rows = list(free.filter(Q(hostname__icontains=named) | Q(rack__icontains=named))[: deciding.MOST_SHOWN + 1])
    rates: dict[int, list[float]] = {server.pk: [] for server in rows}
    ports = Port.objects.filter(hca__server__in=rows, link_layer=Port.LinkLayer.INFINIBAND)
    for server, rate in ports.values_list("hca__server", "rate_gbps"):
        rates[server].append(rate or 0)
    chosen = request.POST.getlist("servers")
    return {
        "pool": [(server, shown.sort_of(rates[server.pk]), server.public_id in chosen) for server in rows][
            : deciding.MOST_SHOWN
        ],
        "has_more": len(rows) > deciding.MOST_SHOWN,
        "find": named,
        "partitions": list(
            Partition.objects.in_use().filter(tenant=found.tenant, subnet=found.subnet).order_by("name")
        ),
    }
