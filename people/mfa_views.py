"""The pages of the second factor: allauth's, each change in one transaction with its event."""

from collections.abc import Callable
from typing import Any, cast

from allauth.mfa.base import views as base
from allauth.mfa.recovery_codes import views as codes
from allauth.mfa.totp import views as totp
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from people import second_factor, sessions
from people.actor import actor_of
from people.fresh import fresh_login_required
from people.models import User
from people.paced import paced
from people.permissions import person_required


def _recorded(view: Any, done: Callable[[HttpRequest, User], None]) -> Any:
    """allauth's `view`, whose change and what follows from it, with its event, are one transaction."""

    class Recorded(view):  # type: ignore[misc]  # allauth has no types
        def form_valid(self, form: Any) -> HttpResponse:
            person = cast(User, self.request.user)
            with transaction.atomic():
                response: HttpResponse = super().form_valid(form)
                done(self.request, person)
            return response

    return Recorded.as_view()


def _activated(request: HttpRequest, person: User) -> None:
    request.session[second_factor.SHOWN] = True
    # A session that knew the password alone must not become one that has shown a code.
    sessions.end_others(request, person=person, actor=actor_of(person), reason="a second factor was set up")
    second_factor.record_added(person=person, actor=actor_of(person))


def _deactivated(request: HttpRequest, person: User) -> None:
    request.session.pop(second_factor.SHOWN, None)
    second_factor.record_removed(person=person, actor=actor_of(person))


def _generated(request: HttpRequest, person: User) -> None:
    second_factor.record_codes(person=person, actor=actor_of(person))


def _own(view: Any) -> Any:
    """One's own second factor: for people who are signed in and have lately shown who they are."""

    def page(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response: HttpResponseBase = view(request, *args, **kwargs)
        return response

    return never_cache(person_required(fresh_login_required(page)))


authenticate = paced(base.authenticate)  # the second step of a login, so nobody is signed in yet
index = require_safe(never_cache(person_required(base.index)))
activate = _own(paced(_recorded(totp.ActivateTOTPView, _activated)))
deactivate = _own(_recorded(totp.DeactivateTOTPView, _deactivated))
view_codes = _own(codes.view_recovery_codes)
generate_codes = _own(_recorded(codes.GenerateRecoveryCodesView, _generated))
