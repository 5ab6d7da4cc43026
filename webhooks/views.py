"""Pages of webhooks: the operators' list, and one endpoint with its newest messages.

An endpoint's own page and its buttons serve a tenant's administrators as they serve ours: `visible_to` and `may_change`
decide. A tenant's list is for the room of tenants to show, with `list_page`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from people.actor import actor_of
from people.fresh import fresh_login_required
from people.models import Tenant
from people.permissions import admin_required, is_admin, person_required, reviewer_required
from webhooks import operations
from webhooks.errors import WebhookRefused
from webhooks.kinds import OF_OPERATORS, OF_TENANTS, WORDS
from webhooks.models import Endpoint
from webhooks.terms import PAUSES

type Around = Mapping[str, object]

SHOWN: Final = 30  # of its newest messages
LONGEST_BACK: Final = 200  # characters of the address to go back to


class EndpointForm(forms.Form):
    """What a new endpoint needs; the operation judges the address."""

    name = forms.CharField(max_length=60)
    url = forms.CharField(max_length=500)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@reviewer_required
def endpoints(request: HttpRequest) -> HttpResponse:
    """The operators' endpoints; POST makes one and shows its secret, this once."""
    return _create(request) if request.method == "POST" else list_page(request, tenant=None, may_act=_may_add(request))


@admin_required
@fresh_login_required
def _create(request: HttpRequest) -> HttpResponse:
    return create(request, tenant=None)


@sensitive_variables("secret")
def create(request: HttpRequest, *, tenant: Tenant | None, around: Around | None = None) -> HttpResponse:
    """Make an endpoint of `tenant`, or of the operators, of what was posted. The caller has seen to who may."""
    page = partial(list_page, request, tenant=tenant, may_act=True, around=around)
    form = EndpointForm(request.POST)
    kinds = request.POST.getlist("kinds")
    if not form.is_valid():
        return page(form=form, status=422)
    try:
        made, secret = operations.create_endpoint(
            **form.cleaned_data, kinds=kinds, tenant=tenant, actor=actor_of(request.user)
        )
    except WebhookRefused as refusal:
        form.add_error(None, str(refusal))
        return page(form=form, status=422)
    return page(status=201, made=made, secret=secret)


def list_page(
    request: HttpRequest,
    *,
    tenant: Tenant | None,
    may_act: bool,
    form: EndpointForm | None = None,
    status: int = 200,
    around: Around | None = None,
    **made: object,
) -> HttpResponse:
    """The endpoints of `tenant`, or of the operators, with the form for another one. One query.

    `around` is what the page of a room above stands in: its `base` template, what that one needs, and as `back` the
    address of its page that leads here, to which each endpoint's own page leads back then.
    """
    kinds = OF_OPERATORS if tenant is None else OF_TENANTS
    shown = {
        **(around or {}),
        "rows": [(row, words_of(row)) for row in Endpoint.objects.filter(tenant=tenant).order_by("name", "pk")],
        "form": form or EndpointForm(),
        "offered": [(kind.value, WORDS[kind]) for kind in kinds],
        "chosen": request.POST.getlist("kinds"),
        "may_act": may_act,
        **made,
    }
    return render(request, "webhooks/endpoints.html", shown, status=status)


@require_safe
@never_cache
@person_required
def endpoint(request: HttpRequest, public_id: str) -> HttpResponse:
    """One endpoint: what it is told of, its newest messages, and the buttons."""
    return _page(request, _found(request, public_id))


def way_back(request: HttpRequest) -> str:
    """The address on this site from where the person came here, as the links of a page above say it; "" for none.

    What an address says is anybody's: one that leads to another site, or that a browser reads as such, is none.
    """
    back = request.POST.get("back") or request.GET.get("back") or ""
    is_ours = back.startswith("/") and len(back) <= LONGEST_BACK
    return back if is_ours and url_has_allowed_host_and_scheme(back, allowed_hosts=None) else ""


def _to_page(request: HttpRequest, found: Endpoint) -> HttpResponse:
    address, back = reverse("webhooks:endpoint", args=[found.public_id]), way_back(request)
    return redirect(f"{address}?{urlencode({'back': back})}" if back else address)


def _page(request: HttpRequest, found: Endpoint, *, status: int = 200, **more: object) -> HttpResponse:
    shown = {
        "endpoint": found,
        "back": way_back(request),
        "kinds": words_of(found),
        "waiting": found.deliveries.waiting().count(),
        "deliveries": found.deliveries.order_by("-pk")[:SHOWN],
        "may_act": may_change(request.user, found),
        "most_tries": len(PAUSES) + 1,
        **more,
    }
    return render(request, "webhooks/endpoint.html", shown, status=status)


def may_change(user: Any, endpoint: Endpoint) -> bool:
    """Whether `user`, who sees the endpoint, may change it: administrators, of FabricUI or of its tenant."""
    return bool(is_admin(user)) if endpoint.tenant is None else True


def words_of(endpoint: Endpoint) -> list[str]:
    """What it is told of, in words."""
    return [str(words) for kind, words in WORDS.items() if kind.value in endpoint.kinds]


def _step(act: Callable[[Endpoint, HttpRequest], HttpResponse]) -> Callable[..., HttpResponse]:
    """A button of the page, for who may change the endpoint and has shown lately who they are."""

    @require_POST
    @never_cache
    @person_required
    def view(request: HttpRequest, public_id: str) -> HttpResponse:
        found = _found(request, public_id)
        if not may_change(request.user, found):
            raise Http404
        return fresh_login_required(lambda asked: act(found, asked))(request)

    return view


def _test(found: Endpoint, request: HttpRequest) -> HttpResponse:
    if found.off_since is not None:
        return _page(request, found, status=409, refusal=_("It is switched off. Switch it on first."))
    operations.send_test(endpoint=found, actor=actor_of(request.user))
    messages.success(request, _("A test is on its way; this page shows what becomes of it."))
    return _to_page(request, found)


def _on(found: Endpoint, request: HttpRequest) -> HttpResponse:
    operations.switch_on(endpoint=found, actor=actor_of(request.user))
    messages.success(request, _("It is told of what happens from now on."))
    return _to_page(request, found)


def _off(found: Endpoint, request: HttpRequest) -> HttpResponse:
    operations.switch_off(endpoint=found, actor=actor_of(request.user), because="switched off by a person")
    messages.success(request, _("It is told nothing any more."))
    return _to_page(request, found)


@sensitive_variables("secret")
def _secret(found: Endpoint, request: HttpRequest) -> HttpResponse:
    secret = operations.renew_secret(endpoint=found, actor=actor_of(request.user))
    return _page(request, found, status=201, secret=secret)


def _remove(found: Endpoint, request: HttpRequest) -> HttpResponse:
    is_ours = found.tenant is None
    operations.remove_endpoint(endpoint=found, actor=actor_of(request.user))
    messages.success(request, _("The webhook is removed."))
    return redirect(way_back(request) or ("webhooks:endpoints" if is_ours else "/"))


test, on, off, secret, remove = _step(_test), _step(_on), _step(_off), _step(_secret), _step(_remove)


def _found(request: HttpRequest, public_id: str) -> Endpoint:
    found: Endpoint = get_object_or_404(
        Endpoint.objects.visible_to(request.user).select_related("tenant"), public_id=public_id
    )
    return found


def _may_add(request: HttpRequest) -> bool:
    return bool(is_admin(request.user))
