"""The board: columns of servers, and the one address that every way of moving posts to."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console.columns import read_board
from console.frame import holding_rollout, the_subnet
from console.requests import person, wants_json
from console.views.home import no_subnet
from inventory.models import Port, Server, Subnet
from partitions import operations
from partitions.board import UNASSIGNED
from partitions.errors import PartitionsError
from partitions.models import Partition, StagedChange
from people.permissions import is_operator, operator_required, reviewer_required
from subnet.errors import SubnetError
from subnet.pkey import Membership


@require_safe
@never_cache
@reviewer_required
def board(request: HttpRequest) -> HttpResponse:
    """All servers in the partitions people want them in; the fragment is everything that changes by itself."""
    subnet = the_subnet(request)
    if subnet is None:
        return no_subnet(request)
    shown = {
        "subnet": subnet,
        "board": read_board(subnet=subnet, user=person(request)),
        "rollout": holding_rollout(subnet),
        "may_act": is_operator(request.user),
        "search": request.GET.get("q", ""),
    }
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "console/board.html#live", shown)
    return render(request, "console/board.html", shown)


@require_POST
@operator_required
def move(request: HttpRequest) -> HttpResponse:
    """Stage a move, or with `keep` an addition. 409 with the reason when it is refused; nothing was changed then."""
    subnet = the_subnet(request)
    server = get_object_or_404(
        Server.objects.visible_to(request.user), subnet=subnet, public_id=request.POST.get("server", "")
    )
    source = _partition(subnet, request.POST.get("source", ""))
    target = _partition(subnet, request.POST.get("target", ""))
    reason = request.POST.get("reason", "")
    try:
        if request.POST.get("keep") and target is not None:
            operations.stage_add(server=server, target=target, actor=person(request), reason=reason)
        else:
            operations.stage_move(server=server, source=source, target=target, actor=person(request), reason=reason)
    except (PartitionsError, SubnetError) as refusal:
        if wants_json(request):
            return JsonResponse({"sentence": str(refusal)}, status=409)
        messages.error(request, str(refusal))
        return _back(request, subnet)
    sentence = f"{_told(server, source, target)} Nothing has reached the fabric."
    if wants_json(request):
        return JsonResponse({"sentence": sentence})
    messages.success(request, sentence)
    return _back(request, subnet)


@require_POST
@operator_required
def membership(request: HttpRequest) -> HttpResponse:
    """Stage that a server is a full, or a limited, member of a partition it is in. 409 with the reason when refused."""
    subnet = the_subnet(request)
    server = get_object_or_404(
        Server.objects.visible_to(request.user), subnet=subnet, public_id=request.POST.get("server", "")
    )
    partition = get_object_or_404(Partition, subnet=subnet, public_id=request.POST.get("partition", ""))
    wanted = request.POST.get("membership", "")
    if wanted not in Membership:
        raise Http404
    try:
        operations.stage_membership(
            server=server, partition=partition, membership=Membership(wanted), actor=person(request)
        )
    except (PartitionsError, SubnetError) as refusal:
        if wants_json(request):
            return JsonResponse({"sentence": str(refusal)}, status=409)
        messages.error(request, str(refusal))
    else:
        sentence = f"{server} is staged as a {wanted} member of {partition.name}. Nothing has reached the fabric."
        if wants_json(request):
            return JsonResponse({"sentence": sentence})
        messages.success(request, sentence)
    if request.POST.get("back") == "partition":
        return redirect("console:partition", public_id=partition.public_id)
    return redirect("console:server", public_id=server.public_id)


@require_POST
@operator_required
def discard(request: HttpRequest) -> HttpResponse:
    """Discard my own staged changes, or everyone's of one server."""
    staged = StagedChange.objects.filter(partition__subnet=the_subnet(request))
    if request.POST.get("server"):
        staged = staged.filter(port__hca__server__public_id=request.POST["server"])
    else:
        staged = staged.filter(by=person(request))
    try:
        count = operations.discard(changes=tuple(staged), actor=person(request))
    except PartitionsError as refusal:
        messages.error(request, str(refusal))
        return redirect("console:board")
    if count:
        messages.success(request, "The staged changes are discarded. The fabric was never touched by them.")
    else:
        messages.info(request, "There was nothing to discard.")
    return redirect("console:board")


def _back(request: HttpRequest, subnet: Subnet | None) -> HttpResponse:
    """To the partition's page that the form came from, or to the board."""
    key = request.POST.get("back", "")
    if key and Partition.objects.filter(subnet=subnet, public_id=key).exists():
        return redirect("console:partition", public_id=key)
    return redirect("console:board")


def _told(server: Server, source: Partition | None, target: Partition | None) -> str:
    """What was staged, with what a person may not expect of it."""
    if target is None:
        return f"{server} is staged to Unassigned."
    if target.tenant is None and source is not None and source.tenant is not None:
        return f"{server} is staged to {target.name} as a limited member, and stays in {source.name}."
    joined = Partition.objects.filter(memberships__port__hca__server=server).select_related("tenant")
    bound = {row.tenant for row in joined}
    bound |= {port.former_tenant for port in Port.objects.filter(hca__server=server).select_related("former_tenant")}
    others = sorted(str(tenant) for tenant in bound - {None, target.tenant})
    if target.tenant is not None and others:
        return (
            f"{server} is staged to {target.name}: it leaves {others[0]} first, and joins once that is proven and the "
            "server is marked clean."
        )
    return f"{server} is staged to {target.name}."


def _partition(subnet: Subnet | None, key: str) -> Partition | None:
    """The partition that a form names; None is Unassigned. A form that names neither is not ours: 404."""
    if key == UNASSIGNED:
        return None
    if not key:
        raise Http404
    return get_object_or_404(Partition.objects.select_related("tenant"), subnet=subnet, public_id=key)
