"""Ask again who somebody is before what matters most: a rollout, the mode of a subnet, their own second factor.

The form in between carries along all that was posted, so nothing has to be typed twice and nothing is done twice.
"""

import logging
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, cast

from allauth.account.internal.flows.login import get_authentication_records, record_authentication
from allauth.core import ratelimit
from allauth.mfa.base.forms import ReauthenticateForm
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.debug import sensitive_post_parameters
from redis.exceptions import RedisError

from audit.actions import Action
from audit.record import record
from audit.values import Actor
from people import limits, second_factor
from people.actor import actor_of, person_subject
from people.models import User
from people.paced import COUNTED_AGAIN_S, is_too_often, to_wait

log = logging.getLogger(__name__)

CODE: Final = "fresh_code"
PASSWORD: Final = "fresh_password"  # noqa: S105  a field's name
CAME_BY_GET: Final = "fresh_get"
UNCOUNTED: Final = (
    "Nothing was checked: how often somebody tries is counted by the broker, and it does not answer. Try again in half "
    "a minute."
)
OURS: Final = {CODE, PASSWORD, CAME_BY_GET, "csrfmiddlewaretoken"}


def is_fresh(request: HttpRequest) -> bool:
    """Whether the person has shown who they are within settings.FRESH_LOGIN_MIN minutes."""
    if not settings.FRESH_LOGIN_MIN:
        return True
    user = request.user
    shown = get_authentication_records(request, user if isinstance(user, User) else None)
    return any(0 <= time.time() - record["at"] < settings.FRESH_LOGIN_MIN * 60 for record in shown)


def fresh_login_required[V: Callable[..., Any]](view: V) -> V:
    """Let through who has shown lately who they are; show others a form that asks for it and then goes on.

    Put it under the decorator that says who may enter. Only people with a session come here.
    """

    @sensitive_post_parameters(PASSWORD, CODE)
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response: HttpResponseBase
        if is_fresh(request):
            if CAME_BY_GET in request.POST:  # the second of two clicks
                return HttpResponseRedirect(request.get_full_path())
            response = view(request, *args, **kwargs)
            return response
        is_answer = request.method == "POST" and (CODE in request.POST or PASSWORD in request.POST)
        try:
            wrong, again_s = _why_wrong(request) if is_answer else ("", 0)
        except RedisError:
            log.exception("the cache does not answer; nobody shows who they are")
            return to_wait(_ask(request, UNCOUNTED), COUNTED_AGAIN_S, status=503)
        if wrong or not is_answer:
            return to_wait(_ask(request, wrong), again_s) if again_s else _ask(request, wrong)
        if CAME_BY_GET in request.POST:
            return HttpResponseRedirect(request.get_full_path())
        response = view(request, *args, **kwargs)
        return response

    return cast(V, guarded)


def _ask(request: HttpRequest, wrong: str) -> HttpResponseBase:
    user = request.user
    assert isinstance(user, User)  # noqa: S101  the decorator above saw to it
    carried = [(name, value) for name, values in request.POST.lists() if name not in OURS for value in values]
    by_get = request.method != "POST" or CAME_BY_GET in request.POST
    shown = {
        "carried": carried,
        "by_get": by_get,
        "wrong": wrong,
        "with_code": second_factor.has_one(user),
        "with_password": user.has_usable_password(),
        "minutes": settings.FRESH_LOGIN_MIN,
    }
    response = render(request, "account/fresh.html", shown, status=422 if wrong else 200)
    response["Cache-Control"] = "no-store"
    return response


def _why_wrong(request: HttpRequest) -> tuple[str, int]:
    """Check what was answered and remember it for the session when it is right; else say what is wrong.

    Also in how many seconds to try again; 0 for somebody who may at once.
    """
    user = request.user
    assert isinstance(user, User)  # noqa: S101  as above
    if not ratelimit.consume(request, action="reauthenticate", user=user):
        wrong = "Too many attempts. Nothing was checked this time: wait a minute, then try again."
        return wrong, limits.LOGIN_AGAIN_S["person"]
    if second_factor.has_one(user):
        form = ReauthenticateForm(user=user, data={"code": request.POST.get(CODE, "")})
        if not form.is_valid():
            again_s = limits.LOGIN_AGAIN_S["account"] if is_too_often(form) else 0
            return " ".join(form.errors.get("code", ["Type the code."])), again_s
        with transaction.atomic():
            form.save()
            _record_shown(user)
        return "", 0
    if not user.has_usable_password() or not user.check_password(request.POST.get(PASSWORD, "")):
        with transaction.atomic():
            record(
                action=Action.PERSON_LOGIN_FAILED,
                actor=actor_of(user),
                subject=person_subject(user),
                reason="asked again for the password",
            )
        return "This is not your password.", 0
    with transaction.atomic():
        record_authentication(request, user, method="password", reauthenticated=True)
        _record_shown(user)
    return "", 0


def _record_shown(user: User) -> None:
    actor: Actor = actor_of(user)
    record(action=Action.PERSON_REAUTHENTICATE, actor=actor, subject=person_subject(user))
