"""The audit trail: who did what, filtered by what the address says."""

import json
from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from audit.actions import Action
from audit.models import ChainHead, Event
from console.requests import filter_text
from people.permissions import reviewer_required

PAGE = 50
ROOMS = ("people", "inventory", "partitions", "deploy")
FILTERS = ("actor", "action", "subject", "text", "since", "until", "request")


@require_safe
@reviewer_required
def events(request: HttpRequest) -> HttpResponse:
    """The events that match, the newest first."""
    asked = {name: filter_text(request, name) for name in FILTERS}
    since, until = _day(asked["since"]), _day(asked["until"])
    found = Event.objects.matching(
        actor=asked["actor"],
        action=asked["action"],
        subject=asked["subject"],
        since=since,
        until=until + timedelta(days=1) if until else None,
        text=asked["text"],
    ).newest_first()
    if asked["request"]:
        found = found.filter(request_id=asked["request"])
    page = Paginator(found, PAGE).get_page(request.GET.get("page"))
    return render(
        request,
        "console/audit.html",
        {
            "page": page,
            "rows": [(event, _words(event.action), _details(event)) for event in page],
            "asked": asked,
            "is_filtered": any(asked.values()),
            "query": urlencode({name: value for name, value in asked.items() if value}),
            "actions": _choices(),
            "head": ChainHead.objects.first(),
        },
    )


def _day(text: str) -> datetime | None:
    """The beginning of the day `text` names, in UTC; None when it names none, or the last that a date can name."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    if day == date.max:
        return None  # it has no day after it
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _words(action: str) -> str:
    """The action in words; its name when this version does not know it any more."""
    known = {str(one): one.words for one in Action}
    return known.get(action, action)


def _choices() -> list[tuple[str, list[tuple[str, str]]]]:
    """The actions by room, as the filter offers them: value and words."""
    return [(room, [(str(one), f"{one.words} ({one})") for one in Action if one.room == room]) for room in ROOMS]


def _details(event: Event) -> list[tuple[str, str, str]]:
    """What changed: for each name the value before and after, as text."""
    before, after = event.before or {}, event.after or {}
    if not isinstance(before, dict) or not isinstance(after, dict):
        return [("value", _text(before), _text(after))]
    return [(name, _text(before.get(name)), _text(after.get(name))) for name in sorted({*before, *after})]


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
