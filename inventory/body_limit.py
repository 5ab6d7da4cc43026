"""BodyLimit: an ASGI door that never takes in more than 1 MiB of a request's body, and never holds many at once.

Django's ASGI handler reads a whole body (to disk, if it is large) before any view is asked. This stands in front of it,
so that a body that is too large is not read, and the view answers 413 and records the refusal. The bodies of all
requests that are read or wait for their answer have a bound together: whoever comes beyond it is told to come again,
and the agent does so by itself.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

MOST_BYTES: Final = 1024 * 1024
TOO_LARGE: Final = "inventory.body_too_large"  # set in the scope, and in the environment that the view sees
BODY_DEADLINE_S: Final = 30.0
MOST_HELD: Final = 256 * 1024 * 1024  # bytes of all bodies of a process: some 25,000 servers that wait with a report
RETRY_AFTER_S: Final = 10  # the agent adds a pause of its own, which grows and differs from server to server
COME_AGAIN: Final = "The agent comes again by itself, and what was taken already is not taken twice."
_SAY_AGAIN_S: Final = 60.0

log = logging.getLogger(__name__)

type Scope = MutableMapping[str, Any]
type Message = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]
type App = Callable[[Scope, Receive, Send], Awaitable[None]]


class BodyLimit:
    """Hand requests on to `app` with a body of at most 1 MiB that came within 30 s, and 256 MiB of them at a time."""

    def __init__(self, app: App) -> None:
        self.app = app
        self._held = 0  # bytes
        self._said_at = -_SAY_AGAIN_S

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take in the body, then hand on; a larger one is handed on empty, with TOO_LARGE in the scope."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        held = 0

        def hold(size: int) -> bool:
            nonlocal held
            if self._held + size > MOST_HELD:
                return False
            held += size
            self._held += size
            return True

        try:
            await self._take(scope, receive, send, hold)
        finally:
            self._held -= held

    async def _take(self, scope: Scope, receive: Receive, send: Send, hold: Callable[[int], bool]) -> None:
        chunks: list[bytes] = []
        is_larger = stated_length(scope) > MOST_BYTES
        try:
            async with asyncio.timeout(BODY_DEADLINE_S):
                more = not is_larger
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return
                    if not hold(len(message.get("body", b""))):
                        await self._send_away(send)
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

    async def _send_away(self, send: Send) -> None:
        if time.monotonic() - self._said_at >= _SAY_AGAIN_S:
            self._said_at = time.monotonic()
            log.warning("bodies of %d MiB wait for an answer: others are told to come again", self._held >> 20)
        told = {"error": "busy", "sentence": f"Too many servers wait for FabricUI. {COME_AGAIN}"}
        body = json.dumps(told).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"retry-after", str(RETRY_AFTER_S).encode()),
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": 503, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def stated_length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name.lower() == b"content-length" and value.isdigit() and len(value) <= 15:
            return int(value)
    return 0
