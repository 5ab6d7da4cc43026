"""BodyLimit: an ASGI door that never takes in more than 1 MiB of a request's body.

Django's ASGI handler reads a whole body (to disk, if it is large) before any view is asked. This stands in front of it,
so that a body that is too large is not read, and the view answers 413 and records the refusal.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

MOST_BYTES: Final = 1024 * 1024
TOO_LARGE: Final = "inventory.body_too_large"  # set in the scope, and in the environment that the view sees
BODY_DEADLINE_S: Final = 30.0

type Scope = MutableMapping[str, Any]
type Message = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]
type App = Callable[[Scope, Receive, Send], Awaitable[None]]


class BodyLimit:
    """Hand requests on to `app` with a body of at most 1 MiB that came within 30 s."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take in the body, then hand on; a larger one is handed on empty, with TOO_LARGE in the scope."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        chunks: list[bytes] = []
        is_larger = _stated_length(scope) > MOST_BYTES
        try:
            async with asyncio.timeout(BODY_DEADLINE_S):
                more = not is_larger
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return
                    chunks.append(message.get("body", b""))
                    more = message.get("more_body", False)
                    if sum(map(len, chunks)) > MOST_BYTES:
                        is_larger, more = True, False
        except TimeoutError:
            await send({"type": "http.response.start", "status": 408, "headers": [(b"connection", b"close")]})
            await send({"type": "http.response.body", "body": b""})
            return
        if is_larger:
            # Django compares the stated length with what it got: the body is empty from here on, and so is its length.
            headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"content-length"]
            scope = {**scope, "headers": headers, TOO_LARGE: True}
            chunks = []
        body = b"".join(chunks)
        is_given = False

        async def replay() -> Message:
            nonlocal is_given
            if not is_given:
                is_given = True
                return {"type": "http.request", "body": body, "more_body": False}
            if is_larger:
                # What is still coming is not ours to read: the server throws it away once the answer is out, and
                # Django, which listens here for a lost connection, stops listening then.
                await asyncio.Event().wait()
            return await receive()

        await self.app(scope, replay, send)


def _stated_length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name.lower() == b"content-length" and value.isdigit() and len(value) <= 15:
            return int(value)
    return 0
