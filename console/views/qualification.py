"""Qualification: may FabricUI write to this subnet? The report, the checklist a person signs, and the mode."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from deploy import qualification
from deploy.errors import DeployError
from deploy.models import Qualification
from inventory import operations
from inventory.errors import InventoryError
from inventory.models import Subnet
from people.actor import actor_of
from people.fresh import fresh_login_required
from people.permissions import is_operator, operator_required, reviewer_required
from subnet.qualification import CHECKLIST, pace

MOST_SHOWN = 10


@require_safe
@never_cache
@reviewer_required
def page(request: HttpRequest, public_id: str) -> HttpResponse:
    """The newest report with its findings, who signed what, and why write mode is or is not to be had."""
    subnet = get_object_or_404(Subnet, public_id=public_id)
    rows = Qualification.objects.filter(subnet=subnet).order_by("-id")
    newest = rows.first()
    shown = newest if newest is not None and newest.report is not None else rows.exclude(report__isnull=True).first()
    report: dict[str, Any] = (shown.report if shown is not None else None) or {}
    findings = report.get("findings", [])
    name = "console/qualification.html#body" if request.htmx else "console/qualification.html"  # type: ignore[attr-defined]
    return render(
        request,
        name,
        {
            "subnet": subnet,
            "why_not": qualification.why_not(subnet),
            "newest": newest,
            "is_pending": newest is not None and newest.is_pending,
            "shown": shown,
            "report": report,
            "groups": [
                (severity, title, [finding for finding in findings if finding["severity"] == severity])
                for severity, title in (
                    ("refuse", "Speaks against writing"),
                    ("warn", "To be known"),
                    ("note", "Found"),
                )
            ],
            "managers": sorted(report.get("managers", {}).items()),
            "sweeps": _sweeps(report.get("sweeps")),
            "checklist": [
                (item, sentence, bool((shown.answers or {}).get(item)) if shown is not None else False)
                for item, sentence in CHECKLIST.items()
            ],
            "awaits_signature": shown is not None and shown.is_fit and shown.signed_at is None,
            "history": rows.exclude(finished_at=None)[:MOST_SHOWN],
            "modes": Subnet.Mode.choices,
            "may_act": is_operator(request.user),
        },
    )


@require_POST
@operator_required
def run(request: HttpRequest, public_id: str) -> HttpResponse:
    """Ask the managers' worker for a new report."""
    subnet = get_object_or_404(Subnet, public_id=public_id)
    qualification.request(subnet=subnet, actor=actor_of(request.user), may_sweep=request.POST.get("may_sweep") == "1")
    return redirect("console:qualification", public_id=public_id)


@require_POST
@operator_required
@fresh_login_required
def sign(request: HttpRequest, public_id: str) -> HttpResponse:
    """Put the operator's name under what only hardware can show."""
    subnet = get_object_or_404(Subnet, public_id=public_id)
    row = get_object_or_404(Qualification, subnet=subnet, public_id=request.POST.get("report", ""))
    answers = {item: request.POST.get(item) == "1" for item in CHECKLIST}
    try:
        qualification.sign(
            qualification=row, answers=answers, actor=actor_of(request.user), reason=request.POST.get("reason", "")
        )
    except DeployError as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, "Signed. The subnet may go into mode write now.")
    return redirect("console:qualification", public_id=public_id)


@require_POST
@operator_required
@fresh_login_required
def mode(request: HttpRequest, public_id: str) -> HttpResponse:
    """Say how far FabricUI may go here."""
    subnet = get_object_or_404(Subnet, public_id=public_id)
    try:
        operations.set_mode(
            subnet=subnet,
            mode=request.POST.get("mode", ""),
            actor=actor_of(request.user),
            reason=request.POST.get("reason", ""),
        )
    except InventoryError as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, f"Subnet {subnet} is in mode {subnet.get_mode_display()}.")
    return redirect("console:qualification", public_id=public_id)


def _sweeps(stored: dict[str, Any] | None) -> list[tuple[str, str]]:
    """The measured sweeps as a person reads them: beside what, and how long each took."""
    if not stored:
        return []
    rows = [("alone", stored["alone"])]
    rows += [(f"beside a reading {pace(int(rate))}", taken) for rate, taken in stored["beside"].items()]
    return [(beside, ", ".join(f"{seconds:.3f} s" for seconds in taken)) for beside, taken in rows]
