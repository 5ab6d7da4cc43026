"""One thing's whole story: a port, a P_Key, and a rollout from the drag to the proof."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from audit.values import Subject
from console import history
from console.chain_status import chain_status
from console.frame import the_subnet
from console.proof import story
from console.requests import filter_text
from console.review import moment, note_read
from console.views.home import no_subnet
from deploy.models import Rollout, TableChanges
from deploy.operations import subject_of
from inventory.models import Port
from partitions.models import Partition
from people.permissions import reviewer_required
from subnet.errors import SubnetError
from subnet.guid import GUID
from subnet.pkey import PKey


@require_safe
@reviewer_required
def port(request: HttpRequest, guid: str) -> HttpResponse:
    """Everything that ever touched a port; a port that nobody knows is not here."""
    subnet = the_subnet(request)
    if subnet is None:
        return no_subnet(request)
    try:
        shown = GUID(guid)
    except SubnetError as error:
        raise Http404 from error
    row = Port.objects.filter(guid=shown).select_related("hca__server").first()
    until = moment(filter_text(request, "until"))
    found = history.of_port(subnet, shown, until=until)
    if row is None and not found.entries and until is None:
        raise Http404
    note_read(request, Subject(kind="port", key=str(shown), label=str(shown)), "its history")
    server = None if row is None else row.server
    return render(
        request,
        "console/history.html",
        {
            "title": f"Port {shown}",
            "server": server,
            "lead": f"A port of {server}." if server else "No server has reported this port.",
            "history": found,
            "until": until,
            "chain": chain_status(request),
        },
    )


@require_safe
@reviewer_required
def pkey(request: HttpRequest, text: str) -> HttpResponse:
    """Everything that ever touched a P_Key, whichever partitions had it."""
    subnet = the_subnet(request)
    if subnet is None:
        return no_subnet(request)
    try:
        shown = PKey.for_partition(PKey.parse(text))
    except SubnetError as error:
        raise Http404 from error
    rows = list(Partition.objects.filter(subnet=subnet, pkey=int(shown)).order_by("created_at"))
    until = moment(filter_text(request, "until"))
    found = history.of_pkey(subnet, shown, until=until)
    if not rows and not found.entries and until is None:
        raise Http404
    note_read(request, Subject(kind="pkey", key=str(shown), label=str(shown)), "its history")
    names = "; ".join(
        f"{row.name} (retired {row.retired_at:%Y-%m-%d %H:%M} UTC)" if row.retired_at else row.name for row in rows
    )
    return render(
        request,
        "console/history.html",
        {
            "title": f"P_Key {shown}",
            "lead": f"The P_Key of {names}." if names else "No partition of FabricUI ever had this P_Key.",
            "partitions": rows,
            "history": found,
            "until": until,
            "chain": chain_status(request),
        },
    )


@require_safe
@reviewer_required
def rollout(request: HttpRequest, public_id: str) -> HttpResponse:
    """One rollout from the drag to the proof, each part with its event in the chain."""
    shown = get_object_or_404(
        Rollout.objects.select_related("revision__parent", "parent", "before", "after", "subnet"), public_id=public_id
    )
    note_read(request, subject_of(shown), "from drag to proof", rollout_key=shown.public_id)
    told = story(shown)
    looks = TableChanges.objects.filter(observation=shown.after_id).exists() if shown.after_id else False
    return render(
        request,
        "console/rollout_proof.html",
        {"rollout": shown, "story": told, "has_tables": looks, "chain": chain_status(request)},
    )
