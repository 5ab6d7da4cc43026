"""Many open pages as one program sees them: streams of server-sent events over sockets, with the time of each message.

It speaks HTTP by itself: a client library would cost more than the server that is measured.
"""

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Listener:
    """One stream: what it was told, with the monotonic second at which it came."""

    number: int
    heard: list[tuple[float, str, Any]] = field(default_factory=list)

    def first_after(self, at: float, kind: str, public_id: str) -> float | None:
        """Seconds from `at` to the first hint of this kind and id; ALL counts, as a page acts on it alike."""
        for came, event, said in reversed(self.heard):
            if came < at:
                break
            if event == "all" or {"kind": kind, "id": public_id} in said:
                return float(came - at)
        return None


class Listeners:
    """`count` streams at one address, each with the cookie of a session."""

    def __init__(self, port: int, cookies: list[str], count: int) -> None:
        self.listeners = [Listener(number) for number in range(count)]
        self._port = port
        self._cookies = cookies
        self._tasks: list[asyncio.Task[None]] = []
        self._open = 0
        self.ended = 0
        self.answered = ""  # the first line of the last answer

    async def __aenter__(self) -> "Listeners":
        self._tasks = [asyncio.create_task(self._listen(one)) for one in self.listeners]
        await until(lambda: self._open == len(self.listeners) or bool(self.ended), 60)
        if self.ended:
            raise ConnectionError(f"a stream ended while the others were opened; it was answered {self.answered!r}")
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self, listener: Listener) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        cookie = self._cookies[listener.number % len(self._cookies)]
        lines = ("GET /live/?unsure=0 HTTP/1.1", "Host: 127.0.0.1", "Accept: text/event-stream", f"Cookie: {cookie}")
        writer.write("".join(f"{line}\r\n" for line in (*lines, "")).encode())
        event = ""
        is_here = False
        try:
            self.answered = (await reader.readline()).decode().strip()
            while line := await reader.readline():
                text = line.decode().strip()
                if text.startswith("event:"):
                    event = text.removeprefix("event:").strip()
                elif text.startswith("data:"):
                    listener.heard.append((time.monotonic(), event, json.loads(text.removeprefix("data:"))))
                    if event == "here" and not is_here:
                        is_here = True
                        self._open += 1
        finally:
            self.ended += 1
            writer.close()
            with contextlib.suppress(Exception):
                await writer.wait_closed()


async def until(holds: Any, seconds: float) -> bool:
    """Wait until `holds()`, at most `seconds`; return whether it does."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.005)
    return True
