"""Heartbeats of the workers and of beat, as keys of the broker that end by themselves: no key, no process.

A worker's is written by a thread of its own, because a worker of one process does nothing else while it works. So the
thread's word alone says little of the loop that takes messages: the value says what the worker is busy with and since
when, or for how long it has begun nothing, which is a worker that is stuck when messages wait for it
(`fabricui/checks_of_health.py`). Beat's is written by its loop (`fabricui/beat.py`).
"""

import hashlib
import json
import logging
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from celery import signals
from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

log = logging.getLogger(__name__)

QUEUES: Final = ("rollout", "observe", "probe", "webhooks", "housekeeping")
BEAT: Final = "beat"
EVERY_S: Final = 4.0
LASTS_S: Final = 13  # a process that has not been heard for so long counts as gone
TELL_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Beat:
    """What a process that lives says of itself, in seconds: how long each task that it is on has taken, or it none."""

    busy: Mapping[str, float] = field(default_factory=dict)
    idle_s: float = 0.0


def key(name: str) -> str:
    """The key of one process: two installations may share a broker."""
    of = hashlib.sha256(f"heartbeats of {settings.SECRET_KEY}".encode()).hexdigest()[:24]
    return f"fabricui:alive:{of}:{name}"


def tell(names: Iterable[str], busy: Mapping[str, float], idle_s: float = 0.0) -> None:
    """Say that the process behind each of `names` lives. Raises nothing: a broker that is away hears nothing."""
    try:
        with client().pipeline(transaction=False) as pipe:
            for name in names:
                pipe.set(key(name), json.dumps({"busy": dict(busy), "idle_s": idle_s}), ex=LASTS_S)
            pipe.execute()
    except (RedisError, OSError) as error:
        log.warning("the broker took no heartbeat (%s)", error)


def heard(names: Iterable[str]) -> dict[str, Beat]:
    """What was heard lately of the processes `names`; who is not in it is gone. One round trip. Raises RedisError."""
    asked = list(names)
    found: Any = client().mget([key(name) for name in asked])
    return {name: _read(text) for name, text in zip(asked, found, strict=True) if text is not None}


def _read(text: bytes | str) -> Beat:
    said = json.loads(text)
    # A process of the version before says the tasks alone.
    return Beat(said["busy"], said["idle_s"]) if "busy" in said else Beat(said)


def depths(queues: Iterable[str] = QUEUES) -> dict[str, int]:
    """How many messages wait in each queue. One round trip. Raises RedisError."""
    asked = list(queues)
    with client().pipeline(transaction=False) as pipe:
        for queue in asked:
            pipe.llen(queue)
        lengths: list[Any] = pipe.execute()
    return dict(zip(asked, lengths, strict=True))


def client() -> Redis:
    """The broker, with short patience. Raises RedisError (ConnectionError) when none is configured."""
    if not settings.REDIS_URL:
        raise RedisError("REDIS_URL names no broker")
    return _client(settings.REDIS_URL)


@cache
def _client(url: str) -> Redis:
    # No silent tries again: by default they take up to a minute.
    return Redis.from_url(url, socket_timeout=TELL_S, socket_connect_timeout=TELL_S, retry=Retry(NoBackoff(), 1))


# --- inside a worker -------------------------------------------------------------------------------------------------
_on: dict[str, tuple[str, float]] = {}  # task id → name and since when (monotonic)
_news = threading.Event()
_last = time.monotonic()  # when this process began or ended a task, or began itself


@signals.task_prerun.connect(weak=False)
def _begins(task_id: str, task: Any, **_: object) -> None:
    global _last
    before, _last = _last, time.monotonic()
    _on[task_id] = (task.name, _last)
    if (
        _last - before > EVERY_S
    ):  # or its last word, that it has nothing to do, would stand beside what waits behind this
        _news.set()


@signals.task_postrun.connect(weak=False)
def _ends(task_id: str, **_: object) -> None:
    global _last
    _on.pop(task_id, None)
    _last = time.monotonic()


@signals.worker_ready.connect(weak=False)
def _start(sender: Any, **_: object) -> None:
    queues = [str(name) for name in sender.app.amqp.queues.consume_from]
    if settings.REDIS_URL:
        threading.Thread(target=_tell_for_ever, args=(queues,), name="heartbeat", daemon=True).start()


def _tell_for_ever(queues: list[str]) -> None:
    while True:
        found = now_on()
        tell(queues, found.busy, found.idle_s)
        _news.wait(EVERY_S)
        _news.clear()


def now_on() -> Beat:
    """What this worker is on now, or for how long it has been on nothing."""
    now = time.monotonic()
    busy: dict[str, float] = {}
    for name, since in list(_on.values()):
        busy[name] = max(busy.get(name, 0.0), round(now - since, 1))
    return Beat(busy, 0.0 if busy else round(now - _last, 1))
