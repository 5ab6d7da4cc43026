"""Wake a worker after a commit without ever making the request wait or fail: the tick catches up what is lost.

One background thread per process does the talking, so a broker that is dead, or that swallows packets, costs the
request nothing. Nudges for the same work melt into one, and the same one is sent at most five times a second: a boot
storm commits many times a second. The thread keeps its connection to the broker: to open one for each nudge was a
fifth of what a storm cost the registration door.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Mapping
from typing import Final

from celery import current_app
from kombu import Connection

from audit.request_id import current_request_id

log = logging.getLogger(__name__)

FOLLOW: Final = "audit.tasks.follow"
CONNECT_S: Final = 1.0  # how long the thread waits for a broker before it gives the nudge up
AGAIN_S: Final = 0.2  # between two nudges for the same work
ASKED_BY: Final = "fabricui_request"  # the message's header with the id of the request that it finishes
MOST_WAITING: Final = 1000  # while the broker is away; beyond, nudges are dropped

type Nudge = tuple[str, tuple[tuple[str, object], ...], int | None]

_waiting: dict[Nudge, str] = {}  # in the order in which they came, each with the request that asked first
_sent_at: dict[Nudge, float] = {}  # monotonic; of those sent less than AGAIN_S ago
_changed = threading.Condition()
_thread: threading.Thread | None = None
_of_this_thread = threading.local()  # `line`: the connection to the broker; one that stands across a fork is nobody's


def followers() -> None:
    """Wake the followers of the trail."""
    task(FOLLOW, {})


def task(name: str, kwargs: Mapping[str, object], *, within_s: int | None = None) -> None:
    """Have the task `name` sent to its queue soon, or not at all. Returns at once, raises nothing.

    Only for work that a tick would find by itself a few seconds later. Call it on commit. A worker that comes to it
    more than `within_s` later leaves it: for work that takes long, so that nudges do not pile up behind it.
    """
    global _thread
    try:
        with _changed:
            nudge = (name, tuple(sorted(kwargs.items())), within_s)
            is_alive = _thread is not None and _thread.is_alive()
            if nudge in _waiting and is_alive:
                return  # to wake the thread for nothing costs the request more than all the rest of this
            if len(_waiting) < MOST_WAITING:
                # What many share belongs to none of them.
                _waiting[nudge] = current_request_id() if kwargs else ""
            if not is_alive:  # also after a fork, which takes no threads along
                _thread = threading.Thread(target=_send_for_ever, name="nudge", daemon=True)
                _thread.start()
            _changed.notify()
    except Exception:
        log.exception("could not queue a nudge of %s; the tick will find its work", name)


def _send_for_ever() -> None:
    while True:
        with _changed:
            while (nudge := _next_due(time.monotonic())) is None:
                _changed.wait(AGAIN_S / 4 if _waiting else None)
            _of_this_thread.asked_by = _waiting.pop(nudge)
            _sent_at[nudge] = time.monotonic()
        _send(nudge)


def _next_due(now: float) -> Nudge | None:
    """The first of the waiting nudges that was not sent just now."""
    for nudge in [nudge for nudge, at in _sent_at.items() if now - at >= AGAIN_S]:
        del _sent_at[nudge]
    return next((nudge for nudge in _waiting if nudge not in _sent_at), None)


def _send(nudge: Nudge) -> None:
    name = nudge[0]
    try:
        try:
            was_open = _line() is not None
            _say(nudge)
        except Exception:
            _hang_up()
            if not was_open:
                raise
            _say(nudge)  # the broker may have been started anew since the line was last used
    except Exception as error:
        _hang_up()
        log.warning("the broker did not take a nudge of %s (%s); the tick will find its work", name, error)


def _say(nudge: Nudge) -> None:
    name, kwargs, within_s = nudge
    connection = _line()
    if connection is None:
        options = {"socket_connect_timeout": CONNECT_S, "socket_timeout": CONNECT_S}
        connection = current_app.connection_for_write(connect_timeout=CONNECT_S, transport_options=options)
        _of_this_thread.line = connection
    asked_by = getattr(_of_this_thread, "asked_by", "")
    current_app.send_task(
        name,
        kwargs=dict(kwargs),
        connection=connection,
        retry=False,
        ignore_result=True,
        expires=within_s,
        headers={ASKED_BY: asked_by} if asked_by else None,
    )


def _line() -> Connection | None:
    """The open connection to the broker, if this thread has one; a fork has none."""
    return getattr(_of_this_thread, "line", None)


def _hang_up() -> None:
    connection, _of_this_thread.line = _line(), None
    if connection is not None:
        with contextlib.suppress(Exception):
            connection.release()
