"""The web door takes in at most 1 MiB of what is sent to the API, and 4 MiB of what is sent to pages.

Django's ASGI handler writes a whole body to disk before it asks who sends it.
"""

from typing import Final

from fabricui.api_errors import PREFIX, problem_bytes
from inventory.body_limit import TOO_LARGE, App, BodyLimit, Message, Receive, Scope, Send, stated_length
from people.api.problems import MEDIA_TYPE, Problem

MOST_OF_A_PAGE: Final = 4 * 1024 * 1024  # a file of labels has at most half of that
_SENTENCE: Final = "The body has more than 1 MiB; it was not read."
_OF_A_PAGE: Final = b"This is larger than anything that a page here takes. It was not read.\n"


class ApiBodyLimit:
    """Hand requests to the API on with their body, or answer 413 without having read it."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.limited = BodyLimit(self._unless_larger)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Requests alone have a body; those of the API are read here, those of pages counted as they pass."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif str(scope["path"]).startswith(PREFIX):
            await self.limited(scope, receive, send)
        else:
            await self._counted(scope, receive, send)

    async def _unless_larger(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope.get(TOO_LARGE):
            await self.app(scope, receive, send)
            return
        body = Problem("body_too_large", _SENTENCE, where="body").body(None)
        headers = [(b"content-type", MEDIA_TYPE.encode()), (b"cache-control", b"no-store"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": problem_bytes(body)})

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        if stated_length(scope) > MOST_OF_A_PAGE:
            await _refuse_page(send)
            return
        taken, is_answered = 0, False

        async def count() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            return {"type": "http.disconnect"} if taken > MOST_OF_A_PAGE else message

        async def answer(message: Message) -> None:
            nonlocal is_answered
            is_answered = True
            await send(message)

        await self.app(scope, count, answer)
        if taken > MOST_OF_A_PAGE and not is_answered:
            await _refuse_page(send)


async def _refuse_page(send: Send) -> None:
    headers = [(b"content-type", b"text/plain"), (b"cache-control", b"no-store"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": _OF_A_PAGE})
