"""The plan: what a selection of staged changes would do, and the button that rolls it out."""

from datetime import datetime

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from console.confirming import CHOICES, confirm_within
from console.frame import holding_rollout, obstacle, the_subnet
from console.looks import is_fresh
from console.plan_changes import first_violations, hazard_notes, other_ports, partition_rows
from console.plans import actions_here, second_halves, server_rows
from console.requests import person
from console.standbys import standbys
from console.views.home import no_subnet
from deploy import operations as deploy
from deploy import queries
from deploy.errors import DeployError
from deploy.models import Observation
from deploy.qualification import why_not
from inventory.models import Subnet
from partitions import operations
from partitions.errors import InvalidSelection, PartitionsError, StalePlan
from partitions.selection import Selection
from people.actor import actor_of
from people.fresh import fresh_login_required
from people.permissions import is_operator, operator_required, reviewer_required
from subnet.errors import SubnetError, UnsafePlan
from subnet.moves import needs_every_standby


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@reviewer_required
def plan(request: HttpRequest) -> HttpResponse:
    """Draw the plan on a fresh look at the fabric, asking for one when the newest is too old; POST rolls it out."""
    subnet = the_subnet(request)
    if subnet is None:
        return no_subnet(request)
    try:
        selection = Selection.parse(request.POST.get("selection") or request.GET.get("selection", ""))
    except InvalidSelection as error:
        raise Http404(str(error)) from error
    if request.method == "POST":
        return _roll_out(request, subnet, selection)
    if request.htmx and "seen" in request.GET:  # type: ignore[attr-defined]
        return _news(request, subnet, selection)
    return _page(request, subnet, selection)


@require_POST
@operator_required
def look(request: HttpRequest) -> HttpResponse:
    """Ask for a new look at the managers and the fabric, then draw the plan on it."""
    subnet = the_subnet(request)
    if subnet is None:
        raise Http404
    deploy.request_observation(subnet=subnet, why="plan", actor=actor_of(request.user))
    return redirect(f"{reverse('console:plan')}?selection={request.POST.get('selection', '')}")


@operator_required
@fresh_login_required
def _roll_out(request: HttpRequest, subnet: Subnet, selection: Selection) -> HttpResponse:
    """Start the rollout of exactly what the person looked at."""
    observation = Observation.objects.filter(subnet=subnet, public_id=request.POST.get("observation", "")).first()
    if observation is None:
        raise Http404
    try:
        rollout = operations.roll_out(
            subnet=subnet,
            selection=selection,
            actor=person(request),
            plan_digest=request.POST.get("plan_digest", ""),
            observation=observation,
            reason=request.POST.get("reason", ""),
            looked_at=_moment(request.POST.get("looked_at", "")),
            confirm_within=confirm_within(request.POST.get("confirm_within", "")),
            without=request.POST.getlist("without"),
        )
    except StalePlan as stale:
        return _page(request, subnet, selection, status=409, stale=str(stale))
    except UnsafePlan as unsafe:
        return _page(request, subnet, selection, status=422, refusal=str(unsafe), reason_missing=True)
    except (PartitionsError, DeployError, SubnetError) as refusal:
        return _page(request, subnet, selection, status=409, refusal=str(refusal))
    stood_on = request.POST.get("parent", "")
    if stood_on.isdecimal() and int(stood_on) != rollout.parent.number:
        messages.info(
            request,
            f"You looked at a plan on revision {stood_on}; meanwhile {rollout.parent} became current. It touches none "
            "of these ports, so what you saw is what goes out, on top of it.",
        )
    return redirect("console:rollout", public_id=rollout.public_id)


def _news(request: HttpRequest, subnet: Subnet, selection: Selection) -> HttpResponse:
    """Whether the plan that an open page shows is still what its button would roll out.

    The page itself is left as it is, because somebody reads it and ticks; nothing is asked of the fabric for this.
    """
    observation = Observation.objects.filter(subnet=subnet, public_id=request.GET.get("observation", "")).first()
    try:
        drawn = operations.draw_up_plan(
            subnet=subnet, selection=selection, user=person(request), observation=observation
        )
    except (PartitionsError, DeployError, SubnetError):
        is_other = True
    else:
        is_other = drawn.digest != request.GET["seen"]
    return render(request, "console/plan.html#news", {"is_other": is_other, "selection": selection})


def _page(
    request: HttpRequest,
    subnet: Subnet,
    selection: Selection,
    *,
    status: int = 200,
    stale: str = "",
    refusal: str = "",
    reason_missing: bool = False,
) -> HttpResponse:
    may_act = is_operator(request.user)
    pending = _pending(subnet, may_act=may_act)
    newest = queries.newest_request(subnet)
    failed = newest if newest is not None and newest.state == Observation.State.FAILED else None
    shown = {
        "subnet": subnet,
        "selection": selection,
        "pending": pending,
        "failed": failed,
        "may_act": may_act,
        "stale": stale,
        "refusal": refusal,
        "reason_missing": reason_missing,
        "reason": request.POST.get("reason", ""),
        "confirm_choices": CHOICES,
        "confirm_within": request.POST.get("confirm_within", ""),
        "ticked": request.POST.getlist("without"),
        "rollout": holding_rollout(subnet),
        "blocked": obstacle(subnet) or _unqualified(subnet),
        "fresh_s": settings.OBSERVATION_FRESH_S,
    }
    if pending is None:
        try:
            drawn = operations.draw_up_plan(subnet=subnet, selection=selection, user=person(request))
        except (PartitionsError, DeployError, SubnetError) as error:
            shown["error"] = str(error)
        else:
            fresh = drawn.observation is not None and is_fresh(drawn.observation, subnet)
            violations, more_violations = first_violations(drawn.violations)
            shown |= {
                "drawn": drawn,
                "violations": violations,
                "more_violations": more_violations,
                "hazards": hazard_notes(drawn),
                "partitions": partition_rows(drawn),
                "others": other_ports(drawn),
                "rows": server_rows(drawn),
                "halves": second_halves(drawn),
                "is_fresh": fresh,
                "here": actions_here(drawn),
                "looked_at": timezone.now().isoformat(),
                "standbys": standbys(
                    [] if drawn.observation is None else drawn.observation.managers, ticked=shown["ticked"]
                ),
                "every_standby": needs_every_standby(drawn.current, drawn.table),
            }
    name = "console/plan.html#body" if request.htmx else "console/plan.html"  # type: ignore[attr-defined]
    return render(request, name, shown, status=status)


def _unqualified(subnet: Subnet) -> str:
    """Why no rollout may start although the mode is write: its qualification holds no longer."""
    return why_not(subnet) if subnet.mode == Subnet.Mode.WRITE else ""


def _moment(text: str) -> datetime | None:
    """The time that the form carries, for the sentence about what has changed since; no use for anything else."""
    try:
        at = parse_datetime(text[:40])
    except ValueError:
        return None
    return at if at is not None and timezone.is_aware(at) else None


def _pending(subnet: Subnet, *, may_act: bool) -> Observation | None:
    """The look that the plan waits for; an operator's visit asks for one when the newest is too old.

    A look that has just failed is not asked for again by itself: the page says why, with a button.
    """
    pending = queries.pending_observation(subnet)
    if pending is not None or not may_act or queries.current_revision(subnet) is None:
        return pending
    latest = queries.latest_observation(subnet)
    if latest is not None and is_fresh(latest, subnet):
        return None
    newest = queries.newest_request(subnet)
    if newest is not None and newest.state == Observation.State.FAILED:
        return None
    return deploy.request_observation(subnet=subnet, why="plan")
