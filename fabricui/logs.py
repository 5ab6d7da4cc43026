"""A line of the log for each request, and the id of the request in what workers log and record.

The id of a request goes along with what it hands to a queue (`audit/nudge.py`), so that the lines and the events of a
worker name the click that they finish.
"""

import logging
import time
from contextlib import AbstractContextManager
from typing import Any, cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from celery import signals
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from audit import nudge
from audit.request_id import request_id
from fabricui.health import VIEWS, Next

log = logging.getLogger("fabricui.requests")


class RequestLineMiddleware:
    """Log a line for each request that was answered: method, path without its query, status, how long, who."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        """Answer, then tell of it."""
        if self.is_async:
            return self._answer_async(request)
        began = time.perf_counter()
        response = cast(HttpResponseBase, self.get_response(request))
        _tell(request, response, began)
        return response

    async def _answer_async(self, request: HttpRequest) -> HttpResponseBase:
        began = time.perf_counter()
        response = await cast(Any, self.get_response(request))
        _tell(request, response, began)
        return cast(HttpResponseBase, response)


def _tell(request: HttpRequest, response: HttpResponseBase, began: float) -> None:
    if request.path_info in VIEWS:
        return
    # A query may hold a name, a code of the OpenID provider, or whatever somebody pasted: it stays out.
    told = {
        "method": request.method,
        "path": request.path_info,
        "status": response.status_code,
        "ms": round((time.perf_counter() - began) * 1e3, 1),
        "request": response.headers.get("X-Request-ID", ""),
        "who": _who(request),
    }
    log.info("%s %s %s", request.method, request.path_info, response.status_code, extra={"told": told})


def _who(request: HttpRequest) -> str:
    """The public id of who is signed in; only if the view has asked, so that no line costs a query."""
    found = getattr(request, "_cached_user", None)
    return str(getattr(found, "public_id", ""))


# --- inside a worker -------------------------------------------------------------------------------------------------
_open: dict[str, AbstractContextManager[None]] = {}  # by task


@signals.task_prerun.connect(weak=False)
def _begins(task_id: str, task: Any, **_: object) -> None:
    asked = getattr(task.request, nudge.ASKED_BY, None)
    if isinstance(asked, str) and asked:
        _open[task_id] = request_id(asked)
        _open[task_id].__enter__()


@signals.task_postrun.connect(weak=False)
def _ends(task_id: str, **_: object) -> None:
    opened = _open.pop(task_id, None)
    if opened is not None:
        opened.__exit__(None, None, None)
