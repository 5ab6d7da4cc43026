"""One open page: what it may hear, and what waits to be sent to it. The words of the wire stand here.

Server-sent events (HTML standard, 9.2): lines `event:` and `data:`, ended by an empty line.
"""

import asyncio
import json
from collections.abc import Iterable
from typing import Final

from live.hints import Hint
from live.rights import Audiences

MOST_WAITING: Final = 32  # messages of a page that reads slowly; then it is told “anything may have changed”


def _message(event: str, said: object) -> bytes:
    return f"event: {event}\ndata: {json.dumps(said, separators=(',', ':'))}\n\n".encode()


# An event without data never reaches the page's script, so each says something.
HERE: Final = _message("here", {})  # from now on every hint comes
AWAY: Final = _message("away", {})  # the broker is lost: no hint comes, ask by yourself
ALL: Final = _message("all", {})  # anything may have changed
GONE: Final = _message("gone", {})  # you may no longer listen; do not come again
AGAIN: Final = _message("again", {})  # what you may hear has changed; come again
STILL: Final = b": still here\n" + _message("still", {})  # every 15 s, so that neither side takes silence for life


def hints_message(hints: Iterable[Hint]) -> bytes:
    """`hints` as they go to a page."""
    return _message("hints", [{"kind": hint.kind.value, "id": hint.public_id} for hint in sorted(hints)])


class Stream:
    """What waits for one open page. Never grows beyond MOST_WAITING."""

    def __init__(self, session_key: str, audiences: Audiences) -> None:
        self.session_key = session_key
        self.audiences = audiences
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue(MOST_WAITING)
        self._last: bytes | None = None

    def tell(self, message: bytes) -> None:
        """Send `message` soon; a page that is too far behind gets ALL in place of everything it has missed.

        But for the newest word on whether hints come: without it the page would trust a silence.
        """
        if self._last is not None:
            return
        if self._waiting.full():
            missed = [*self._emptied(), message]
            for word in [word for word in missed if word in (HERE, AWAY)][-1:]:
                self._waiting.put_nowait(word)
            message = ALL
        self._waiting.put_nowait(message)

    def end(self, message: bytes) -> None:
        """Send `message` and nothing after it."""
        self._last = message
        self._emptied()
        self._waiting.put_nowait(message)

    def forget(self) -> None:
        """Drop what waits: the page is about to be told as much."""
        self._emptied()

    async def next(self) -> bytes:
        """What is to be sent next; waits for it."""
        return await self._waiting.get()

    def is_over_after(self, message: bytes) -> bool:
        """Whether `message` was the last."""
        return message is self._last

    def _emptied(self) -> list[bytes]:
        return [self._waiting.get_nowait() for _ in range(self._waiting.qsize())]
