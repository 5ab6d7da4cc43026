"""Drift: what is other than the current revision says, what probably did it, and the two ways out of it."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console import drifts
from console.frame import fence_of, holding_rollout, obstacle, the_subnet
from console.requests import person
from console.views.home import no_subnet
from deploy import drifting, putting_back
from deploy.drift_models import Drift
from deploy.errors import DeployError
from inventory.models import Subnet
from partitions import drift_adoption
from partitions.errors import PartitionsError
from people.actor import actor_of
from people.fresh import fresh_login_required
from people.permissions import is_operator, operator_required, reviewer_required


@require_safe
@never_cache
@reviewer_required
def drift(request: HttpRequest) -> HttpResponse:
    """Everything that differs now, the posture of the managers, and how old all of this is; asks again by itself."""
    subnet = the_subnet(request)
    return no_subnet(request) if subnet is None else _page(request, subnet)


@require_safe
@never_cache
@reviewer_required
def difference(request: HttpRequest, public_id: str) -> HttpResponse:
    """One difference in full: for a file what OpenSM makes of it, the text, and what can be adopted."""
    return _difference(request, _found(public_id))


@require_POST
@operator_required
@fresh_login_required
def put_back(request: HttpRequest) -> HttpResponse:
    """Place the current revision once more, on every manager host."""
    subnet = _subnet(request)
    try:
        rollout = putting_back.put_back(
            subnet=subnet, actor=actor_of(request.user), reason=request.POST.get("reason", ""),
            without=request.POST.getlist("without"),
        )  # fmt: skip
    except DeployError as refusal:
        return _page(request, subnet, status=409, refusal=str(refusal))
    return redirect("console:rollout", public_id=rollout.public_id)


@require_POST
@operator_required
def adopt(request: HttpRequest, public_id: str) -> HttpResponse:
    """Stage what a hand-edited file says other than the current revision."""
    row = _found(public_id)
    try:
        adopted = drift_adoption.adopt_drift(drift=row, actor=person(request), reason=request.POST.get("reason", ""))
    except PartitionsError as refusal:
        return _difference(request, row, status=409, refusal=str(refusal))
    messages.success(request, f"Staged, and nothing sent: {' '.join(adopted.staged)} Review the plan and roll it out.")
    if adopted.refused:
        messages.warning(request, f"Refused by policy: {' '.join(adopted.refused)}")
    if adopted.left:
        messages.warning(request, f"Not adopted, because it cannot be: {' '.join(adopted.left)}")
    return redirect("console:difference", public_id=public_id)


@require_POST
@operator_required
def look(request: HttpRequest) -> HttpResponse:
    """Have the next look taken at once."""
    drifting.ask_to_watch(subnet=_subnet(request), actor=actor_of(request.user))
    messages.info(request, "A look at files, managers and tables comes within seconds.")
    return redirect("console:drift")


@require_POST
@operator_required
@fresh_login_required
def restoring(request: HttpRequest) -> HttpResponse:
    """Let FabricUI mend a lost isolation by itself, or no longer."""
    subnet = _subnet(request)
    try:
        drifting.set_restoring(
            subnet=subnet, enabled=request.POST.get("enabled") == "yes", actor=actor_of(request.user),
            reason=request.POST.get("reason", ""),
        )  # fmt: skip
    except DeployError as refusal:
        return _page(request, subnet, status=409, refusal=str(refusal))
    return redirect("console:drift")


def _subnet(request: HttpRequest) -> Subnet:
    subnet = the_subnet(request)
    if subnet is None:
        raise Http404
    return subnet


def _found(public_id: str) -> Drift:
    told = Drift.objects.exclude(opened_at=None).select_related("subnet__fence__current")
    return get_object_or_404(told, public_id=public_id)


def _page(request: HttpRequest, subnet: Subnet, *, status: int = 200, refusal: str = "") -> HttpResponse:
    name = "console/drift.html#body" if request.htmx else "console/drift.html"  # type: ignore[attr-defined]
    fence = fence_of(subnet)
    context = {
        "subnet": subnet,
        "current": None if fence is None else fence.current,
        "rollout": holding_rollout(subnet),
        "blocked": obstacle(subnet),
        "refusal": refusal,
        "may_act": is_operator(request.user),
        "ticked": request.POST.getlist("without"),
        **drifts.overview(subnet, ticked=request.POST.getlist("without")),
    }
    return render(request, name, context, status=status)


def _difference(
    request: HttpRequest,
    row: Drift,
    *,
    status: int = 200,
    refusal: str = "",
) -> HttpResponse:
    context = {
        "row": drifts.shown(row),
        "subnet": row.subnet,
        "file": drifts.file_of(row),
        "refusal": refusal,
        "rollout": holding_rollout(row.subnet),
        "blocked": obstacle(row.subnet),
        "may_act": is_operator(request.user),
    }
    return render(request, "console/difference.html", context, status=status)
