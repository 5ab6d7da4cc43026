"""The one channel of the broker over which workers tell web processes of hints.

Pub/sub keeps nothing: who does not listen misses it, and pages ask again by themselves for that reason.
"""

import hashlib
import json
import logging
from functools import cache
from typing import Any

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from live.hints import Batch, Hint, Kind

log = logging.getLogger(__name__)

TELL_S = 1.0  # how long a worker waits for the broker; pages ask again anyway


def name() -> str:
    """The channel of this installation. Channels know no databases, so two of them may share a broker."""
    return "fabricui:live:" + hashlib.sha256(f"live hints of {settings.SECRET_KEY}".encode()).hexdigest()[:24]


def publish(batch: Batch) -> None:
    """Tell every web process of `batch`, or nobody when the broker is away. Raises nothing."""
    if not batch or not settings.REDIS_URL:
        return
    try:
        _client(settings.REDIS_URL).publish(name(), to_text(batch))
    except (RedisError, OSError) as error:
        log.warning("the broker took no live hint (%s); pages ask again by themselves", error)


def to_text(batch: Batch) -> str:
    """`batch` as it goes over the channel."""
    return json.dumps(
        {audience: [[hint.kind.value, hint.public_id] for hint in sorted(hints)] for audience, hints in batch.items()}
    )


def from_text(text: str | bytes) -> Batch:
    """What `to_text` wrote. Raises ValueError for anything else."""
    said: Any = json.loads(text)
    try:
        return {
            str(audience): frozenset(Hint(Kind(kind), str(public_id)) for kind, public_id in hints)
            for audience, hints in said.items()
        }
    except (AttributeError, TypeError) as error:
        raise ValueError(f"not a batch of hints: {error}") from error


@cache
def _client(url: str) -> Redis:
    # No silent tries again: by default they take up to a minute.
    return Redis.from_url(
        url, socket_timeout=TELL_S, socket_connect_timeout=TELL_S, retry=Retry(NoBackoff(), 1), health_check_interval=30
    )
