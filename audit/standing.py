"""How the trail stands as far as anybody has checked: what the scheduled checks found, and whether they still run.

The rows are under a code of the trail's key. Whoever writes the database, and has no key, can make them say nothing
good of today: an altered row is a break, one that is gone was not checked, and an old one put back is late once it is
as old as LATE allows. Until then it hides a break that was found since; the events of the break and the anchors tell.
"""

import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from audit import keyring, outage, spool
from audit.canonical import canonical, plain
from audit.errors import KeyUnavailable
from audit.models import Event, TrailCheck

Kind = TrailCheck.Kind
CANNOT: Final = "cannot"  # the trouble of a check that could not be made
# So old may the newest check of a kind be: the one of the whole runs each hour, the others each minute.
LATE: Final = {
    Kind.WHOLE: timedelta(hours=3),
    Kind.NEWEST: timedelta(minutes=10),
    Kind.ANCHOR: timedelta(minutes=10),
}
_SAID: Final = (
    "kind", "checked_at", "events", "broken_at", "trouble", "sentence", "anchored_to", "checked_to", "key_version",
)  # fmt: skip


class State(StrEnum):
    """From good to bad; the worst of what is known counts."""

    VERIFIED = "verified"
    NEW = "new"  # a trail so young that no check of it is due yet
    LATE = "late"  # no check for too long
    UNCHECKED = "unchecked"  # a check, or the anchoring, cannot be made
    CLOSED = "closed"  # nothing can be recorded
    BROKEN = "broken"


_ORDER: Final = list(State)


@dataclass(frozen=True, slots=True)
class Standing:
    """The state, sentences for a person, and up to which event the trail was verified, when.

    `alarms` is what must be told on every page; empty while all is well.
    """

    state: State
    sentence: str
    up_to: int
    at: datetime | None
    alarms: tuple[str, ...]


def standing(*, now: datetime) -> Standing:
    """How the trail stands at `now`. One query; another while checks are missing."""
    found: list[tuple[State, str]] = []
    closed = outage.known()
    if closed:
        found.append((State.CLOSED, f"No change can be recorded, so none is made. {closed}"))
    waiting = spool.waiting()
    if waiting:
        events = "1 event of a restore waits" if waiting == 1 else f"{waiting} events of restores wait"
        found.append((State.UNCHECKED, f"{events} beside the audit trail until it takes events again."))
    rows = {row.kind: row for row in TrailCheck.objects.order_by("kind")}
    checks: dict[str, TrailCheck] = {}
    for kind, row in rows.items():
        state, sentence = _judged(row, now)
        cause = row.sentence if row.trouble == CANNOT else sentence
        if sentence and not (closed and state is State.UNCHECKED and cause in closed):  # one cause is told once
            found.append((state, sentence))
        if state is not State.NEW:
            checks[kind] = row
    if {Kind.WHOLE, Kind.NEWEST, Kind.ANCHOR} - checks.keys() and not any(s is State.UNCHECKED for s, _ in found):
        first = Event.objects.order_by("number").values_list("number", "at").first()
        if first is not None and (first[0] > 1 or now - first[1] > LATE[Kind.NEWEST]):
            found.append((State.LATE, f"The audit trail was not checked as it should be. {_WHOSE}"))
    state = max((state for state, _ in found), key=_ORDER.index, default=State.VERIFIED)
    whole, newest = checks.get(Kind.WHOLE), checks.get(Kind.NEWEST)
    alarms = tuple(dict.fromkeys(sentence for _, sentence in found))
    if state is State.VERIFIED and (whole is None or newest is None):
        return Standing(State.NEW, "The audit trail is young: its first check has still to run.", 0, None, alarms)
    said, up_to, at = _told(whole, newest)
    return Standing(state, " ".join([*alarms, said]).strip(), up_to, at, alarms)


def keep(kind: str, *, now: datetime, sentence: str, trouble: str = "", **columns: int | None) -> None:
    """Write down what a check of `kind` found, under the newest key; without one it will count for nothing."""
    values = {"broken_at": None, "events": 0, "anchored_to": 0, "checked_to": 0, **columns}
    row = TrailCheck(kind=kind, checked_at=now, trouble=trouble, sentence=sentence, **values)
    try:
        ring = keyring.load()
        row.key_version = max(ring)
        row.mac = _code(ring[row.key_version], row)
    except KeyUnavailable:
        row.key_version = 0
    written = {name: getattr(row, name) for name in (*_SAID, "mac") if name != "kind"}
    TrailCheck.objects.update_or_create(kind=kind, defaults=written)


def _judged(row: TrailCheck, now: datetime) -> tuple[State, str]:
    """What one row says; NEW when it counts for nothing."""
    if row.trouble == CANNOT:
        return State.UNCHECKED, f"The audit trail could not be checked: {row.sentence}"
    if row.trouble:  # who says so, says nothing good: it is believed without a code
        return State.BROKEN, f"The audit trail is broken ({row.trouble}): {row.sentence}"
    if row.key_version == 0:
        return State.NEW, ""
    try:
        key = keyring.load().get(row.key_version)
    except KeyUnavailable as error:
        return State.UNCHECKED, str(error)
    if key is None:
        return State.UNCHECKED, (
            f"What the last check of the audit trail found is under key {row.key_version}, which is not in "
            f"{keyring.path()}. Put the newest file back from its backup."
        )
    if _code(key, row) != row.mac:
        return State.BROKEN, (
            f"What the last check of {row.get_kind_display()} found was altered in the database by somebody who does "
            "not have the trail’s key. Verify it: ./run manage audit verify"
        )
    if now - row.checked_at > LATE[Kind(row.kind)]:
        return State.LATE, (
            f"The audit trail was last checked at {row.checked_at:%Y-%m-%d %H:%M} UTC ({row.get_kind_display()}). "
            f"{_WHOSE}"
        )
    return State.VERIFIED, ""


_WHOSE: Final = "Its check runs by itself; see that the workers beat and housekeeping run."


def _told(whole: TrailCheck | None, newest: TrailCheck | None) -> tuple[str, int, datetime | None]:
    """Up to which event the trail was verified, in words, as a number and when; nothing before the whole was."""
    if whole is None or whole.trouble:
        return "", 0, None
    said = f"Events 1 to {whole.checked_to} were as they were written at {whole.checked_at:%Y-%m-%d %H:%M} UTC"
    if whole.anchored_to:
        said += f", and agree with the anchors up to event {whole.anchored_to}"
    if newest is None or newest.trouble or newest.checked_at <= whole.checked_at:
        return f"{said}.", whole.checked_to, whole.checked_at
    said += f"; so were the ones since, up to event {newest.checked_to}, at {newest.checked_at:%Y-%m-%d %H:%M} UTC"
    return f"{said}.", newest.checked_to, newest.checked_at


def _code(key: bytes, row: TrailCheck) -> str:
    """Never mistaken for an event's code, which is over the 32 bytes of a hash."""
    said = canonical({name: plain(getattr(row, name)) for name in _SAID})
    return hmac.digest(key, b"check:" + said, "sha256").hex()
