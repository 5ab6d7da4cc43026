"""The queue of incidents; only a person closes one."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from people.actor import actor_of
from people.permissions import is_operator, operator_required, reviewer_required
from probes import lamps, operations
from probes.errors import ProbesError
from probes.models import Incident, IsolationCheck, ProbeScope

PAGE = 50


@require_safe
@reviewer_required
def incidents(request: HttpRequest) -> HttpResponse:
    """The open ones first; `?show=all` also shows the closed ones."""
    show_all = request.GET.get("show") == "all"
    scopes = ProbeScope.objects.visible_to(request.user)
    found = (
        Incident.objects.filter(pair__scope__in=scopes)
        .select_related(
            "pair__scope__partition", "pair__scope__probe_set", "pair__sender__server", "pair__target__server", "run"
        )
        .order_by("acknowledged_at", "-opened_at")
    )
    page = Paginator(found if show_all else found.filter(acknowledged_at=None), PAGE).get_page(request.GET.get("page"))
    rows = [
        (
            item,
            lamps.incident(
                is_acknowledged=item.acknowledged_at is not None, has_recovered=item.recovered_at is not None
            ),
        )
        for item in page
    ]
    leaks = Incident.objects.filter(leak__in=IsolationCheck.objects.visible_to(request.user)).select_related(
        "leak__sender", "leak__target", "leak__rollout"
    )
    leaks = leaks.order_by("acknowledged_at", "-opened_at")
    shown_leaks = [
        (
            item,
            lamps.leak(is_acknowledged=item.acknowledged_at is not None, has_recovered=item.recovered_at is not None),
        )
        for item in (leaks if show_all else leaks.filter(acknowledged_at=None))[:PAGE]
    ]
    shown = {
        "page": page,
        "rows": rows,
        "leaks_shown": shown_leaks,
        "show_all": show_all,
        "may_act": is_operator(request.user),
    }
    return render(request, "probes/incidents.html", shown)


@require_POST
@operator_required
def acknowledge(request: HttpRequest, public_id: str) -> HttpResponse:
    """Close one with a note."""
    incident = get_object_or_404(Incident, public_id=public_id)
    try:
        operations.acknowledge_incident(
            incident=incident, actor=actor_of(request.user), note=request.POST.get("note", "")
        )
    except ProbesError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "Acknowledged. A new one opens if the pair is bad again.")
    return redirect("probes:incidents")
