"""The stream of hints that each open page listens to."""

from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET

from live.hub import hub, let_go_of_the_database
from live.rights import Audiences, audiences_of
from live.stream import GONE

LONGEST_S = 86_400.0


@require_GET
async def stream(request: HttpRequest) -> HttpResponseBase:
    """Hints as server-sent events, for as long as the page is open and its session may listen.

    `unsure`: for how many milliseconds the page has not known whether anything changed. Somebody whose session is
    over is told so in the stream, which a script can read; a redirect to the login page it cannot. Strangers get 404.
    Without a broker, or under a server that cannot stream, there is nothing (204): the page goes on asking.
    """
    if not isinstance(request, ASGIRequest) or not settings.REDIS_URL:
        return HttpResponse(status=204)
    user = await request.auser()
    if not user.is_authenticated:
        return _answer(_only(GONE))
    audiences = await sync_to_async(_audiences_of)(user)
    if not audiences:
        return HttpResponseNotFound()  # no page: a script asked
    if hub().is_full:
        return HttpResponse(status=204)
    key = request.session.session_key or ""
    return _answer(hub().listen(key, audiences, unsure_s=_seconds(request.GET.get("unsure", ""))))


def _audiences_of(user: object) -> Audiences:
    try:
        return audiences_of(user)
    finally:
        let_go_of_the_database()  # the stream stays open for hours


def _answer(content: AsyncIterator[bytes]) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        content,
        content_type="text/event-stream",
        headers={"Cache-Control": "no-cache, no-store", "X-Accel-Buffering": "no"},
    )


async def _only(message: bytes) -> AsyncIterator[bytes]:
    yield message


def _seconds(milliseconds: str) -> float:
    """The duration; nonsense counts as very long: better one look too many."""
    return min(int(milliseconds) / 1e3, LONGEST_S) if milliseconds.isascii() and milliseconds.isdecimal() else LONGEST_S
