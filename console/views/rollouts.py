"""Rollouts: the list, and one rollout live."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console.accepting import acceptable, left_out
from console.confirming import to_confirm
from console.evidence import closing, evidence
from console.frame import the_subnet
from console.states import meaning
from console.views.home import no_subnet
from deploy import operations, putting_back, queries
from deploy.errors import DeployError
from deploy.models import Rollout
from people.actor import actor_of
from people.permissions import is_operator, operator_required, reviewer_required

PAGE = 50
TRACK = ("QUEUED", "STAGING", "PLACING", "RELOADING", "READING_BACK")


@require_safe
@reviewer_required
def rollouts(request: HttpRequest) -> HttpResponse:
    """All rollouts, the newest first."""
    subnet = the_subnet(request)
    if subnet is None:
        return no_subnet(request)
    page = Paginator(queries.history(subnet), PAGE).get_page(request.GET.get("page"))
    name = "console/rollouts.html#body" if request.htmx else "console/rollouts.html"  # type: ignore[attr-defined]
    return render(request, name, {"page": page, "may_act": is_operator(request.user)})


@require_safe
@never_cache
@reviewer_required
def rollout(request: HttpRequest, public_id: str) -> HttpResponse:
    """One rollout: where it is, its story, its hosts and its evidence. The fragment asks again while it goes on."""
    shown = _found(public_id)
    found = evidence(shown)
    outcomes = list(shown.outcomes.select_related("host").order_by("host__name"))
    name = "console/rollout.html#body" if request.htmx else "console/rollout.html"  # type: ignore[attr-defined]
    return render(
        request,
        name,
        {
            "rollout": shown,
            "steps": shown.steps.order_by("at", "pk"),
            "outcomes": outcomes,
            "track": _track(shown),
            "evidence": found,
            "closing": closing(shown, found),
            "meaning": meaning(
                shown.state,
                revision=shown.revision.number,
                parent=shown.parent.number,
                is_released=shown.released_at is not None,
                awaits=to_confirm(shown, now=timezone.now()) is not None,
                placed=sum(outcome.placed_at is not None for outcome in outcomes),
            ),
            "may_act": is_operator(request.user),
            "acceptable": acceptable(shown),
            "left_out": left_out(shown),
            "is_put_back": putting_back.is_put_back(shown),
            "is_running": Rollout.State(shown.state).is_running,
            "is_live": _is_live(shown),
            "to_confirm": to_confirm(shown, now=timezone.now()),
        },
    )


@require_POST
@operator_required
def cancel(request: HttpRequest, public_id: str) -> HttpResponse:
    """End a rollout that has not begun."""
    return _act(request, public_id, operations.cancel, reason=request.POST.get("reason", ""))


@require_POST
@operator_required
def confirm(request: HttpRequest, public_id: str) -> HttpResponse:
    """Keep what is taken back otherwise."""
    return _act(request, public_id, operations.confirm, reason=request.POST.get("reason", ""))


@require_POST
@operator_required
def accept(request: HttpRequest, public_id: str) -> HttpResponse:
    """Accept what moved beside an unproven rollout, if it is what the person looked at."""
    words = {name: request.POST.get(name, "") for name in ("reason", "seen")}
    return _act(request, public_id, operations.accept, **words)


@require_POST
@operator_required
def check_again(request: HttpRequest, public_id: str) -> HttpResponse:
    """Look at an unproven or degraded rollout now."""
    return _act(request, public_id, operations.check_again)


@require_POST
@operator_required
def release(request: HttpRequest, public_id: str) -> HttpResponse:
    """Let go of the subnet after a person has mended what a stuck rollout asked for."""
    return _act(request, public_id, operations.release_stuck, reason=request.POST.get("reason", ""))


def _found(public_id: str) -> Rollout:
    rollouts = Rollout.objects.select_related("revision", "parent", "before", "after", "subnet")
    return get_object_or_404(rollouts, public_id=public_id)


def _act(request: HttpRequest, public_id: str, act: Callable[..., Rollout], **fields: Any) -> HttpResponse:
    try:
        act(rollout=_found(public_id), actor=actor_of(request.user), **fields)
    except DeployError as refusal:
        messages.error(request, str(refusal))
    return redirect("console:rollout", public_id=public_id)


def _is_live(shown: Rollout) -> bool:
    """Whether the page should ask again: a worker is on it, it is looked at again by itself, or it counts down."""
    state = Rollout.State(shown.state)
    return state.is_running or state.is_waiting or to_confirm(shown, now=timezone.now()) is not None


def _track(shown: Rollout) -> list[dict[str, str]]:
    """The five steps of the straight line, each done, now, failed or ahead, and the end."""
    reached = {step.state for step in shown.steps.all()} | {shown.state}
    is_running = Rollout.State(shown.state).is_running
    last = max((TRACK.index(state) for state in reached if state in TRACK), default=0)
    track = []
    for index, state in enumerate(TRACK):
        if index < last or (index == last and not is_running and shown.state in ("PROVEN", "DEGRADED")):
            at = "done"
        elif index == last:
            at = "now" if is_running and shown.state == state else "stopped"
        else:
            at = "ahead"
        track.append({"state": state, "at": at, "word": Rollout.State(state).label})
    return track
