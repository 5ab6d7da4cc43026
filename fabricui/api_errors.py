"""What is answered where no view was found, or one failed: a problem under /api/, a page elsewhere."""

import json
from typing import Any, Final

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.views import defaults

from fabricui import page
from people.api.problems import MEDIA_TYPE, Problem

PREFIX: Final = "/api/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A request that is none: a host that is not ours, a NUL in the address."""
    if not request.path_info.startswith(PREFIX):
        return defaults.bad_request(request, exception)
    if isinstance(exception, RequestDataTooBig):
        return _answer(request, Problem("body_too_large", "The body is larger than what is taken here."))
    return _answer(request, Problem("malformed", "The request holds something that nothing here can hold."))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """No such address."""
    if not request.path_info.startswith(PREFIX):
        return defaults.page_not_found(request, exception)
    sentence = "The API has no such address. None of them ends with a slash."
    return _answer(request, Problem("not_found", sentence))


def server_error(request: HttpRequest) -> HttpResponse:
    """An error of ours, with the request id to look up in the log."""
    if not request.path_info.startswith(PREFIX):
        return page.server_error(request)
    return _answer(request, Problem("error", "Something in FabricUI went wrong. What it did is undone."))


def problem_bytes(body: dict[str, Any]) -> bytes:
    """A problem as it is sent."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _answer(request: HttpRequest, problem: Problem) -> HttpResponse:
    data = problem_bytes(problem.body(request))
    return HttpResponse(
        data, status=problem.status_code, content_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"}
    )
