"""HCA replacement (RMA): pair the ports that went with those that came, and let the old ones go on under new GUIDs."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from console.requests import person
from inventory.models import Port, Server
from partitions import operations, replacement
from partitions.errors import PartitionsError
from people.permissions import is_operator, operator_required, reviewer_required


@require_http_methods(["GET", "HEAD", "POST"])
@reviewer_required
def replace(request: HttpRequest, public_id: str) -> HttpResponse:
    """The pairs as they most likely are; POST makes them so."""
    server = get_object_or_404(Server.objects.visible_to(request.user).select_related("subnet"), public_id=public_id)
    return _replace(request, server) if request.method == "POST" else _page(request, server)


@require_POST
@operator_required
def undo(request: HttpRequest, public_id: str) -> HttpResponse:
    """Take the replacements back that no rollout has carried yet."""
    server = get_object_or_404(Server.objects.visible_to(request.user).select_related("subnet"), public_id=public_id)
    try:
        count = operations.undo_replacement(server=server, actor=person(request))
    except PartitionsError as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, f"{count} port{' has its' if count == 1 else 's have their'} old GUID again.")
    return redirect("console:server", public_id=public_id)


@operator_required
def _replace(request: HttpRequest, server: Server) -> HttpResponse:
    ports = {str(port.guid): port for port in Port.objects.of_server(server)}
    pairs = []
    for name in request.POST:
        chosen = request.POST.get(name, "")
        if name.startswith("new-") and chosen:
            old, new = ports.get(name.removeprefix("new-")), ports.get(str(chosen))
            if old is None or new is None:
                return _page(request, server, status=409, refusal="The ports have changed. Look at them again.")
            pairs.append((old, new))
    try:
        operations.replace_hca(server=server, pairs=pairs, actor=person(request), reason=request.POST.get("reason", ""))
    except PartitionsError as refusal:
        return _page(request, server, status=409, refusal=str(refusal))
    messages.success(
        request,
        f"{len(pairs)} port{' goes' if len(pairs) == 1 else 's go'} on under another GUID. Roll the plan out: until "
        "then the fabric gives the P_Keys to the old card.",
    )
    return redirect("console:server", public_id=server.public_id)


def _page(request: HttpRequest, server: Server, *, status: int = 200, refusal: str = "") -> HttpResponse:
    gone, new, pairs = replacement.proposed_pairs(server)
    likely = {pair.old.pk: pair.new.pk for pair in pairs}
    shown = {
        "server": server,
        "rows": [(port, likely.get(port.pk)) for port in gone],
        "new": new,
        "refusal": refusal,
        "may_act": is_operator(request.user),
    }
    return render(request, "console/replacement.html", shown, status=status)
