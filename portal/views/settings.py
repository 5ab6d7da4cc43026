"""Settings: the tenant's people, tokens and webhooks in one place. Its administrators change them, the others look."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from people import operations
from people.actor import actor_of
from people.fresh import fresh_login_required
from people.models import TenantRole, Token, User
from portal import own_people
from portal.activity.found import people_of
from portal.door import Seat, SeatedView, refusal, tenant_page, viewer_sentence
from portal.errors import Refused
from portal.frame import frame
from webhooks import views as webhooks
from webhooks.models import Endpoint


def administering(view: SeatedView) -> SeatedView:
    """Let only the tenant's administrators do this; the others are told whom to ask. Under `tenant_page`."""

    @wraps(view)
    def guarded(request: HttpRequest, seat: Seat, *args: Any, **kwargs: Any) -> HttpResponse:
        if seat.role != TenantRole.Role.ADMIN:
            said = gettext("Only administrators of %(tenant)s do this. Nothing was changed.")
            sentence = viewer_sentence(seat) if not seat.may_act else said % {"tenant": seat.tenant.name}
            return refusal(request, seat, sentence, status=403)
        return view(request, seat, *args, **kwargs)

    return guarded


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@tenant_page
def settings(request: HttpRequest, seat: Seat) -> HttpResponse:
    """People, tokens and webhooks; POST adds somebody and shows their password, this once."""
    return _fresh(_add)(request, seat) if request.method == "POST" else _page(request, seat)


def _fresh(act: Callable[[HttpRequest, Seat], HttpResponse]) -> SeatedView:
    """For administrators who have shown lately who they are."""

    @administering
    def view(request: HttpRequest, seat: Seat) -> HttpResponse:
        return fresh_login_required(lambda asked: act(asked, seat))(request)

    return view


@sensitive_variables("password")
def _add(request: HttpRequest, seat: Seat) -> HttpResponse:
    try:
        person, password = own_people.add(
            seat=seat, name=request.POST.get("name", ""), role=request.POST.get("role", "")
        )
    except Refused as refused:
        return _page(request, seat, status=422, error=str(refused))
    return _page(request, seat, status=201, made=person, password=password)


def _page(request: HttpRequest, seat: Seat, *, status: int = 200, **more: object) -> HttpResponse:
    is_admin = seat.role == TenantRole.Role.ADMIN
    page = {
        **frame(seat, "settings"),
        "is_admin": is_admin,
        "roles": _roles(seat),
        "choices": TenantRole.Role.choices,
        "own_tokens": Token.objects.visible_to(seat.person).count(),
        "tokens": _tokens(seat) if is_admin else [],
        "webhooks": _webhooks(seat) if is_admin else [],
        "typed": request.POST,
        "here": _here(seat),
        **more,
    }
    return render(request, "portal/settings.html", page, status=status)


def _here(seat: Seat) -> str:
    """Where an endpoint's own page, which knows no portal, leads back to."""
    return reverse("portal:settings", args=[seat.tenant.public_id])


def _roles(seat: Seat) -> list[TenantRole]:
    rows = TenantRole.objects.filter(tenant=seat.tenant).select_related("user")
    return list(rows.order_by("user__first_name", "pk"))


def _tokens(seat: Seat) -> list[Token]:
    """Those of its people that are for this tenant alone."""
    own = people_of(seat.tenant)
    rows = Token.objects.filter(tenant=seat.tenant, user__public_id__in=own).select_related("user")
    return list(rows.order_by("-created"))


def _webhooks(seat: Seat) -> list[Endpoint]:
    return list(Endpoint.objects.visible_to(seat.person).filter(tenant=seat.tenant).order_by("name", "pk"))


@require_POST
@tenant_page
def person_role(request: HttpRequest, seat: Seat, public_id: str) -> HttpResponse:
    """Change what one of the tenant's people is for it."""

    def act(asked: HttpRequest, seat: Seat) -> HttpResponse:
        person, role = _person(seat, public_id), asked.POST.get("role", "")
        return _done(asked, seat, lambda: own_people.set_role(seat=seat, person=person, role=role))

    return _fresh(act)(request, seat)


@require_POST
@tenant_page
def person_remove(request: HttpRequest, seat: Seat, public_id: str) -> HttpResponse:
    """Remove one of the tenant's people."""

    def act(asked: HttpRequest, seat: Seat) -> HttpResponse:
        person = _person(seat, public_id)
        return _done(asked, seat, lambda: own_people.remove(seat=seat, person=person))

    return _fresh(act)(request, seat)


@require_POST
@tenant_page
@administering
def token_revoke(request: HttpRequest, seat: Seat, key: str) -> HttpResponse:
    """Make a token that is for this tenant worth nothing at once, whoever of its people has it."""
    token = next((one for one in _tokens(seat) if one.token_key == key), None)
    if token is None:
        raise Http404
    operations.revoke_token(token=token, actor=actor_of(seat.person))
    messages.success(request, gettext("The token is worth nothing from now on."))
    return redirect("portal:settings", seat.tenant.public_id)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@tenant_page
@administering
def endpoints(request: HttpRequest, seat: Seat) -> HttpResponse:
    """The tenant's webhooks; POST adds one and shows its secret, this once."""
    around = {**frame(seat, "settings"), "base": "portal/base.html", "back": _here(seat)}
    if request.method == "POST":
        return _fresh(lambda asked, seat: webhooks.create(asked, tenant=seat.tenant, around=around))(request, seat)
    return webhooks.list_page(request, tenant=seat.tenant, may_act=True, around=around)


def _person(seat: Seat, public_id: str) -> User:
    """One of the tenant's people; Http404 for anybody else."""
    role = TenantRole.objects.filter(tenant=seat.tenant, user__public_id=public_id).select_related("user").first()
    if role is None:
        raise Http404
    return role.user


def _done(request: HttpRequest, seat: Seat, act: Callable[[], None]) -> HttpResponse:
    try:
        act()
    except Refused as refused:
        return _page(request, seat, status=409, error=str(refused))
    messages.success(request, gettext("It is changed."))
    return redirect("portal:settings", seat.tenant.public_id)
