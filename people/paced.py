"""allauth's pages when somebody asked too often: they say so with status 429, and when to come again.

Without what counts the attempts nothing is checked, else passwords could be tried at will while it is away: 503.
"""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from redis.exceptions import RedisError

from people import limits

log = logging.getLogger(__name__)

COUNTED_AGAIN_S: Final = 30

# The codes of allauth's sentences about that: of a login's two steps, and of a second factor that is set up.
_TOO_OFTEN = ("too_many_login_attempts", "rate_limited")


def paced(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """`view`, whose refusals for coming too often answer 429 with Retry-After, also those that its form tells.

    When nobody can say how often somebody came, the answer is 503.
    """

    @wraps(view)
    def told(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            response = view(request, *args, **kwargs)
        except RedisError:
            log.exception("the cache does not answer; nobody is let in by a password or a code")
            return to_wait(render(request, "account/uncounted.html"), COUNTED_AGAIN_S, status=503)
        if response.status_code == 429:
            who = "person" if request.user.is_authenticated else "address"
            return to_wait(response, limits.LOGIN_AGAIN_S[who])
        return to_wait(response, limits.LOGIN_AGAIN_S["account"]) if _is_too_often(response) else response

    return told


def to_wait(response: HttpResponseBase, seconds: int, *, status: int = 429) -> HttpResponseBase:
    """`response` as one that tells somebody to come again in `seconds`."""
    response.status_code = status
    response["Retry-After"] = str(seconds)
    return response


def is_too_often(form: Any) -> bool:
    """Whether that, and nothing that was typed, is why `form` is refused."""
    told = form.errors.as_data() if form.is_bound else {}
    return any(error.code in _TOO_OFTEN for errors in told.values() for error in errors)


def _is_too_often(response: HttpResponseBase) -> bool:
    form = (getattr(response, "context_data", None) or {}).get("form")
    return form is not None and is_too_often(form)
