"""The answer to a request that could not be recorded: nothing was changed, and here is why."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string

from audit.errors import TrailUnavailable
from audit.request_id import current_request_id

RETRY_AFTER_S = 30


class TrailUnavailableMiddleware:
    """Turn TrailUnavailable into a page, or JSON for programs, with status 503. Everything was rolled back before."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """The answer to a view that could not record, None for any other error."""
        if not isinstance(exception, TrailUnavailable):
            return None
        headers = {"Cache-Control": "no-store", "Retry-After": str(RETRY_AFTER_S)}
        if request.content_type == "application/json" or "text/html" not in request.headers.get("Accept", "text/html"):
            said = {"error": "audit_unavailable", "sentence": str(exception)}
            return JsonResponse(said, status=503, headers=headers)
        page = render_to_string("503.html", {"sentence": str(exception), "request_id": current_request_id()})
        return HttpResponse(page, status=503, headers=headers)
