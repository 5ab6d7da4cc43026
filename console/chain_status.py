"""The lamp of the chain in the head of the audit pages: is the trail as it was written, as far as that is known?"""

from dataclasses import dataclass

from audit.canonical import GENESIS
from audit.models import ChainHead, Event
from console.lamps import Colour, Lamp

LOOKED_AT = 10  # events at the end that every page checks by itself; 1 ms


@dataclass(frozen=True, slots=True)
class ChainStatus:
    """The lamp, a sentence, and where the chain stands."""

    lamp: Lamp
    sentence: str
    number: int
    hash: str

    @property
    def is_broken(self) -> bool:
        """Whether somebody altered the trail."""
        return self.lamp.colour is Colour.BAD


def chain_status() -> ChainStatus:
    """Check the newest events here and now. Two queries."""
    head = ChainHead.objects.first()
    number, hash_ = (0, GENESIS) if head is None else (head.number, head.hash)
    trouble = _trouble(number, hash_)
    if trouble:
        return ChainStatus(Lamp(Colour.BAD, "alert-octagon", "chain broken"), trouble, number, hash_)
    sentence = f"The newest events up to {number} are as they were written."
    return ChainStatus(Lamp(Colour.GOOD, "shield-check", "chain sound"), sentence, number, hash_)


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
