"""Keep a flood of refusals out of the trail: one event per source, action and minute."""

import logging
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
    try:
        return cache.add(f"audit:once:{action.value}:{source}", 1, timeout=WINDOW_S)
    except Exception:
        log.exception("the cache does not answer; recording every refusal")
        return True
