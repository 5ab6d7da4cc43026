"""Activity as a file for the tenant's own tools: the newest lines that match, in English and in UTC.

A file holds what the page says and nothing else: no number of the trail, and no name of the provider's.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC
from typing import Any, Final

from django.utils import translation

from audit import cells
from audit.canonical import utc_text
from audit.export import record_export
from people.actor import actor_of
from portal.activity import found
from portal.activity.filters import Filters
from portal.activity.told import Told, told
from portal.door import Seat

MOST: Final = 5_000  # lines of one file
FORMS: Final = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
COLUMNS: Final = (
    "id", "at", "kind", "action", "who_kind", "who_id", "who", "words", "about_kind", "about_id", "about", "details",
    "reason",
)  # fmt: skip


def write(*, seat: Seat, filters: Filters, form: str) -> tuple[str, bool]:
    """The newest MOST lines that `filters` show, and whether older ones were left out; the tenant's trail tells of it.

    Raises KeyError for a form that is none of FORMS.
    """
    if form not in FORMS:
        raise KeyError(form)
    people = found.people_of(seat.tenant)
    events = list(found.every(seat.tenant, seat.person, filters.asked, people=people, most=MOST + 1))
    is_cut = len(events) > MOST
    with translation.override("en"):
        lines = told(seat.tenant, events[:MOST], people=people)
        text = (
            "".join(cells.lines(COLUMNS, map(_row, lines)))
            if form == "csv"
            else _json(seat, filters, lines, is_cut=is_cut)
        )
    record_export(
        actor=actor_of(seat.person), what=f"the activity of {seat.tenant.name}", form=form, events=len(lines),
        filters=_filters(filters), tenant_key=seat.tenant.public_id,
    )  # fmt: skip
    return text, is_cut


def _row(line: Told) -> Sequence[str]:
    return (
        line.id, _at(line), line.kind.value, line.action, line.who.kind, line.who.id, line.who.name, line.words,
        line.about.kind, line.about.id, line.about.name, "; ".join(line.details), line.reason,
    )  # fmt: skip


def _json(seat: Seat, filters: Filters, lines: Iterable[Told], *, is_cut: bool) -> str:
    head: dict[str, Any] = {
        "fabricui_activity": 1,
        "tenant": {"id": seat.tenant.public_id, "name": seat.tenant.name},
        "filters": _filters(filters),
        "is_cut": is_cut,
        "events": [asdict(line) | {"at": _at(line)} for line in lines],
    }
    return json.dumps(head, ensure_ascii=False, indent=1) + "\n"


def _filters(filters: Filters) -> dict[str, str]:
    """What was asked for, with the moments in UTC."""
    asked = filters.asked
    moments = {"since": asked.since, "until": asked.until}
    named = {"what": filters.texts["what"], "who": filters.texts["who"]}
    return {name: value for name, value in named.items() if value} | {
        name: utc_text(at) for name, at in moments.items() if at is not None
    }


def _at(line: Told) -> str:
    return line.at.astimezone(UTC).isoformat()
