"""Conflicts: the queue of ports that two servers claim, with both sides' evidence, and the decisions about them."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from console import inventory_rows
from console.frame import the_subnet
from console.requests import person
from console.views.home import no_subnet
from inventory import operations
from inventory.errors import InventoryError
from inventory.models import Port, PortConflict
from partitions import operations as partitions
from partitions.errors import PartitionsError
from people.actor import actor_of
from people.permissions import is_operator, operator_required, reviewer_required

PAGE = 20


@require_safe
@reviewer_required
def conflicts(request: HttpRequest) -> HttpResponse:
    """The open conflicts, the oldest first, and those that were decided lately."""
    subnet = the_subnet(request)
    if subnet is None:
        return no_subnet(request)
    waiting = inventory_rows.open_conflicts(subnet).select_related("port__hca__server", "claimed_by")
    decided = PortConflict.objects.filter(closed_at__isnull=False, claimed_by__subnet=subnet)
    return render(
        request,
        "console/conflicts.html",
        {
            "page": Paginator(waiting, PAGE).get_page(request.GET.get("page")),
            "decided": decided.select_related("port__hca__server", "claimed_by").order_by("-closed_at")[:PAGE],
            "totals": inventory_rows.totals(subnet),
            "may_act": is_operator(request.user),
        },
    )


@require_POST
@operator_required
def decide(request: HttpRequest, pk: int, decision: str) -> HttpResponse:
    """Decide a conflict: `reject`, `moved`, `cloned`; or `reconsider` one whose claim was rejected."""
    rows = PortConflict.objects.select_related("port__hca__server", "claimed_by__subnet")
    conflict = get_object_or_404(rows, pk=pk, port__in=Port.objects.visible_to(request.user))
    reason, actor, claimant = request.POST.get("reason", ""), actor_of(request.user), conflict.claimed_by
    try:
        if decision == "reject":
            operations.reject_claim(conflict=conflict, actor=actor, reason=reason)
            said = f"The claim of {claimant} to port {conflict.port} is rejected. Made again, it opens no conflict."
        elif decision == "moved":
            ports = partitions.move_card(conflict=conflict, actor=person(request), reason=reason)
            said = f"The card with {len(ports)} port{'' if len(ports) == 1 else 's'} belongs to {claimant} now."
        elif decision == "cloned":
            count = operations.declare_clone(conflict=conflict, actor=actor, reason=reason)
            said = f"{claimant} is a clone: {count} claim{'' if count == 1 else 's'} ended, and it must enrol anew."
        elif decision == "reconsider":
            operations.reconsider_claim(conflict=conflict, actor=actor, reason=reason)
            said = f"When {claimant} reports port {conflict.port} again, it is a conflict again."
        else:
            raise Http404
    except (InventoryError, PartitionsError) as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, said)
    return redirect("console:conflicts")
