"""Keep a flood of refusals out of the trail: one event per source, action and minute."""

import logging
from hashlib import sha256
from typing import Final

from django.core.cache import cache

from audit.actions import Action

log = logging.getLogger(__name__)

WINDOW_S: Final = 60


def first_in_a_minute(*, action: Action, source: str) -> bool:
    """Tell whether `source` (an address) has not done this in the last minute, and remember it.

    Call it before `record()` of anything a stranger can cause at will. Without a working cache it says yes: an
    event too many is better than one that is missing.
    """
    return first_within(window_s=WINDOW_S, action=action, source=source)


def first_within(*, window_s: int, action: Action, source: str) -> bool:
    """As `first_in_a_minute`, for another span of time."""
    key = sha256(source.encode()).hexdigest()  # a cache takes no blanks and no long keys
    try:
        return cache.add(f"audit:once:{action.value}:{key}", 1, timeout=window_s)
    except Exception:
        log.exception("the cache does not answer; recording every refusal")
        return True
