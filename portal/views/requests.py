"""Requests of the tenant: the list with the forms to ask, and one of them with what was said."""

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from partitions import quotas
from partitions.models import Partition
from people.models import Tenant, TenantRole
from portal import asking, sight
from portal import request_pages as shown
from portal.door import Seat, acting, tenant_page
from portal.errors import Refused
from portal.frame import frame
from portal.models import StorageOffer, TenantRequest

Kind, State = TenantRequest.Kind, TenantRequest.State


class AskForm(forms.Form):
    """What every request has, and what some have; which are needed is said by the kind."""

    kind = forms.ChoiceField(choices=Kind)
    why = forms.CharField(max_length=asking.LONGEST)
    count = forms.IntegerField(required=False)
    sort = forms.CharField(max_length=120, required=False)
    wanted_from = forms.DateField(required=False)
    partition = forms.CharField(max_length=12, required=False)
    storage = forms.CharField(max_length=12, required=False)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@tenant_page
def requests(request: HttpRequest, seat: Seat) -> HttpResponse:
    """What the tenant asked for, and the forms; POST asks."""
    return _ask(request, seat) if request.method == "POST" else _list(request, seat)


@acting
def _ask(request: HttpRequest, seat: Seat) -> HttpResponse:
    form = AskForm(request.POST)
    if not form.is_valid():
        # Each field says by itself what is wrong with it; one sentence is enough to begin with.
        name, errors = next(iter(form.errors.items()))
        labels = {"why": gettext("Why"), "count": gettext("How many"), "wanted_from": gettext("From when")}
        wrong = f"{labels.get(name, name)}: {' '.join(map(str, errors))} {gettext('Nothing was asked.')}"
        return _list(request, seat, error=wrong, status=422)
    try:
        made = _made(seat, form.cleaned_data, request.POST.getlist("servers"))
    except Refused as refused:
        return _list(request, seat, error=str(refused), status=409)
    messages.success(request, gettext("Your provider has your request. You hear here what comes of it."))
    return redirect("portal:request", seat.tenant.public_id, made.public_id)


def _made(seat: Seat, asked: dict[str, object], servers: list[str]) -> TenantRequest:
    why = str(asked["why"])
    if asked["kind"] == Kind.RETURN_SERVERS:
        found = asking.servers_of(seat, servers)
        if len(found) != len(set(servers)):
            raise Http404
        return asking.ask_to_return(seat=seat, servers=found, why=why)
    partition = _own(seat, str(asked["partition"]))
    if asked["kind"] == Kind.SHARED_STORAGE:
        offered = StorageOffer.objects.visible_to(seat.person).filter(partition__public_id=asked["storage"])
        offer = offered.select_related("partition").first()
        if partition is None or offer is None:
            raise Http404
        return asking.ask_for_storage(seat=seat, partition=partition, storage=offer.partition, why=why)
    subnet = partition.subnet if partition is not None else sight.the_subnet(seat)
    if subnet is None:
        raise Http404
    count = asked["count"]
    return asking.ask_more_servers(
        seat=seat, subnet=subnet, count=count if isinstance(count, int) else 0, why=why, sort=str(asked["sort"]),
        wanted_from=asked["wanted_from"], partition=partition,  # type: ignore[arg-type]  # the form's own types
    )  # fmt: skip


def _own(seat: Seat, public_id: str) -> Partition | None:
    return sight.own_partition(seat, public_id) if public_id else None


def _list(request: HttpRequest, seat: Seat, *, error: str = "", status: int = 200) -> HttpResponse:
    rows = TenantRequest.objects.visible_to(seat.person).filter(tenant=seat.tenant).whole()
    waiting = list(rows.not_over().order_by("-asked_at", "-pk"))
    over = list(rows.exclude(pk__in=[row.pk for row in waiting]).order_by("-asked_at", "-pk")[: shown.SHOWN])
    page = {**frame(seat, "requests"), "waiting": shown.lines(waiting), "over": shown.lines(over), "error": error}
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "portal/requests.html#live", page, status=status)
    if seat.may_act:
        servers = list(sight.own_servers(seat))
        tenant = Tenant.objects.get(pk=seat.tenant.pk)
        page |= {
            "typed": request.POST,
            "chosen": request.POST.getlist("servers"),
            "servers": servers,
            "sorts": shown.sorts_of(servers),
            "partitions": list(sight.own_partitions(seat).filter(retired_at=None).order_by("name")),
            "offers": shown.offers(seat),
            "most_servers": tenant.most_servers,
            "has_servers": len(quotas.servers_wanted(tenant)),
        }
    return render(request, "portal/requests.html", page, status=status)


@require_safe
@never_cache
@tenant_page
def request_page(request: HttpRequest, seat: Seat, public_id: str) -> HttpResponse:
    """One request: what was asked, how it stands, what was said."""
    return _page(request, seat, _found(seat, public_id))


@require_POST
@tenant_page
@acting
def comment(request: HttpRequest, seat: Seat, public_id: str) -> HttpResponse:
    """Say something to it."""
    found = _found(seat, public_id)
    text = request.POST.get("text", "")
    try:
        asking.comment(seat=seat, request=found, text=text)
    except Refused as refused:
        return _page(request, seat, found, error=str(refused), text=text, status=409)
    return redirect("portal:request", seat.tenant.public_id, public_id)


@require_POST
@tenant_page
@acting
def withdraw(request: HttpRequest, seat: Seat, public_id: str) -> HttpResponse:
    """Take it back."""
    found = _found(seat, public_id)
    try:
        asking.withdraw(seat=seat, request=found)
    except Refused as refused:
        found.refresh_from_db()
        return _page(request, seat, found, error=str(refused), status=409)
    messages.success(request, gettext("It is taken back."))
    return redirect("portal:request", seat.tenant.public_id, public_id)


def _found(seat: Seat, public_id: str) -> TenantRequest:
    """One of the tenant's; Http404 for any other."""
    rows = TenantRequest.objects.visible_to(seat.person).filter(tenant=seat.tenant).whole()
    found = rows.filter(public_id=public_id).first()
    if found is None:
        raise Http404
    return found


def _page(
    request: HttpRequest, seat: Seat, found: TenantRequest, *, error: str = "", text: str = "", status: int = 200
) -> HttpResponse:
    is_own = found.asked_by_id == seat.person.pk or seat.role == TenantRole.Role.ADMIN
    page = {
        **frame(seat, "requests"),
        "line": shown.line(found),
        "means": shown.means(found),
        "said": shown.thread(found, is_for_tenant=True),
        "named": shown.servers_for_tenant(seat, found),
        "may_withdraw": seat.may_act and is_own and found.state == State.OPEN,
        "error": error,
        "text": text,
    }
    name = "portal/request.html#live" if request.htmx else "portal/request.html"  # type: ignore[attr-defined]
    return render(request, name, page, status=status)
