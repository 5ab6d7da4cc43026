"""Can anything be recorded now? What is known of an outage of the trail, so that every page and worker can say so."""

import logging
from typing import Final

from django.core.cache import cache
from django.db import DatabaseError, transaction

from audit.errors import TrailUnavailable

log = logging.getLogger(__name__)

_NOTE: Final = "audit:outage"
BELIEVED_S: Final = 150  # longer than the time between two trials of the housekeeping worker


class _TakenBack(Exception):
    pass


def refusal() -> str:
    """Why nothing can be recorded now, in sentences; "" when it can. Tries it for real and takes it back.

    Holds the head of the chain for a moment: for workers and ticks, not for every page.
    """
    from audit.actions import Action
    from audit.record import record
    from audit.values import SYSTEM, Subject

    try:
        with transaction.atomic():
            record(action=Action.CLOCK_STEP, actor=SYSTEM, subject=Subject(kind="trial", key="", label="a trial"))
            raise _TakenBack
    except _TakenBack:
        over()
        return ""
    except TrailUnavailable as error:
        return str(error)
    except DatabaseError as error:
        return f"The database cannot be written: {error}".strip()


def note(sentence: str) -> None:
    """Let every process know that the trail is out of order."""
    log.error("%s", sentence)
    try:
        cache.set(_NOTE, sentence, timeout=BELIEVED_S)
    except Exception:
        log.exception("the cache does not answer; other processes are not told")


def over() -> None:
    """Let every process know that the trail takes events again."""
    try:
        cache.delete(_NOTE)
    except Exception:
        log.exception("the cache does not answer")


def known() -> str:
    """The sentence of an outage that is going on as far as anybody has noticed; "" otherwise."""
    try:
        return str(cache.get(_NOTE) or "")
    except Exception:
        return ""
