"""The lamp of the chain in the head of every page: is the trail as it was written, as far as that is known?"""

from dataclasses import dataclass

from django.http import HttpRequest
from django.utils import timezone

from audit.models import ChainHead, Event
from audit.standing import Standing, State, standing
from audit.verifier import GENESIS
from console.lamps import Colour, Lamp

LOOKED_AT = 10  # events at the end that every review page checks by itself; 1 ms

LAMPS = {
    State.VERIFIED: Lamp(Colour.GOOD, "shield-check", "trail verified"),
    State.NEW: Lamp(Colour.IDLE, "hourglass", "trail not checked yet"),
    State.LATE: Lamp(Colour.WARN, "clock", "trail check late"),
    State.UNCHECKED: Lamp(Colour.WARN, "alert-triangle", "trail not checked"),
    State.CLOSED: Lamp(Colour.BAD, "ban", "trail takes nothing"),
    State.BROKEN: Lamp(Colour.BAD, "alert-octagon", "trail broken"),
}


@dataclass(frozen=True, slots=True)
class TrailChip:
    """The lamp in the head of a page, up to which event it holds and since when, and the sentence behind it."""

    lamp: Lamp
    sentence: str
    note: str  # "to 1042, 12:41", or ""


@dataclass(frozen=True, slots=True)
class ChainStatus:
    """The same with where the chain stands, for the review pages."""

    lamp: Lamp
    sentence: str
    number: int
    hash: str
    is_broken: bool


def trail_standing(request: HttpRequest) -> Standing:
    """How the trail stands, asked once a request. One query."""
    if not hasattr(request, "_console_trail"):
        request._console_trail = standing(now=timezone.now())  # type: ignore[attr-defined]
    found: Standing = request._console_trail  # type: ignore[attr-defined]
    return found


def trail_chip(request: HttpRequest) -> TrailChip:
    """What the head of the page shows."""
    found = trail_standing(request)
    note = (
        f"to {found.up_to}, {timezone.localtime(found.at):%H:%M}"
        if found.at is not None and found.state is State.VERIFIED
        else ""
    )
    return TrailChip(LAMPS[found.state], found.sentence, note)


def chain_status(request: HttpRequest) -> ChainStatus:
    """How the trail stands, with the newest events checked here and now. Three queries.

    What is found here is on the lamp in the page's head too.
    """
    head = ChainHead.objects.first()
    number, hash_ = (0, GENESIS) if head is None else (head.number, head.hash)
    found = trail_standing(request)
    trouble = _trouble(number, hash_)
    if trouble:
        said = f"{trouble} {' '.join(found.alarms)}".strip()
        found = Standing(State.BROKEN, said, 0, None, found.alarms)
        request._console_trail = found  # type: ignore[attr-defined]
    return ChainStatus(LAMPS[found.state], found.sentence, number, hash_, found.state is State.BROKEN)


def _trouble(number: int, hash_: str) -> str:
    """What is wrong at the end of the chain; empty when nothing is."""
    events = list(Event.objects.filter(number__lte=number).order_by("-number")[:LOOKED_AT])
    expected = hash_
    for at, event in zip(range(number, 0, -1), events, strict=False):
        if event.number != at:
            return f"Event {at} is missing."
        if event.hash != expected or event.content_hash() != event.hash:
            return f"Event {at} is not as it was written."
        expected = event.previous_hash
    if len(events) < min(number, LOOKED_AT):
        return f"The head of the chain remembers event {number}, and it is not there."
    return ""
