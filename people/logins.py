"""Record who signs in and out, in the transaction of nothing else: no event, no session.

If recording raises, the request fails with status 500 and Django keeps the session unsaved.
"""

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.signals import user_logged_in, user_logged_out
from allauth.mfa.signals import authentication_failed
from django.db import transaction
from django.dispatch import receiver
from django.http import HttpRequest

from audit.actions import Action
from audit.record import record
from audit.values import Actor
from people import limits, second_factor
from people.actor import actor_of, person_subject
from people.models import User


@receiver(user_logged_in)
def signed_in(request: HttpRequest, user: User, **_: Any) -> None:
    """Record that `user` has shown who they are, and by what."""
    by = second_factor.shown_by(request, user)
    if second_factor.has_one(user):
        request.session[second_factor.SHOWN] = True
    _record(Action.PERSON_LOGIN, request, user, by=by)
    limits.remember_login(username=user.username, address=get_adapter().get_client_ip(request))


@receiver(user_logged_out)
def signed_out(request: HttpRequest, user: User | None, **_: Any) -> None:
    """Record that `user` ended the session; None when there was nobody in it."""
    if isinstance(user, User):
        _record(Action.PERSON_LOGOUT, request, user)


@receiver(authentication_failed)
def wrong_code(request: HttpRequest, user: User, reauthentication: bool = False, **_: Any) -> None:
    """Record a wrong code of the second factor; before the login is complete it is nobody yet who typed it."""
    address = get_adapter().get_client_ip(request)
    with transaction.atomic():
        record(
            action=Action.PERSON_LOGIN_FAILED,
            actor=actor_of(user) if reauthentication else Actor.anonymous(address),
            subject=person_subject(user),
            after={"address": address},
            reason="the code of the second factor",
        )


def _record(action: Action, request: HttpRequest, user: User, **more: object) -> None:
    # Django's own logout() may be called with a request that never came over a wire.
    address = get_adapter().get_client_ip(request) if request.META else ""
    with transaction.atomic():
        record(action=action, actor=actor_of(user), subject=person_subject(user), after={"address": address, **more})
