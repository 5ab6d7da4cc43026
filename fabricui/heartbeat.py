"""Heartbeats of the workers and of beat, as keys of the broker that end by themselves: no key, no process.

A worker's is written by a thread of its own, because a worker of one process does nothing else while it works; what it
is busy with, and since when, stands in the value. Beat's is written by its loop (`fabricui/beat.py`).
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
    """What a process that lives says of itself: how long each task that it is on has taken, in seconds."""

    busy: Mapping[str, float] = field(default_factory=dict)


def key(name: str) -> str:
    """The key of one process: two installations may share a broker."""
    of = hashlib.sha256(f"heartbeats of {settings.SECRET_KEY}".encode()).hexdigest()[:24]
    return f"fabricui:alive:{of}:{name}"


def tell(names: Iterable[str], busy: Mapping[str, float]) -> None:
    """Say that the process behind each of `names` lives. Raises nothing: a broker that is away hears nothing."""
    try:
        with client().pipeline(transaction=False) as pipe:
            for name in names:
                pipe.set(key(name), json.dumps(dict(busy)), ex=LASTS_S)
            pipe.execute()
    except (RedisError, OSError) as error:
        log.warning("the broker took no heartbeat (%s)", error)


def heard(names: Iterable[str]) -> dict[str, Beat]:
    """What was heard lately of the processes `names`; who is not in it is gone. One round trip. Raises RedisError."""
    asked = list(names)
    found: Any = client().mget([key(name) for name in asked])
    return {name: Beat(json.loads(text)) for name, text in zip(asked, found, strict=True) if text is not None}


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


@signals.task_prerun.connect(weak=False)
def _begins(task_id: str, task: Any, **_: object) -> None:
    _on[task_id] = (task.name, time.monotonic())


@signals.task_postrun.connect(weak=False)
def _ends(task_id: str, **_: object) -> None:
    _on.pop(task_id, None)


@signals.worker_ready.connect(weak=False)
def _start(sender: Any, **_: object) -> None:
    queues = [str(name) for name in sender.app.amqp.queues.consume_from]
    if settings.REDIS_URL:
        threading.Thread(target=_tell_for_ever, args=(queues,), name="heartbeat", daemon=True).start()


def _tell_for_ever(queues: list[str]) -> None:
    while True:
        now = time.monotonic()
        busy: dict[str, float] = {}
        for name, since in list(_on.values()):
            busy[name] = max(busy.get(name, 0.0), round(now - since, 1))
        tell(queues, busy)
        time.sleep(EVERY_S)
