"""As of then: the fabric at a moment as a page and as JSON, and the way back to it."""

from datetime import UTC
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from console import as_of
from console.chain_status import chain_status
from console.frame import the_subnet
from console.requests import filter_text, person
from console.review import moment, note_read, zone_meant
from console.views.home import no_subnet
from inventory.subjects import subnet_subject
from partitions import operations
from partitions.errors import PartitionsError
from people.permissions import is_operator, operator_required, reviewer_required
from subnet.errors import SubnetError

PORTS = 200  # tables on the page; the JSON has all


@require_safe
@reviewer_required
def page(request: HttpRequest) -> HttpResponse:
    """The fabric at the moment in the address, or what to choose from."""
    subnet = the_subnet(request)
    if subnet is None:
        return no_subnet(request)
    now = timezone.now()
    asked = filter_text(request, "at")
    at = moment(asked)
    problem = ""
    if asked and at is None:
        problem = (
            f"“{asked[:40]}” names no moment. Write 2026-12-01T14:30 or 2026-12-01T14:30:15; {zone_meant()} is meant."
        )
    elif at is not None and at > now + as_of.AHEAD:
        problem, at = "That moment is still to come.", None
    search = filter_text(request, "q")
    if at is not None:
        note_read(request, subnet_subject(subnet), "the fabric as of then")
    then = None if at is None else as_of.look_back(subnet, at, now=now)
    rows = []
    if then is not None:
        part = search.casefold()
        rows = [
            row
            for row in then.ports
            if (part in f"{row.label} {row.port.guid} {row.then}".casefold() if part else row.differs or row.later)
        ]
    return render(
        request,
        "console/as_of.html",
        {
            "subnet": subnet,
            "at": at,
            "asked": asked or timezone.localtime(now).strftime("%Y-%m-%dT%H:%M"),
            "problem": problem,
            "then": then,
            "moments": as_of.moments(subnet, now),
            "search": search,
            "rows": rows[:PORTS],
            "more": max(0, len(rows) - PORTS),
            "may_act": is_operator(request.user),
            "chain": chain_status(request),
        },
    )


@require_safe
@reviewer_required
def data(request: HttpRequest) -> HttpResponse:
    """The same for programs; 400 with a sentence when the address names no moment."""
    subnet = the_subnet(request)
    at = moment(filter_text(request, "at"), zone=UTC)
    now = timezone.now()
    if subnet is None:
        return JsonResponse({"error": "There is no subnet yet."}, status=404)
    if at is None or at > now + as_of.AHEAD:
        sentence = "Name a moment that has been: ?at=2026-12-01T14:30:15; UTC unless it says another zone."
        return JsonResponse({"error": sentence}, status=400)
    note_read(request, subnet_subject(subnet), "the fabric as of then")
    return JsonResponse(as_of.to_json(as_of.look_back(subnet, at, now=now)))


@require_safe
@operator_required
def way_back(request: HttpRequest) -> HttpResponse:
    """What would be staged to put the fabric back, and what would not and why."""
    subnet = the_subnet(request)
    if subnet is None:
        return no_subnet(request)
    at = moment(filter_text(request, "at"))
    if at is None:
        messages.error(request, "Choose a moment first.")
        return redirect("console:as_of")
    found, problem = None, ""
    try:
        found = operations.way_back(subnet=subnet, at=at, person=person(request))
    except PartitionsError as error:
        problem = str(error)
    shown = {"at": at, "found": found, "problem": problem, "chain": chain_status(request)}
    return render(request, "console/way_back.html", shown)


@require_POST
@operator_required
def stage_back(request: HttpRequest) -> HttpResponse:
    """Stage it, and lead to the plan."""
    subnet = the_subnet(request)
    at = moment(request.POST.get("at", ""))
    if subnet is None or at is None:
        messages.error(request, "Choose a moment first.")
        return redirect("console:as_of")
    try:
        found = operations.stage_back(
            subnet=subnet, at=at, actor=person(request), reason=request.POST.get("reason", "")[:1000]
        )
    except (PartitionsError, SubnetError) as error:
        messages.error(request, str(error))
        again = urlencode({"at": at.isoformat()})
        return redirect(f"{reverse('console:as_of_back')}?{again}")
    left = f" {len(found.left)} stay as they are." if found.left else ""
    messages.success(
        request,
        f"Staged: {len(found.servers)} server{'' if len(found.servers) == 1 else 's'}"
        f"{' and Default' if found.default else ''} as at {at:%Y-%m-%d %H:%M:%S} UTC.{left} Nothing is sent before you "
        "roll it out.",
    )
    return redirect("console:plan")
