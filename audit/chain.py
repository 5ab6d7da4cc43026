"""Check the trail in the database by the rules of `audit/verifier.py`, and name the first event that is not as it was.

Rows are read as plain values, not as models: an event costs some 20 µs this way, several times that the other.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django.db import connection

from audit import keyring, signing
from audit.appending import THE_HEAD
from audit.canonical import GENESIS, utc_text
from audit.errors import NotRecordable, SigningUnavailable
from audit.models import EXPORTED, ChainHead, Event, Seal
from audit.verifier import HEAD, RESTORED, Anchor, Report, Standing, Walk

AT_ONCE: Final = 500  # rows a query: the memory it takes does not grow with the chain

type Row = dict[str, Any]


def verify(*, since: int = 1, until: int | None = None, anchors: Sequence[Anchor] = ()) -> Report:
    """Read the events from number `since` on once; compare each with its hash and code, and the end with the head.

    Events recorded while it runs are left for the next run. What stands before `since` is believed. `anchors` come
    from outside; the seals in the database are compared too. Raises KeyUnavailable without the secret keys.
    """
    head = _head()
    last = head.number if until is None else min(until, head.number)
    ring: Mapping[int, bytes] = keyring.load() if head.key_version else {}
    public_key = _public_key()
    standing = _standing(since)
    sealed = [seal.to_anchor() for seal in Seal.objects.filter(number__gte=since).order_by("number").iterator()]
    known = [*(anchor for anchor in anchors if anchor.number >= since), *sealed]
    walk = Walk(lambda: events(since, last), standing=standing, ring=ring, anchors=known if until is None else [])
    walk.lost += told_losses(before=since)
    walk.run()
    ends_at = (head.number, head.hash) if until is None else None
    report = walk.conclude(head=ends_at, public_key=public_key, verify=signing.verify)
    if until is None and report.is_sound:
        _compare_newest(report)
    return report


def events(since: int, until: int) -> Iterator[Row]:
    """The events from number `since` to `until` as the verifier takes them, ordered by number."""
    at, last_id = (since - 1, _ANY_ID) if since > 1 else (-_ANY_ID, 0)
    while True:
        found = _rows(at, last_id, until)
        for values in found:
            # One at a time: rows that all live at once are work for the garbage collector.
            row: Row = dict(zip(_KEYS, values))  # noqa: B905  strict costs as much as the dict
            row["at"] = _moment(row["at"])
            if (before := row["before"]) is not None:
                row["before"] = decoded(before)
            if (after := row["after"]) is not None:
                row["after"] = decoded(after)
            yield row
        if len(found) < AT_ONCE:
            return
        at, last_id = found[-1][_NUMBER], found[-1][-1]


def _rows(after: int, last_id: int, until: int) -> list[tuple[Any, ...]]:
    """The next events; a number that is there twice (its index must be gone) is given twice."""
    texts = _AS_TEXT[connection.vendor]
    columns = ", ".join([*(f'"{name}"' for name in _PLAIN), *texts, '"id"'])
    sql = (
        f"SELECT {columns} FROM audit_event WHERE (number, id) > (%s, %s) AND number <= %s "  # noqa: S608
        "ORDER BY number, id LIMIT %s"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [after, last_id, until, AT_ONCE])
        return list(cursor.fetchall())


_decoder: Final = json.JSONDecoder()


def decoded(text: str) -> Any:
    """What stored JSON says. Raises JSONDecodeError as json.loads() does."""
    try:
        value, end = _decoder.raw_decode(text)  # decode() without its two looks for blanks, which nobody stores
        if end == len(text):
            return value
    except json.JSONDecodeError:
        pass
    return _decoder.decode(text)


_PLAIN: Final = [name for name in EXPORTED if name not in {"at", "before", "after"}]
_KEYS: Final = (*_PLAIN, "at", "before", "after", "id")
_NUMBER: Final = _KEYS.index("number")
# Text, so that nothing is parsed that is only to be written down again.
_AS_TEXT: Final[Mapping[str, Sequence[str]]] = {
    "sqlite": ("\"at\" || ''", "\"before\" || ''", "\"after\" || ''"),
    "postgresql": (
        """to_char("at" AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')""",
        '"before"::text',
        '"after"::text',
    ),
}
_ANY_ID: Final = 2**62


def _moment(text: str) -> str:
    """A moment as both databases give it, as it was hashed; as it stands when it is none (somebody edited it)."""
    if len(text) == 27 and text[10] == "T":
        return text
    if len(text) == 26 and text[19] == ".":
        return f"{text[:10]}T{text[11:]}Z"
    if len(text) == 19:
        return f"{text[:10]}T{text[11:]}.000000Z"
    try:
        return utc_text(datetime.fromisoformat(text))
    except (ValueError, NotRecordable):
        return text


def _head() -> ChainHead:
    return ChainHead.objects.filter(pk=THE_HEAD).first() or ChainHead(pk=THE_HEAD, number=0, hash=GENESIS)


def _standing(since: int) -> Standing | None:
    """Where a walk from `since` begins: behind the event before it. None when there is none, and it begins at 1."""
    before = next(iter(events(since - 1, since - 1)), None) if since > 1 else None
    return None if before is None else Standing.after(before)


def told_losses(*, before: int) -> list[tuple[int, int, str, int]]:
    """What restorations before number `before` have told to be lost: their anchors may still come along."""
    told = Event.objects.filter(action=RESTORED, number__lt=before).order_by("number")
    said = [(one.after or {}, one) for one in told]
    return [(int(after["lost_from"]), int(after["lost_to"]), utc_text(one.at), one.number) for after, one in said]


def at_of(number: int) -> datetime:
    """When event `number` happened."""
    return Event.objects.values_list("at", flat=True).get(number=number)


def _public_key() -> bytes | None:
    try:
        return signing.public_key()
    except SigningUnavailable:
        return None


def _compare_newest(report: Report) -> None:
    # In this order: an event that is committed now is either not yet in `newest` or already in the head read after.
    newest = Event.objects.order_by("-number").values_list("number", flat=True).first() or 0
    head = _head().number
    if newest > head:
        report.break_at(
            head + 1,
            HEAD,
            f"The head of the chain stands at event {head}, but there are events up to {newest}: "
            "events were added behind its back, or the head was set back.",
        )
