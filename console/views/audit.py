"""The audit trail: the timeline by the filters in its address, one event, and what is exported of it."""

from collections.abc import AsyncIterator, Iterator
from typing import Final

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_safe

from audit import cells, exporting, review
from audit.models import Event
from audit.review import Asked
from console.chain_status import chain_status
from console.requests import filter_text, person
from console.review import Filters, choices, filters, tenants, values, words
from deploy.models import Rollout
from people.actor import actor_of
from people.permissions import reviewer_required

PRINTED: Final = 2_000  # events on the print view; more belong into a file
FORMATS: Final = (("jsonl", "JSON lines"), ("csv", "CSV"), ("print", "Print"))
LAST_NUMBER: Final = 2**62  # no trail gets there, and every database can compare it


@require_safe
@reviewer_required
def events(request: HttpRequest) -> HttpResponse:
    """The events that match, the newest first."""
    found = filters(request)
    problems = list(found.problems)
    try:
        page = review.page(found.asked, before=filter_text(request, "before"), after=filter_text(request, "after"))
    except review.BadCursor as error:
        problems.append(str(error))
        page = review.page(found.asked)
    rollout = None
    if found.texts["rollout"]:
        rollout = Rollout.objects.filter(public_id=found.texts["rollout"]).select_related("revision").first()
    return render(
        request,
        "console/audit.html",
        {
            "page": page,
            "rows": [(event, words(event.action), values(event)) for event in page.events],
            "filters": found,
            "asked": found.texts,
            "problems": problems,
            "actions": choices(),
            "tenants": tenants(),
            "rollout": rollout,
            "formats": FORMATS,
            "chain": chain_status(request),
        },
    )


@require_safe
@reviewer_required
def event(request: HttpRequest, number: int) -> HttpResponse:
    """One event with all that it says, its place in the chain, and what else its request did."""
    if number > LAST_NUMBER:
        raise Http404
    shown = get_object_or_404(Event, number=number)
    same = review.page(Asked(request=shown.request_id)).events if shown.request_id else ()
    return render(
        request,
        "console/audit_event.html",
        {
            "event": shown,
            "words": words(shown.action),
            "values": values(shown),
            "is_sound": shown.content_hash() == shown.hash,
            "same_request": [(one, words(one.action)) for one in same if one.number != shown.number],
            "has_next": Event.objects.filter(number=number + 1).exists(),
            "chain": chain_status(request),
            "rollout": _rollout_of(shown),
        },
    )


@require_GET
@never_cache
@reviewer_required
def export(request: HttpRequest, form: str) -> HttpResponseBase:
    """Everything that matches as JSON lines, CSV or a page to print; the export is an event itself."""
    if form not in exporting.FORMATS:
        raise Http404
    found = filters(request)
    if found.problems:
        return HttpResponse("\n".join(found.problems), status=400, content_type="text/plain; charset=utf-8")
    begun = exporting.begin_export(asked=found.asked, form=form, actor=actor_of(person(request)))
    if form == "print":
        return _printed(request, found, begun)
    if form == "csv":
        pieces, kind = _csv(found.asked, begun), "text/csv; charset=utf-8"
    else:
        pieces, kind = exporting.lines(found.asked, begun), "application/x-ndjson"
    # Under ASGI Django would collect all of a plain iterator before it sends anything.
    body = _in_threads(pieces) if isinstance(request, ASGIRequest) else pieces
    answer = StreamingHttpResponse(body, content_type=kind)
    answer["Content-Disposition"] = f'attachment; filename="audit-{begun.number}.{form}"'
    return answer


def _rollout_of(shown: Event) -> Rollout | None:
    """The rollout that an event is part of, if it is of one; older events say it by their subject alone."""
    if shown.rollout_key:
        return Rollout.objects.filter(public_id=shown.rollout_key).first()
    if shown.subject_kind == "rollout":
        return Rollout.objects.filter(public_id=shown.subject_key).first()
    if shown.subject_kind == "revision":
        return Rollout.objects.filter(revision__public_id=shown.subject_key).order_by("-pk").first()
    return None


def _printed(request: HttpRequest, found: Filters, begun: Event) -> HttpResponse:
    rows: list[Event] = []
    for piece in review.oldest_first(found.asked, until_number=begun.number):
        rows += piece
        if len(rows) > PRINTED:
            break
    shown = {
        "rows": [(event, words(event.action), values(event)) for event in rows[:PRINTED]],
        "is_cut": len(rows) > PRINTED,
        "most": PRINTED,
        "filters": found,
        "told": [(name, found.in_utc.get(name, value)) for name, value in found.texts.items() if value],
        "export": begun,
        "chain": chain_status(request),
    }
    return render(request, "console/audit_print.html", shown)


def _csv(asked: Asked, begun: Event) -> Iterator[str]:
    """One event a row, oldest first, with its hashes, a piece of the trail at a time."""
    yield cells.line(exporting.COLUMNS)
    for piece in review.oldest_first(asked, until_number=begun.number):
        yield "".join(cells.line(_cells(event)) for event in piece)


def _cells(event: Event) -> Iterator[object]:
    told = event.to_json()
    return (exporting.told(told[name]) if name in ("before", "after") else told[name] for name in exporting.COLUMNS)


async def _in_threads(pieces: Iterator[str]) -> AsyncIterator[str]:
    while (piece := await sync_to_async(_next)(pieces)) is not None:
        yield piece


def _next(pieces: Iterator[str]) -> str | None:
    return next(pieces, None)
