"""Check the whole chain, and name the first event that is not as it was written."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from audit.canonical import GENESIS
from audit.models import ChainHead, Event
from audit.record import THE_HEAD


class Break(StrEnum):
    """In which way a chain is broken."""

    EDITED = "edited"  # an event says something else than its hash
    MISSING = "missing"  # a number is not there
    DOUBLED = "doubled"  # a number is there twice, or not above 0
    RELINKED = "relinked"  # an event is sound by itself but does not continue the one before
    HEAD = "head"  # the last event is not the one the head remembers: the tail was cut off, or events were added


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What `verify` found. `broken_at` is the number of the first bad event, `sentence` says what is wrong."""

    events: int
    head_number: int
    head_hash: str
    broken_at: int | None
    kind: Break | None
    sentence: str

    @property
    def is_sound(self) -> bool:
        """Whether every event is as it was written and none is missing."""
        return self.kind is None


class _Broken(Exception):
    def __init__(self, number: int, kind: Break, sentence: str) -> None:
        super().__init__(sentence)
        self.number, self.kind, self.sentence = number, kind, sentence


def verify() -> ChainReport:
    """Read all events once, in order, and compare each with its hash, its predecessor and the head.

    Events recorded while it runs are left for the next run. The memory it takes does not grow with the chain.
    """
    head = _head()
    checked = 0
    try:
        previous = GENESIS
        for event in _events_up_to(head.number):
            _check(event, expected_number=checked + 1, previous=previous)
            checked += 1
            previous = event.hash
        _check_end(head, checked, previous)
    except _Broken as broken:
        return ChainReport(checked, head.number, head.hash, broken.number, broken.kind, broken.sentence)
    return ChainReport(checked, head.number, head.hash, None, None, f"All {checked} events are as they were written.")


def _head() -> ChainHead:
    return ChainHead.objects.filter(pk=THE_HEAD).first() or ChainHead(pk=THE_HEAD, number=0, hash=GENESIS)


def _events_up_to(number: int) -> Iterator[Event]:
    return Event.objects.filter(number__lte=number).order_by("number").iterator(chunk_size=2000)


def _check(event: Event, *, expected_number: int, previous: str) -> None:
    """Raise _Broken unless `event` is the next one, untouched."""
    if event.number > expected_number:
        raise _Broken(
            expected_number,
            Break.MISSING,
            f"Event {expected_number} is missing: event {event.number} follows event {expected_number - 1}. "
            "It was deleted, or its number was changed.",
        )
    if event.number < expected_number:
        raise _Broken(
            event.number, Break.DOUBLED, f"There is an event with the number {event.number} too many (id {event.pk})."
        )
    if event.content_hash() != event.hash:
        raise _Broken(
            event.number,
            Break.EDITED,
            f"Event {event.number} ({event.action}, {event.at:%Y-%m-%d %H:%M:%S} UTC) was edited: "
            "what it says does not match its hash.",
        )
    if event.previous_hash != previous:
        raise _Broken(
            event.number,
            Break.RELINKED,
            f"Event {event.number} does not continue event {event.number - 1}: "
            "one of the two was replaced, hash and all.",
        )


def _check_end(head: ChainHead, checked: int, previous: str) -> None:
    """Raise _Broken unless the chain ends where its head says."""
    if checked < head.number:
        raise _Broken(
            checked + 1,
            Break.HEAD,
            f"The chain ends at event {checked}, but its head remembers event {head.number}: "
            f"events {checked + 1} to {head.number} were cut off.",
        )
    if previous != head.hash:
        raise _Broken(
            checked, Break.HEAD, f"Event {checked} is not the one that the head of the chain remembers by its hash."
        )
    # In this order: an event that is committed now is either not yet in `newest` or already in the head read after.
    newest = Event.objects.order_by("-number").values_list("number", flat=True).first() or 0
    if newest > _head().number:
        raise _Broken(
            _head().number + 1,
            Break.HEAD,
            f"The head of the chain stands at event {_head().number}, but there are events up to {newest}: "
            "events were added behind its back, or the head was set back.",
        )
