"""Signing in, and the colours of the pages. The other account pages are allauth's own."""

from allauth.account import views as allauth_views
from allauth.account.adapter import get_adapter
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from people import openid, operations
from people.actor import actor_of
from people.adapter import refused
from people.errors import NoSuchTheme
from people.models import User
from people.paced import paced
from people.permissions import person_required, to_login


@paced
def login(request: HttpRequest) -> HttpResponseBase:
    """Show allauth's login page.

    An address that is refused outright for coming too often is recorded here, after failures it is by the adapter.
    """
    response: HttpResponseBase = allauth_views.login(request)
    if response.status_code == 429:
        refused(address=get_adapter().get_client_ip(request), username=request.POST.get("login", ""))
    return response


password_change = paced(allauth_views.password_change)


@require_safe
@never_cache
def sso(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Send the person to the provider; not at the wish of another site."""
    if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        return to_login(request)
    return openid.login(request, provider_id)


@require_safe
@never_cache
def sso_callback(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Take the person back from the provider, who says who they are."""
    return openid.callback(request, provider_id)


@require_POST
@person_required
def theme(request: HttpRequest) -> HttpResponse:
    """Switch the colours and go back to where the person was."""
    assert isinstance(request.user, User)  # noqa: S101  person_required saw to it
    try:
        operations.set_theme(
            person=request.user, theme=request.POST.get("theme", "").upper(), actor=actor_of(request.user)
        )
    except NoSuchTheme as error:
        return HttpResponseBadRequest(str(error), content_type="text/plain; charset=utf-8")
    back = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}, require_https=request.is_secure()):
        back = "/"
    return HttpResponseRedirect(back)
