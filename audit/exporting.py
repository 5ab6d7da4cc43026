"""Take events out of the trail for somebody else: each with its hashes, and each export is an event itself."""

import json
from collections.abc import Iterator
from typing import Any, Final

from django.db import transaction

from audit.actions import Action
from audit.canonical import canonical, utc_text
from audit.models import HASHED, Event
from audit.record import record
from audit.review import Asked, oldest_first
from audit.values import Actor, Subject

FORMATS: Final = ("jsonl", "csv", "print")
COLUMNS: Final = (*HASHED, "hash")
VERSION: Final = 1
THE_TRAIL: Final = Subject(kind="trail", key="events", label="the audit trail")


@transaction.atomic
def begin_export(*, asked: Asked, form: str, actor: Actor) -> Event:
    """Record that `actor` exports what matches `asked`; the export goes up to this event, and holds it if it matches.

    Raises ValueError for a form that is none of FORMATS.
    """
    if form not in FORMATS:
        raise ValueError(f"“{form[:20]}” is no form of an export. Choose one of {', '.join(FORMATS)}.")
    return record(
        action=Action.TRAIL_EXPORT,
        actor=actor,
        subject=THE_TRAIL,
        after={"format": form, "filters": asked.told()},
    )


def values(event: Event) -> dict[str, Any]:
    """All that the event's hash covers, and the hash; `at` as it is hashed."""
    whole = {name: getattr(event, name) for name in COLUMNS}
    return whole | {"at": utc_text(event.at)}


def lines(asked: Asked, export: Event) -> Iterator[str]:
    """JSON lines: a head, one event a line, oldest first, and an end with the count; in pieces of many lines.

    Head: {"kind": "audit-export", "version", "filters", "is_whole", "exported": number of the export's own event,
    "head_hash"}. `is_whole` says that nothing was filtered: then each event's `previous_hash` is the `hash` of the
    line before. An event: {"kind": "event", …everything that its hash covers, "hash"}. End: {"kind": "end", "events"}.
    """
    head = {
        "kind": "audit-export",
        "version": VERSION,
        "filters": asked.told(),
        "is_whole": asked.is_empty,
        "exported": export.number,
        "head_hash": export.hash,
    }
    yield _line(head)
    count = 0
    for piece in oldest_first(asked, until_number=export.number):
        count += len(piece)
        yield "".join(_line({"kind": "event"} | values(event)) for event in piece)
    yield _line({"kind": "end", "events": count})


def told(value: object) -> str:
    """A JSON value as text in one cell; empty for none."""
    return "" if value is None else canonical(value).decode()


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
