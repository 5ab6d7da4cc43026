"""One page of the trail for a reviewer: any filter, newest first, found by index however long the trail is.

A page begins where its cursor says (keyset), so that the last page costs what the first does. What no index helps
with (free text) looks through SEARCHED events a page and says how far it came.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from heapq import nlargest, nsmallest
from operator import attrgetter
from typing import Any, Final

from django.db import connection

from audit.canonical import utc_text
from audit.models import Event
from audit.querysets import EventQuerySet

PAGE: Final = 50
SEARCHED: Final = 4_000  # events a page looks through for what no index finds
MOST_WAYS: Final = 200  # an index is asked at most so often for one page
BATCH: Final = 500  # numbers in one statement
TEXTS: Final = ("subject_label", "subject_key", "actor_name", "actor_key", "reason", "request_id")
THIN: Final = ("number", "at", "action", "tenant_key", "subject_kind", "rollout_key", *TEXTS)  # the texts at the end

type Way = dict[str, str]  # columns that an index orders by number, and the values they must have
type Thin = tuple[Any, ...]  # an event as a search sees it: the values of THIN
type Wanted = Callable[[Thin], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked for; an empty filter matches all.

    `actor` is a key, or a part of the name of that moment; `action` one action, or a prefix that ends in ":";
    `subject` is "kind:key", "kind:", a key or a whole label; `subjects` are more than one "kind:key"; `rollout` and
    `tenant` are public ids, and `subjects` beside `rollout` are where it is told by events of before there were links;
    `since` is the first moment that counts and `until` the first that does not; `text` is looked for in
    labels, names, keys and the reason, regardless of case.
    """

    actor: str = ""
    action: str = ""
    subject: str = ""
    subjects: tuple[str, ...] = ()
    rollout: str = ""
    tenant: str = ""
    request: str = ""
    since: datetime | None = None
    until: datetime | None = None
    text: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether every event is asked for."""
        return self == Asked()

    def told(self) -> dict[str, Any]:
        """The filters that are set, as an event can hold them."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: utc_text(value) if isinstance(value, datetime) else value for name, value in values.items() if value
        }


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """Events, newest first; `older` and `newer` are cursors, empty at an end; `searched_to` tells of free text.

    `searched_to` is the moment down to which was looked when the page ends there and not at its size.
    """

    events: tuple[Event, ...]
    older: str
    newer: str
    searched_to: datetime | None


class BadCursor(ValueError):
    """A text that is no cursor of a page."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in the trail: everything before it is older."""

    number: int
    at: datetime | None  # only where the page goes by time

    @classmethod
    def parse(cls, text: str, *, by_time: bool) -> "_Place":
        number, _, at = text.partition("~")
        try:
            place = cls(int(number), datetime.fromisoformat(at) if at else None)
        except ValueError as error:
            raise BadCursor(f"“{text[:40]}” is no place in the trail. Begin at its newest page.") from error
        if by_time is not (place.at is not None) or not 0 <= place.number < 2**62:
            raise BadCursor(f"“{text[:40]}” is a place of another list. Begin at its newest page.")
        if place.at is not None and place.at.tzinfo is None:
            raise BadCursor(f"“{text[:40]}” names a moment without its time zone. Begin at its newest page.")
        return place

    def moved(self, by: int) -> str:
        """The cursor of the place next to this one, so that what stands here is on the page that it leads to."""
        number = max(0, self.number + by)
        return f"{number}~{self.at.isoformat()}" if self.at is not None else str(number)

    @classmethod
    def of(cls, number: int, at: datetime, *, by_time: bool) -> str:
        return f"{number}~{at.isoformat()}" if by_time else str(number)


def page(asked: Asked, *, before: str = "", after: str = "", size: int = PAGE) -> ReviewPage:
    """The newest events that match, or those just older than `before`, or just newer than `after` (cursors).

    Raises BadCursor.
    """
    search = _Search.of(asked)
    upward = bool(after) and not before
    cursor = before or after
    place = _Place.parse(cursor, by_time=search.by_time) if cursor else None
    found, stopped = search.take(place, upward=upward, most=size + 1)
    more = len(found) > size
    found = found[:size]
    if upward:
        found.reverse()
    older = newer = ""
    if found:
        ends = [_Place.of(one.number, one.at, by_time=search.by_time) for one in (found[0], found[-1])]
        older = ends[1] if more or upward else ""
        newer = ends[0] if (more if upward else cursor) else ""
    elif place is not None:
        older, newer = (place.moved(1), "") if upward else ("", place.moved(-1))
    if stopped is None or more:
        return ReviewPage(tuple(found), older, newer, None)
    number, at, *_ = stopped
    on = _Place.of(number, at, by_time=search.by_time)
    return ReviewPage(tuple(found), older if upward else on, on if upward else newer, at)


def oldest_first(asked: Asked, *, until_number: int, step: int = 2_000) -> Iterator[list[Event]]:
    """All events up to a number that match, in order of their numbers, in pieces; some pieces may be empty."""
    search = _Search.of(asked)
    rows = search.all_of_it().order_by("number")
    # By ranges of numbers: what is left of the trail is never sorted again for the next piece.
    for start in range(0, until_number, step):
        piece = rows.filter(number__gt=start, number__lte=min(start + step, until_number))
        yield [event for event in piece if search.is_wanted(event)]


@dataclass(frozen=True, slots=True)
class _Search:
    """How the trail is gone through: `ways` are asked one by one (None: everything), `wanted` sorts out the rest."""

    ways: list[Way] | None
    rest: EventQuerySet
    by_time: bool
    wanted: Wanted | None

    @classmethod
    def of(cls, asked: Asked) -> "_Search":
        by = (_by_request, _by_subject, _by_subjects, _by_actor, _by_tenant, _by_action)
        found = [ways for ways in (one(asked) for one in by) if ways is not None]
        drives = min(found, key=len) if found and min(map(len, found)) <= MOST_WAYS else None
        rest, wanted = Event.objects.all(), []
        for ways in found:
            if ways is not drives:
                wanted.append(_one_of(ways))
        if asked.since:
            rest = rest.filter(at__gte=asked.since)
        if asked.until:
            rest = rest.filter(at__lt=asked.until)
        if asked.text:
            wanted.append(_says(asked.text))
        is_timed = asked.since is not None or asked.until is not None
        every = (lambda thin: all(one(thin) for one in wanted)) if wanted else None
        return cls(drives, rest, by_time=is_timed and drives is None, wanted=every)

    def is_wanted(self, event: Event) -> bool:
        return self.wanted is None or self.wanted(_thin(event))

    def all_of_it(self) -> EventQuerySet:
        """The events before `wanted` sorts them, in no order."""
        if self.ways is None:
            return self.rest
        if not self.ways:
            return self.rest.none()
        return self.rest.matching_any(self.ways)

    def take(self, place: _Place | None, *, upward: bool, most: int) -> tuple[list[Event], Thin | None]:
        """The next `most` events from `place` on; and the last that was looked at, when the look stopped early."""
        if self.wanted is None:
            return self._next(place, upward=upward, most=most), None
        numbers: list[int] = []
        looked, last = 0, None
        for last in self._thinly(place, upward=upward):
            looked += 1
            if self.wanted(last):
                numbers.append(last[0])
                if len(numbers) == most:
                    return _by_number(numbers), None
        return _by_number(numbers), last if looked == SEARCHED else None

    def _next(self, place: _Place | None, *, upward: bool, most: int) -> list[Event]:
        rows = self._rows(place, upward=upward)
        if self.ways is not None and len(self.ways) != 1:
            return _by_number(self._numbers(rows, upward=upward, most=most))
        return list(rows.filter(**self.ways[0])[:most] if self.ways else rows[:most])

    def _thinly(self, place: _Place | None, *, upward: bool) -> Iterable[Thin]:
        """The next events to look at, without what nobody sorts by, which is most of an event; read as they are taken.

        As models they would cost five times as much.
        """
        rows = self._rows(place, upward=upward)
        if self.ways is not None and len(self.ways) != 1:
            return map(_thin, _by_number(self._numbers(rows, upward=upward, most=SEARCHED)))
        chosen = rows.filter(**self.ways[0]) if self.ways else rows
        return chosen.values_list(*THIN)[:SEARCHED].iterator(chunk_size=BATCH)

    def _rows(self, place: _Place | None, *, upward: bool) -> EventQuerySet:
        sign = "" if upward else "-"
        order = (f"{sign}at", f"{sign}number") if self.by_time else (f"{sign}number",)
        return self._from(place, upward=upward).order_by(*order)

    def _numbers(self, rows: EventQuerySet, *, upward: bool, most: int) -> list[int]:
        """The first numbers on any of the ways, each asked by its index."""
        found = {n for way in self.ways or () for n in rows.filter(**way).values_list("number", flat=True)[:most]}
        return (nsmallest if upward else nlargest)(most, found)

    def _from(self, place: _Place | None, *, upward: bool) -> EventQuerySet:
        if place is None:
            return self.rest
        if not self.by_time or place.at is None:
            return self.rest.filter(**{"number__gt" if upward else "number__lt": place.number})
        beyond = {"number__lte" if upward else "number__gte": place.number}
        bounded = self.rest.filter(**{"at__gte" if upward else "at__lte": place.at})
        return bounded.exclude(at=place.at, **beyond)


_thin: Final[Callable[[Event], Thin]] = attrgetter(*THIN)


def _by_number(numbers: list[int]) -> list[Event]:
    rows: dict[int, Event] = {}
    for start in range(0, len(numbers), BATCH):
        rows |= Event.objects.in_bulk(numbers[start : start + BATCH], field_name="number")
    return [rows[number] for number in numbers]


def _by_request(asked: Asked) -> list[Way] | None:
    return [{"request_id": asked.request}] if asked.request else None


def _by_tenant(asked: Asked) -> list[Way] | None:
    return [{"tenant_key": asked.tenant}] if asked.tenant else None


def _by_action(asked: Asked) -> list[Way] | None:
    if not asked.action:
        return None
    if not asked.action.endswith(":"):
        return [{"action": asked.action}]
    return [{"action": action} for action in distinct("action") if action.startswith(asked.action)]


def _by_subject(asked: Asked) -> list[Way] | None:
    return _subject_ways(asked.subject) if asked.subject else None


def _by_subjects(asked: Asked) -> list[Way] | None:
    if not asked.subjects and not asked.rollout:
        return None
    linked = [{"rollout_key": asked.rollout}] if asked.rollout else []
    return [*linked, *(way for subject in asked.subjects for way in _subject_ways(subject))]


def _subject_ways(subject: str) -> list[Way]:
    kind, colon, key = subject.partition(":")
    if colon:
        return [{"subject_kind": kind, "subject_key": key} if key else {"subject_kind": kind}]
    return [{"subject_key": subject}, {"subject_label": subject}]


def _by_actor(asked: Asked) -> list[Way] | None:
    if not asked.actor:
        return None
    if Event.objects.filter(actor_key=asked.actor).exists():
        return [{"actor_key": asked.actor}]
    part = asked.actor.casefold()
    return [{"actor_name": name} for name in distinct("actor_name") if part in name.casefold()]


def _one_of(ways: list[Way]) -> Wanted:
    """Whether an event is on one of the ways; they all have the same columns, or few."""
    by_columns: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for way in ways:
        by_columns.setdefault(tuple(way), set()).add(tuple(way.values()))

    def is_one(thin: Thin) -> bool:
        return any(tuple(thin[at] for at in places) in values for places, values in by_places)

    by_places = [(tuple(map(THIN.index, columns)), values) for columns, values in by_columns.items()]
    return is_one


def _says(text: str) -> Wanted:
    part = text.casefold()
    if "\0" in part:  # no text of the trail holds one, and below it parts them
        return lambda thin: False
    return lambda thin: part in "\0".join(thin[-len(TEXTS) :]).casefold()


def distinct(column: str) -> list[str]:
    """The different values of an indexed column, in order: one step of the index each, however many events have it."""
    if column not in ("action", "actor_name"):
        raise ValueError(f"No index of the trail begins with {column}.")
    sql = (
        f"WITH RECURSIVE step(value) AS (SELECT MIN({column}) FROM audit_event UNION ALL "  # noqa: S608  a fixed name
        f"SELECT (SELECT MIN({column}) FROM audit_event WHERE {column} > step.value) FROM step "
        "WHERE step.value IS NOT NULL) SELECT value FROM step WHERE value IS NOT NULL"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return [value for (value,) in cursor.fetchall()]
