"""What comes before every page of a signed-in person.

A session that is not over, a password that nobody else knows, a second factor where one is due.
"""

from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve, reverse
from django.utils.deprecation import MiddlewareMixin
from django_htmx.http import HttpResponseClientRedirect

from people import given, second_factor, sessions
from people.models import User
from people.permissions import to_login

# What somebody with a password that another made may open: what changes it, and the ways out.
BEFORE_OWN_PASSWORD: Final = {"account_logout", "account_change_password", "set_theme", "set_language"}
# What somebody without their second factor may open: what sets it up, and the ways out.
BEFORE_SECOND_FACTOR: Final = {*BEFORE_OWN_PASSWORD, "mfa_activate_totp", "mfa_view_recovery_codes"}


class SignedInMiddleware(MiddlewareMixin):
    """Send people whose session is over to the login page, and those who owe something to where they do it."""

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
    if given.is_owed(request):
        return _first(request, "account_change_password", BEFORE_OWN_PASSWORD)
    if second_factor.is_owed(request):
        return _first(request, "mfa_activate_totp", BEFORE_SECOND_FACTOR)
    return None


def _first(request: HttpRequest, name: str, allowed: set[str]) -> HttpResponseBase | None:
    """Send to the page `name` before all others but `allowed`."""
    if _name_of(request) in allowed:
        return None
    address = reverse(name)
    is_fragment = request.headers.get("HX-Request") == "true"
    return HttpResponseClientRedirect(address) if is_fragment else HttpResponseRedirect(address)


def _name_of(request: HttpRequest) -> str:
    try:
        found = resolve(request.path_info)
    except Resolver404:
        return ""
    return found.view_name
