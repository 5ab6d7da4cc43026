"""Take out of the trail what a reviewer has filtered: each event with its hashes, each export an event itself."""

import json
from collections.abc import Iterator
from typing import Any, Final

from django.db import transaction

from audit.actions import Action
from audit.canonical import canonical
from audit.export import line, whole
from audit.models import EXPORTED, Event
from audit.record import record
from audit.review import Asked, oldest_first
from audit.values import Actor, Subject

FORMATS: Final = ("jsonl", "csv", "print")
COLUMNS: Final = tuple(EXPORTED)
THE_TRAIL: Final = Subject(kind="trail", key="trail", label="the audit trail")


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


def lines(asked: Asked, export: Event) -> Iterator[str]:
    """JSON lines, oldest first, in pieces of many lines; each event with everything that its hash covers.

    Of everything: what `audit.export.whole` gives, which the stand-alone verifier checks from end to end. Of a part:
    a head {"fabricui_trail_part": 1, "filters", "to": number of the export's own event, "head": {"number", "hash"}},
    the events, and an end {"events": count}; each event can be checked by its own hash.
    """
    if asked.is_empty:
        yield from whole()
        return
    head = {"number": export.number, "hash": export.hash}
    yield _line({"fabricui_trail_part": 1, "filters": asked.told(), "to": export.number, "head": head})
    count = 0
    for piece in oldest_first(asked, until_number=export.number):
        count += len(piece)
        yield "".join(line(event) for event in piece)
    yield _line({"events": count})


def told(value: object) -> str:
    """A JSON value as text in one cell; empty for none."""
    return "" if value is None else canonical(value).decode()


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
