"""Hand committed events to followers in higher rooms: in order, one at a time, at least once.

A follower is a function that a higher room registers when it starts (`AppConfig.ready`). How far it has come is a
row, so nothing is lost when a worker dies. Most are handed one event at a time; one that only wants to tell others
that something happened takes many at once (`register_many`), so that a boot storm costs it one transaction, not a
thousand.
"""

import logging
from collections.abc import Callable, Collection, Sequence
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
type FollowMany = Callable[[Sequence[Event]], None]


@dataclass(frozen=True)
class Follower:
    """Who wants to be handed which events: one at a time, or `many` of those that wait."""

    name: str
    actions: frozenset[Action]
    function: Follow | None
    many: FollowMany | None = None
    from_now: bool = False  # the events before its first tick are no news to it

    def hand(self, events: Sequence[Event]) -> None:
        """Call its function with what it is handed in one transaction."""
        if self.many is not None:
            self.many(events)
        if self.function is not None:
            for event in events:
                self.function(event)


_followers: dict[str, Follower] = {}


def register(name: str, actions: Collection[Action], function: Follow) -> None:
    """Hand `function` every event of `actions` from the first one on. Registering the same again changes nothing.

    `function` is called inside a transaction together with the move of its cursor: what it writes to our database
    happens exactly once, anything else (a message, a task) at least once. It should be quick: on SQLite it holds
    the only write lock; for slow work it queues a task on commit. If it raises, what it wrote is rolled back, the
    failure is stored, and the same event is tried again later; followers beside it go on.
    """
    _register(Follower(name, frozenset(actions), function))


def register_many(name: str, actions: Collection[Action], many: FollowMany) -> None:
    """Hand `many` the events of `actions` from now on, as many at once as wait (AT_ONCE at most); else as `register`.

    For followers to whom old events mean nothing: on a site that has a long trail already, the first tick begins at
    its end.
    """
    _register(Follower(name, frozenset(actions), None, many, from_now=True))


def _register(follower: Follower) -> None:
    known = _followers.setdefault(follower.name, follower)
    if known != follower:
        raise ValueError(f"A follower called {follower.name} is registered already, for something else.")


def names() -> frozenset[str]:
    """The followers that are registered in this process."""
    return frozenset(_followers)


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
    cursor, _ = FollowerCursor.objects.get_or_create(name=follower.name, defaults={"number": _begins_after(follower)})
    if cursor.next_try_at is not None and timezone.now() < cursor.next_try_at:
        return 0
    # A plain read first: on SQLite every transaction takes the write lock, and most ticks have nothing to do.
    if not Event.objects.filter(number__gt=cursor.number).exists():
        return 0
    handed = 0
    while handed < AT_ONCE:
        step, count = _hand_over_next(follower, 1 if follower.many is None else AT_ONCE - handed)
        handed += count
        if step is not Step.MOVED:
            break
    return handed


def _begins_after(follower: Follower) -> int:
    return _newest() if follower.from_now else 0


def _newest() -> int:
    return ChainHead.objects.values_list("number", flat=True).first() or 0


def _hand_over_next(follower: Follower, most: int) -> tuple[Step, int]:
    """Hand over the next events, `most` at most; return how it ended and how many they were."""
    events: list[Event] = []
    try:
        with transaction.atomic():
            cursor = _lock(follower)
            if cursor is None or (cursor.next_try_at is not None and timezone.now() < cursor.next_try_at):
                return Step.NOT_NOW, 0
            # Numbers are given out under a lock held until the commit: no lower one can appear later.
            newest = _newest()
            unseen = Event.objects.filter(number__gt=cursor.number, number__lte=newest)
            wanted = unseen.filter(action__in=[action.value for action in follower.actions])
            events = list(wanted.order_by("number")[:most])
            if events:
                follower.hand(events)
            elif cursor.number >= newest:
                return Step.CAUGHT_UP, 0
            cursor.number = events[-1].number if events else newest
            cursor.moved_at = timezone.now()
            cursor.failure, cursor.tries, cursor.next_try_at = "", 0, None
            cursor.save()
    except Exception as error:
        if not events:
            raise
        log.exception("follower %s failed at %s", follower.name, events[0])
        _store_failure(follower, events[0], error)
        return Step.NOT_NOW, 0
    return (Step.MOVED, len(events)) if events else (Step.CAUGHT_UP, 0)


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
