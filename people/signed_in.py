"""What comes before every page of a signed-in person: a session that is not over, a second factor where one is due."""

from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve, reverse
from django.utils.deprecation import MiddlewareMixin
from django_htmx.http import HttpResponseClientRedirect

from people import second_factor, sessions
from people.models import User
from people.permissions import to_login

# What somebody without their second factor may open: what sets it up, and the ways out.
BEFORE_SECOND_FACTOR: Final = {
    "account_logout",
    "account_change_password",
    "mfa_activate_totp",
    "mfa_view_recovery_codes",
    "set_theme",
    "set_language",
}


class SignedInMiddleware(MiddlewareMixin):
    """Send people whose session is over to the login page, and those who owe a second factor to setting it up."""

    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:
        """Answer in place of the page, or let it answer."""
        return _elsewhere(request)


def _elsewhere(request: HttpRequest) -> HttpResponseBase | None:
    user = request.user
    if not isinstance(user, User):
        return None
    over = sessions.why_over(request)
    if over:
        sessions.end_this(request, because=over)
        messages.info(request, f"You were signed out: {over}.")
        return to_login(request)
    sessions.touch(request)
    if not second_factor.is_owed(request) or _name_of(request) in BEFORE_SECOND_FACTOR:
        return None
    address = reverse("mfa_activate_totp")
    is_fragment = request.headers.get("HX-Request") == "true"
    return HttpResponseClientRedirect(address) if is_fragment else HttpResponseRedirect(address)


def _name_of(request: HttpRequest) -> str:
    try:
        found = resolve(request.path_info)
    except Resolver404:
        return ""
    return found.view_name
