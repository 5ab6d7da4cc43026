"""What the review pages read from an address, and how they tell an event."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils import timezone

from audit.actions import Action
from audit.models import Event
from audit.reads import record_read
from audit.review import Asked, distinct
from audit.values import Subject
from console.requests import filter_text, person
from deploy.models import Rollout
from people.actor import actor_of
from people.models import Tenant

FILTERS: Final = ("actor", "action", "subject", "tenant", "rollout", "request", "since", "until", "text")


@dataclass(frozen=True, slots=True)
class Typed:
    """Filters as they stand in the form, by name.

    `problems` are sentences about what could not be understood; such a filter is left out.
    """

    texts: Mapping[str, str]
    problems: tuple[str, ...]

    @property
    def query(self) -> str:
        """The filters as an address has them."""
        return urlencode({name: value for name, value in self.texts.items() if value})


@dataclass(frozen=True, slots=True)
class Filters(Typed):
    """What the address asks for, and the same for the trail."""

    asked: Asked

    @property
    def in_utc(self) -> Mapping[str, str]:
        """The moments that were typed, as evidence tells them."""
        named = {"since": self.asked.since, "until": self.asked.until}
        return {name: f"{at:%Y-%m-%d %H:%M:%S} UTC" for name, at in named.items() if at is not None}

    @property
    def is_filtered(self) -> bool:
        """Whether anything is left out."""
        return not self.asked.is_empty


def filters(request: HttpRequest) -> Filters:
    """Read the filters from the address. One query when a rollout is asked for."""
    texts = {name: filter_text(request, name) for name in FILTERS}
    since, until, problems = moments(texts)
    subjects: tuple[str, ...] = ()
    if texts["rollout"]:
        subjects = rollout_subjects(texts["rollout"])
    asked = Asked(
        actor=texts["actor"],
        action=texts["action"],
        subject=texts["subject"],
        subjects=subjects,
        rollout=texts["rollout"],
        tenant=texts["tenant"],
        request=texts["request"],
        since=since,
        until=until,
        text=texts["text"],
    )
    return Filters(texts, tuple(problems), asked)


def moments(texts: dict[str, str]) -> tuple[datetime | None, datetime | None, list[str]]:
    """What “since” and “until” of `texts` name, and sentences about those that name nothing: they are emptied."""
    found = {"since": moment(texts["since"]), "until": moment(texts["until"], is_end=True)}
    problems = []
    for name, at in found.items():
        if texts[name] and at is None:
            problems.append(
                f"“{texts[name][:40]}” names no moment. Write 2026-12-01 or 2026-12-01T14:30; {zone_meant()} is meant."
            )
            texts[name] = ""
    return found["since"], found["until"], problems


def note_read(request: HttpRequest, subject: Subject, what: str, *, rollout_key: str = "") -> None:
    """Record that the person looks at evidence, before it is shown; raises TrailUnavailable, and then nothing is."""
    record_read(actor=actor_of(person(request)), subject=subject, what=what, rollout_key=rollout_key)


def rollout_subjects(public_id: str) -> tuple[str, ...]:
    """The subjects whose events are a rollout's: itself and the revision that it makes true."""
    revision = Rollout.objects.filter(public_id=public_id).values_list("revision__public_id", flat=True).first()
    return (f"rollout:{public_id}", *([f"revision:{revision}"] if revision else []))


def moment(text: str, *, is_end: bool = False, zone: tzinfo | None = None) -> datetime | None:
    """The moment that `text` names, in UTC; of a day its beginning, or its end.

    It is meant in `zone`, the reader's when None, unless it says another. A day ends at the zone's next midnight, 23 or
    25 hours later where clocks are changed; an hour that comes twice is the first of the two.
    """
    try:
        found = datetime.fromisoformat(text)
        if is_end and len(text) == len("2026-12-01"):
            found += timedelta(days=1)
        if found.tzinfo is None:
            found = found.replace(tzinfo=zone or timezone.get_current_timezone())
        return found.astimezone(UTC)
    except (ValueError, OverflowError):  # no moment, or one beyond all calendars
        return None


def zone_meant() -> str:
    """The name of the zone in which a typed moment is meant."""
    return timezone.get_current_timezone_name()


def words(action: str) -> str:
    """The action in words; its name when this version does not know it any more."""
    known = {str(one): one.words for one in Action}
    return known.get(action, action)


def choices() -> list[tuple[str, list[tuple[str, str]]]]:
    """The actions that have happened, by room, as the filter offers them: value and words."""
    rooms: dict[str, list[tuple[str, str]]] = {}
    for action in distinct("action"):
        rooms.setdefault(action.partition(":")[0], []).append((action, words(action)))
    return [(room, rooms[room]) for room in sorted(rooms)]


def tenants() -> list[tuple[str, str]]:
    """The tenants as the filter offers them: public id and name."""
    return list(Tenant.objects.order_by("name").values_list("public_id", "name"))


@dataclass(frozen=True, slots=True)
class Value:
    """One value that an event tells of: its name, and what it was and became; empty text for none.

    `left` and `came` are items of lists, so that one changed item of many shows.
    """

    name: str
    before: str
    after: str
    left: tuple[str, ...] = ()
    came: tuple[str, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether the event says that it became another one."""
        return self.before != self.after


def values(event: Event) -> list[Value]:
    """What the event says, value by value, in order of name."""
    before, after = flat(event.before), flat(event.after)
    found = []
    for name in sorted({*before, *after}):
        was, now = before.get(name), after.get(name)
        left = came = ()  # type: tuple[str, ...]
        if isinstance(was, list) and isinstance(now, list):
            old, new = [text(item) for item in was], [text(item) for item in now]
            left = tuple(item for item in old if item not in new)
            came = tuple(item for item in new if item not in old)
        found.append(Value(name, text(was), text(now), left, came))
    return found


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """The leaves of a JSON value by their path: {"read_back.ports": 14}; lists stay whole."""
    if isinstance(value, dict):
        leaves: dict[str, Any] = {}
        for key, item in value.items():
            leaves |= flat(item, f"{name}.{key}" if name else str(key))
        return leaves
    return {} if value is None and not name else {name or "value": value}


def text(value: object) -> str:
    """A value for people."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(text, value)) if _is_plain(value) else json.dumps(value, ensure_ascii=False)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_plain(items: Iterable[object]) -> bool:
    return all(isinstance(item, str | int | float) for item in items)
