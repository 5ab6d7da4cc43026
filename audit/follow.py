"""Hand committed events to followers in higher rooms: in order, one at a time, at least once.

A follower is a function that a higher room registers when it starts (`AppConfig.ready`). How far it has come is a
row, so nothing is lost when a worker dies.
"""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Final

from django.db import connection, transaction
from django.utils import timezone

from audit.actions import Action
from audit.models import ChainHead, Event, FollowerCursor

log = logging.getLogger(__name__)

AT_ONCE: Final = 500  # events one follower is given in a tick, so that none makes the others wait for long
SLOWEST_RETRY_S: Final = 300

type Follow = Callable[[Event], None]


@dataclass(frozen=True)
class Follower:
    """Who wants to be handed which events."""

    name: str
    actions: frozenset[Action]
    function: Follow


_followers: dict[str, Follower] = {}


def register(name: str, actions: Collection[Action], function: Follow) -> None:
    """Hand `function` every event of `actions` from the first one on. Registering the same again changes nothing.

    `function` is called inside a transaction together with the move of its cursor: what it writes to our database
    happens exactly once, anything else (a message, a task) at least once. It should be quick: on SQLite it holds
    the only write lock; for slow work it queues a task on commit. If it raises, what it wrote is rolled back, the
    failure is stored, and the same event is tried again later; followers beside it go on.
    """
    follower = Follower(name, frozenset(actions), function)
    known = _followers.setdefault(name, follower)
    if known != follower:
        raise ValueError(f"A follower called {name} is registered already, for something else.")


class Step(Enum):
    """How one look for the next event ended."""

    MOVED = "moved"
    CAUGHT_UP = "caught up"
    NOT_NOW = "not now"  # another worker has this follower, or it failed and waits


def tick() -> int:
    """Give every follower what it has not seen; return how many events were handed over.

    Safe to run at any time, any number of times, in several workers at once.
    """
    handed = 0
    for follower in list(_followers.values()):
        try:
            handed += _advance(follower)
        except Exception:  # a broken follower must not stop the ones after it
            log.exception("follower %s could not be advanced", follower.name)
    return handed


def _advance(follower: Follower) -> int:
    cursor, _ = FollowerCursor.objects.get_or_create(name=follower.name)
    if cursor.next_try_at is not None and timezone.now() < cursor.next_try_at:
        return 0
    # A plain read first: on SQLite every transaction takes the write lock, and most ticks have nothing to do.
    if not Event.objects.filter(number__gt=cursor.number).exists():
        return 0
    for handed in range(AT_ONCE):
        if _hand_over_next(follower) is not Step.MOVED:
            return handed
    return AT_ONCE


def _hand_over_next(follower: Follower) -> Step:
    event: Event | None = None
    try:
        with transaction.atomic():
            cursor = _lock(follower)
            if cursor is None or (cursor.next_try_at is not None and timezone.now() < cursor.next_try_at):
                return Step.NOT_NOW
            # Numbers are given out under a lock held until the commit: no lower one can appear later.
            newest = ChainHead.objects.values_list("number", flat=True).first() or 0
            unseen = Event.objects.filter(number__gt=cursor.number, number__lte=newest)
            event = unseen.filter(action__in=[action.value for action in follower.actions]).order_by("number").first()
            if event is not None:
                follower.function(event)
            elif cursor.number >= newest:
                return Step.CAUGHT_UP
            cursor.number = newest if event is None else event.number
            cursor.moved_at = timezone.now()
            cursor.failure, cursor.tries, cursor.next_try_at = "", 0, None
            cursor.save()
    except Exception as error:
        if event is None:
            raise
        log.exception("follower %s failed at %s", follower.name, event)
        _store_failure(follower, event, error)
        return Step.NOT_NOW
    return Step.CAUGHT_UP if event is None else Step.MOVED


def _lock(follower: Follower) -> FollowerCursor | None:
    """Give the follower's cursor, ours until the commit; None if another worker has it."""
    skip_locked = connection.features.has_select_for_update_skip_locked
    return FollowerCursor.objects.select_for_update(skip_locked=skip_locked).filter(name=follower.name).first()


def _store_failure(follower: Follower, event: Event, error: Exception) -> None:
    with transaction.atomic():
        cursor = FollowerCursor.objects.select_for_update().get(name=follower.name)
        if cursor.number >= event.number:  # another worker got past it meanwhile
            return
        cursor.tries += 1
        wait_s = min(2**cursor.tries, SLOWEST_RETRY_S)
        cursor.next_try_at = timezone.now() + timedelta(seconds=wait_s)
        cursor.failure = f"Event {event.number} ({event.action}) could not be followed: {type(error).__name__}: {error}"
        cursor.save()
