"""Adoption: take over a running fabric step by step, and afterwards close its Default partition."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console.adoptions import NoSuchTenant, chosen_owners, shown
from console.frame import holding_rollout, obstacle
from console.requests import person
from deploy import queries
from deploy.errors import DeployError
from deploy.models import Observation
from inventory.models import Server, Subnet
from partitions import adoption, closing
from partitions.errors import PartitionsError
from people.fresh import fresh_login_required
from people.models import Tenant
from people.permissions import is_operator, operator_required, reviewer_required
from subnet.errors import SubnetError

REFUSALS = (PartitionsError, DeployError, SubnetError)


@require_safe
@never_cache
@reviewer_required
def page(request: HttpRequest, public_id: str) -> HttpResponse:
    """Where the adoption of a subnet stands; the fragment asks again while the fabric is read."""
    return _page(request, _subnet(public_id))


@require_POST
@operator_required
def look(request: HttpRequest, public_id: str) -> HttpResponse:
    """Have all files and all tables read now."""
    subnet = _subnet(public_id)
    adoption.look_for_adoption(subnet=subnet, actor=person(request))
    return redirect("console:adoption", public_id=public_id)


@require_POST
@operator_required
def adopt(request: HttpRequest, public_id: str) -> HttpResponse:
    """Make what was looked at the first revision; placing it in our words is the next step."""
    subnet = _subnet(public_id)
    observation = _observation(request, subnet)
    reason = request.POST.get("reason", "")
    try:
        owners = chosen_owners(request.POST)
        adoption.adopt(
            observation=observation, digest=request.POST.get("digest", ""), actor=person(request), owners=owners,
            reason=reason,
        )  # fmt: skip
    except NoSuchTenant as error:
        raise Http404 from error
    except REFUSALS as refusal:
        return _page(request, subnet, status=409, refusal=str(refusal))
    return redirect("console:adoption", public_id=public_id)


@require_POST
@operator_required
@fresh_login_required
def place(request: HttpRequest, public_id: str) -> HttpResponse:
    """Start the rollout of the adopted table."""
    subnet = _subnet(public_id)
    try:
        rollout = adoption.place(
            subnet=subnet, observation=_observation(request, subnet), actor=person(request),
            reason=request.POST.get("reason", ""),
        )  # fmt: skip
    except REFUSALS as refusal:
        return _page(request, subnet, status=409, refusal=str(refusal))
    return redirect("console:rollout", public_id=rollout.public_id)


@require_POST
@operator_required
def close_default(request: HttpRequest, public_id: str) -> HttpResponse:
    """Stage Default closed for the canary servers, or for everybody, or take the staged change back."""
    subnet = _subnet(public_id)
    servers = list(Server.objects.filter(subnet=subnet, public_id__in=request.POST.getlist("server")))
    how, reason = request.POST.get("how", ""), request.POST.get("reason", "")
    try:
        if how == "canary":
            closing.stage_canaries(subnet=subnet, servers=servers, actor=person(request), reason=reason)
        elif how == "back":
            closing.stage_canaries_back(subnet=subnet, servers=servers, actor=person(request), reason=reason)
        elif how == "everybody":
            closing.stage_closed(subnet=subnet, stay_full=servers, actor=person(request), reason=reason)
        elif how == "discard":
            closing.discard_default(subnet=subnet, actor=person(request))
        else:
            raise Http404
    except REFUSALS as refusal:
        return _page(request, subnet, status=409, refusal=str(refusal))
    return redirect("console:adoption", public_id=public_id)


def _subnet(public_id: str) -> Subnet:
    return get_object_or_404(Subnet.objects.select_related("fence__current", "fence__rollout"), public_id=public_id)


def _observation(request: HttpRequest, subnet: Subnet) -> Observation:
    return get_object_or_404(Observation, subnet=subnet, public_id=request.POST.get("observation", ""))


def _page(request: HttpRequest, subnet: Subnet, *, status: int = 200, refusal: str = "") -> HttpResponse:
    context: dict[str, Any] = {
        "subnet": subnet,
        "refusal": refusal,
        "may_act": is_operator(request.user),
        "rollout": holding_rollout(subnet),
        "blocked": obstacle(subnet),
        "pending": queries.pending_observation(subnet),
        "tenants": Tenant.objects.order_by("name"),
        "now": timezone.now(),
        **shown(subnet),
    }
    name = "console/adoption.html#body" if request.htmx else "console/adoption.html"  # type: ignore[attr-defined]
    return render(request, name, context, status=status)
