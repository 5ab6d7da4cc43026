"""The overview, and what all pages of one scope need: the scope itself, its hosts, the profile that is looked at."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import Count, Max, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from partitions.models import Partition
from people.actor import actor_of
from people.models import Tenant
from people.permissions import is_operator, operator_required, reviewer_required
from probes import operations
from probes.errors import ProbesError
from probes.models import Incident, ProbeHost, ProbePair, ProbeScope


@dataclass(frozen=True, slots=True)
class ScopeLine:
    """One line of the overview."""

    scope: ProbeScope
    good: int
    worse: int
    bad: int
    newest_at: object
    incidents: int


@require_safe
@reviewer_required
def overview(request: HttpRequest) -> HttpResponse:
    """All partitions and probe sets that are probed, those that could be, consents, and the hosts."""
    scopes = list(ProbeScope.objects.visible_to(request.user).named().order_by("partition__name", "probe_set__name"))
    counted: dict[int, dict[str, Any]] = {
        row["scope"]: dict(row)
        for row in ProbePair.objects.filter(scope__in=scopes)
        .values("scope")
        .annotate(
            good=Count("pk", filter=Q(verdict="GOOD")),
            worse=Count("pk", filter=Q(verdict="WARN")),
            bad=Count("pk", filter=Q(verdict="BAD")),
            newest_at=Max("newest_at"),
        )
    }
    open_incidents = dict(
        Incident.objects.filter(acknowledged_at=None)
        .values_list("pair__scope")
        .annotate(count=Count("pk"))
        .values_list("pair__scope", "count")
    )
    nothing: dict[str, Any] = {"good": 0, "worse": 0, "bad": 0, "newest_at": None}
    lines = []
    for scope in scopes:
        row = counted.get(scope.pk, nothing)
        lines.append(
            ScopeLine(scope, row["good"], row["worse"], row["bad"], row["newest_at"], open_incidents.get(scope.pk, 0))
        )
    return render(
        request,
        "probes/overview.html",
        {
            "lines": lines,
            "incidents": sum(open_incidents.values()),
            "others": Partition.objects.in_use().filter(probe_scope=None).select_related("tenant").order_by("name"),
            "tenants": Tenant.objects.select_related("probe_consent").order_by("name"),
            "hosts": ProbeHost.objects.visible_to(request.user).select_related("server").order_by("server__hostname"),
            "may_act": is_operator(request.user),
        },
    )


@require_POST
@operator_required
def begin(request: HttpRequest, public_id: str) -> HttpResponse:
    """Give a partition a scope and lead to its settings; nothing is switched on yet."""
    partition = get_object_or_404(Partition.objects.in_use(), public_id=public_id)
    scope = operations.scope_of_partition(partition=partition, actor=actor_of(request.user))
    return redirect("probes:settings", scope.public_id)


@require_POST
@operator_required
def consent(request: HttpRequest, public_id: str) -> HttpResponse:
    """Note that a tenant consents, or no longer does."""
    tenant = get_object_or_404(Tenant, public_id=public_id)
    is_given = request.POST.get("consents") == "1"
    operations.set_consent(
        tenant=tenant, is_given=is_given, actor=actor_of(request.user), reason=request.POST.get("reason", "")[:500]
    )
    verb = "consents" if is_given else "does not consent any more"
    messages.success(request, f"Noted: {tenant} {verb} to probes on its servers.")
    return redirect("probes:overview")


@require_POST
@operator_required
def now(request: HttpRequest, public_id: str) -> HttpResponse:
    """Probe a pair, or everybody once, out of turn."""
    scope = scope_or_404(request, public_id)
    ends = {}
    for end in ("sender", "target"):
        if request.POST.get(end):
            ends[end] = get_object_or_404(ProbeHost.objects.visible_to(request.user), public_id=request.POST[end])
    try:
        runs = operations.run_now(
            scope=scope, sender=ends.get("sender"), target=ends.get("target"), actor=actor_of(request.user)
        )
    except ProbesError as error:
        messages.error(request, str(error))
    else:
        count = len(runs)
        messages.success(request, f"{count} {'run is' if count == 1 else 'runs are'} queued and will begin at once.")
    if len(ends) == 2:
        return redirect("probes:series", scope.public_id, ends["sender"].public_id, ends["target"].public_id)
    return redirect("probes:scope", scope.public_id)


def scope_or_404(request: HttpRequest, public_id: str) -> ProbeScope:
    """The scope if the person may see it."""
    return get_object_or_404(ProbeScope.objects.visible_to(request.user).named(), public_id=public_id)


def profile_asked(request: HttpRequest, scope: ProbeScope) -> str:
    """The profile that the address names if the scope has it, else its first."""
    asked = request.GET.get("profile", "")
    profiles = list(scope.profiles)
    return asked if asked in profiles else profiles[0] if profiles else "link"


def kind_asked(request: HttpRequest, scope: ProbeScope) -> str:
    """TCP when the address says so, else RDMA; they are never shown together."""
    return "TCP" if request.GET.get("kind") == "TCP" else "RDMA"
