"""The lamp of the chain in the head of the audit pages: is the trail as it was written, as far as that is known?"""

from dataclasses import dataclass

from django.utils import timezone

from audit import watch
from audit.models import ChainHead, Event, TrailCheck
from audit.verifier import GENESIS
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
    """What the scheduled checks found (`audit/watch.py`), and the newest events checked here and now. Five queries."""
    head = ChainHead.objects.first()
    number, hash_ = (0, GENESIS) if head is None else (head.number, head.hash)
    trouble = _trouble(number, hash_)
    checks = {check.kind: check for check in TrailCheck.objects.all()}
    broken = [check.sentence for check in checks.values() if check.trouble not in ("", watch.CANNOT)]
    if trouble or broken:
        said = " ".join([*([trouble] if trouble else []), *broken])
        return ChainStatus(Lamp(Colour.BAD, "alert-octagon", "chain broken"), said, number, hash_)
    alarms = watch.alarms(now=timezone.now())
    if alarms:
        return ChainStatus(Lamp(Colour.WARN, "alert-triangle", "chain not checked"), " ".join(alarms), number, hash_)
    whole = checks.get(TrailCheck.Kind.WHOLE)
    if whole is None:
        said = f"The newest {min(number, LOOKED_AT)} events are as they were written; the whole was not checked yet."
        return ChainStatus(Lamp(Colour.IDLE, "hourglass", "chain sound at its end"), said, number, hash_)
    said = f"All {whole.events} events were as they were written at {whole.checked_at:%Y-%m-%d %H:%M} UTC"
    anchored = f", and agree with the anchors up to event {whole.anchored_to}" if whole.anchored_to else ""
    return ChainStatus(Lamp(Colour.GOOD, "shield-check", "chain sound"), f"{said}{anchored}.", number, hash_)


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
