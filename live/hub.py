"""All open pages of this web process: one subscription to the broker, one check of rights, a queue for each page.

Everything here runs on one event loop, so nothing needs a lock. The two tasks live as long as a page is open. No
connection to the database is held: the check of rights opens one for itself and closes it.
"""

import asyncio
import contextlib
import contextvars
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from typing import Any, Final
from weakref import WeakKeyDictionary

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connections
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from live import channel
from live.hints import Batch
from live.rights import Audiences, audiences_by_session
from live.stream import AGAIN, ALL, AWAY, GONE, HERE, STILL, Stream, hints_message

log = logging.getLogger(__name__)

STILL_S: Final = 15.0  # a page that hears nothing else hears this often that the stream lives
CHECK_S: Final = 15.0  # rights are looked at again
PING_S: Final = 5.0  # the broker is asked whether it is there; three times no answer means no
FIRST_WAIT_S: Final = 1.0  # a new page waits for the subscription, at most so long
RETRY_S: Final = (0.5, 1.0, 2.0, 5.0)
SLACK_S: Final = 0.5  # clocks of page and server are compared by durations only, and those this far
MOST_STREAMS: Final = 2000  # a process; whoever comes then asks by polling


class Hub:
    """The open pages of one event loop."""

    def __init__(self, url: str, channel_name: str) -> None:
        self.streams: set[Stream] = set()
        self._url = url
        self._channel = channel_name
        self._tasks: list[asyncio.Task[None]] = []
        self._here_since: float | None = None  # monotonic; None while the broker is not heard
        self._is_here = asyncio.Event()
        self._told_at: dict[str, float] = {}  # monotonic, by audience: the newest hint

    @property
    def is_full(self) -> bool:
        """Whether no more pages are taken."""
        return len(self.streams) >= MOST_STREAMS

    async def listen(self, session_key: str, audiences: Audiences, *, unsure_s: float) -> AsyncIterator[bytes]:
        """What one page is sent until it goes or may no longer listen.

        `unsure_s`: for how long the page has not known whether anything changed (since it was rendered, or since its
        last stream). If something may have, it is told ALL at once.
        """
        stream = Stream(session_key, audiences)
        began = time.monotonic()
        self.streams.add(stream)
        self._start()
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_here.wait(), FIRST_WAIT_S)
            first = HERE if self._is_here.is_set() else AWAY
            # Whatever waits already is younger than `began`, so it counts as missed.
            has_missed = self._may_have_missed(audiences, began - unsure_s - SLACK_S)
            stream.forget()
            yield first
            if has_missed:
                yield ALL
            while True:
                try:
                    message = await asyncio.wait_for(stream.next(), STILL_S)
                except TimeoutError:
                    message = STILL
                yield message
                if stream.is_over_after(message):
                    return
        finally:
            self.streams.discard(stream)
            if not self.streams:
                self._stop()

    def deliver(self, batch: Batch) -> None:
        """Put into each page's queue what its audiences may know of `batch`."""
        now = time.monotonic()
        self._told_at.update(dict.fromkeys(batch, now))
        messages: dict[Audiences, bytes | None] = {}
        for stream in self.streams:
            if stream.audiences not in messages:
                hints = frozenset[Any]().union(*(batch.get(audience, ()) for audience in stream.audiences))
                messages[stream.audiences] = hints_message(hints) if hints else None
            message = messages[stream.audiences]
            if message is not None:
                stream.tell(message)

    async def check_rights(self) -> None:
        """End each stream whose session may no longer hear what it was opened for. If that cannot be known: all."""
        asked = {stream.session_key for stream in self.streams}
        try:
            allowed = await sync_to_async(_apart)(lambda: audiences_by_session(asked))
        except Exception:
            log.exception("rights of live streams could not be checked; all of them end")
            allowed = None
        for stream in self.streams:
            if stream.session_key not in asked:
                continue  # it came meanwhile
            if allowed is None:
                stream.end(AGAIN)
            elif allowed[stream.session_key] != stream.audiences:
                stream.end(AGAIN if allowed[stream.session_key] else GONE)

    def _may_have_missed(self, audiences: Audiences, since: float) -> bool:
        if self._here_since is None or self._here_since > since:
            return True
        return any(self._told_at.get(audience, since) > since for audience in audiences)

    def _start(self) -> None:
        if self._tasks:
            return
        # In a context of their own: that of the request ends with it, and its thread too.
        context, loop = contextvars.Context(), asyncio.get_running_loop()
        work: tuple[Callable[[], Coroutine[Any, Any, None]], ...] = (self._follow_broker, self._watch_rights)
        self._tasks = [loop.create_task(one(), context=context) for one in work]

    def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = []
        self._lost()
        self._told_at.clear()

    async def _watch_rights(self) -> None:
        while True:
            await asyncio.sleep(CHECK_S)
            await self.check_rights()

    async def _follow_broker(self) -> None:
        failures = 0
        while True:
            try:
                async with contextlib.aclosing(self._messages()) as messages:
                    async for message in messages:
                        failures = 0
                        self._hear(message)
            except Exception as error:
                log.warning("live hints: the broker is not heard (%s: %s)", type(error).__name__, error)
            self._lost()
            await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S) - 1)])
            failures += 1

    async def _messages(self) -> AsyncGenerator[dict[str, Any]]:
        """What the broker says on our channel. Raises when it is not there, or not any more."""
        client = Redis.from_url(
            self._url, socket_connect_timeout=PING_S, socket_timeout=PING_S, retry=Retry(NoBackoff(), 0)
        )
        async with client, client.pubsub() as subscription:
            await subscription.subscribe(self._channel)
            heard_at = time.monotonic()
            while True:
                message = await subscription.get_message(timeout=PING_S)
                if message is not None:
                    heard_at = time.monotonic()
                    yield message
                elif time.monotonic() - heard_at > 3 * PING_S:
                    raise TimeoutError("it says nothing")
                else:
                    await subscription.ping()

    def _hear(self, message: dict[str, Any]) -> None:
        if message["type"] == "subscribe":  # also after a connection that was made anew in between
            self._here_since = time.monotonic()
            self._is_here.set()
            self._tell_all(HERE)
            self._tell_all(ALL)
        elif message["type"] == "message":
            try:
                self.deliver(channel.from_text(message["data"]))
            except ValueError as error:  # another release of ours may speak otherwise
                log.warning("live hints: not understood: %s", error)
                self._tell_all(ALL)

    def _lost(self) -> None:
        if self._here_since is not None:
            self._tell_all(AWAY)
        self._here_since = None
        self._is_here.clear()

    def _tell_all(self, message: bytes) -> None:
        for stream in self.streams:
            stream.tell(message)


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """The hub of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _hubs:
        _hubs[loop] = Hub(settings.REDIS_URL, channel.name())
    return _hubs[loop]


def let_go_of_the_database() -> None:
    """Close this thread's connections to the database, unless a transaction is open in them (in tests)."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()


def _apart[Found](ask: Callable[[], Found]) -> Found:
    try:
        return ask()
    finally:
        let_go_of_the_database()
