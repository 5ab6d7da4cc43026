"""`/healthz`: this process lives. `/readyz`: all that the work needs is well. For systemd, proxies and monitoring.

A stranger learns one word and a status of each, because a proxy needs no more; who shows FABRICUI_METRICS_TOKEN gets
every check with its sentence. Both are answered before sessions and host names are looked at, so that they answer
while the database is away, and to a proxy that asks by address.
"""

import threading
import time
from collections.abc import Awaitable, Callable
from typing import Final

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.conf import settings
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.http.response import HttpResponseBase
from django.utils.crypto import constant_time_compare

from fabricui.checks_of_health import Check, every_check

type Next = Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]

FRESH_S: Final = 1.0  # whoever asks more often gets the same answer, and costs nothing

_lock = threading.Lock()
_known: tuple[float, list[Check]] | None = None


def healthz(request: HttpRequest) -> HttpResponse:
    """200 while the process answers at all. Looks at nothing else."""
    return _answer(request, {"status": "alive"}, 200)


def readyz(request: HttpRequest) -> HttpResponse:
    """200 when every check is well, else 503."""
    if request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(["GET", "HEAD"])
    checks = _checks()
    is_ready = all(check.is_well for check in checks)
    said: dict[str, object] = {"status": "ready" if is_ready else "not ready"}
    if shows_token(request):
        said["checks"] = [check.to_json() for check in checks]
    return _answer(request, said, 200 if is_ready else 503)


def shows_token(request: HttpRequest) -> bool:
    """Whether the request has the token of monitoring; never while none is set."""
    token, given = settings.METRICS_TOKEN, request.headers.get("Authorization", "")
    return bool(token) and constant_time_compare(given, f"Bearer {token}")


class HealthMiddleware:
    """Answer the two before anything else is done with the request."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """The answer; every other address goes on."""
        view = VIEWS.get(request.path_info)
        if view is readyz and settings.LISTENER == "register":
            view = None  # tenants' servers reach that door
        if view is None:
            return self.get_response(request)
        return sync_to_async(_in_a_thread)(view, request) if self.is_async else view(request)


def _in_a_thread(view: Callable[[HttpRequest], HttpResponse], request: HttpRequest) -> HttpResponseBase:
    """Answer without leaving a connection to the database behind: Django closes those of requests that it begins."""
    close_old_connections()
    try:
        return view(request)
    finally:
        close_old_connections()


VIEWS: Final[dict[str, Callable[[HttpRequest], HttpResponse]]] = {"/healthz": healthz, "/readyz": readyz}


def _checks() -> list[Check]:
    global _known
    with _lock:
        if _known is None or time.monotonic() - _known[0] >= FRESH_S:
            _known = (time.monotonic(), every_check())
        return _known[1]


def forget() -> None:
    """Let the next answer be looked for anew."""
    global _known
    _known = None


def _answer(request: HttpRequest, said: dict[str, object], status: int) -> HttpResponse:
    if request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(["GET", "HEAD"])
    response = JsonResponse(said, status=status, headers={"Cache-Control": "no-store"})
    response._has_been_logged = True  # type: ignore[attr-defined]  # Django logs each 503; who asks is told already
    return response
