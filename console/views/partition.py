"""One partition: its members server by server, and what may be done with it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from console.board_facts import board_subnet, fabric
from console.four_lamps import Fabric, together
from console.frame import the_subnet
from console.members import member_rows
from console.requests import person, told_as_json, wants_json
from inventory.models import Server
from partitions import operations
from partitions.errors import PartitionsError
from partitions.models import Partition
from people.permissions import is_operator, operator_required, reviewer_required
from subnet.errors import SubnetError
from subnet.flags import Flags
from subnet.pkey import PKey


@require_safe
@reviewer_required
def partition(request: HttpRequest, public_id: str) -> HttpResponse:
    """Who is in it, how, and what is staged; its P_Key, its flags and its trail."""
    subnet, now = board_subnet(request), timezone.now()
    shown = _found(request, public_id)
    rows = member_rows(shown)
    known = Fabric() if subnet is None else fabric(subnet, now=now)
    lit = [(row, row.four(known, shown.pk, now)) for row in rows]
    return render(
        request,
        "console/partition.html",
        {
            "partition": shown,
            "pkey": str(PKey(shown.pkey)),
            "rows": lit,
            "four": together(four for _, four in lit),
            "servers": sum(1 for row in rows if row.key and row.now),
            "ports": sum(1 for row in rows for port in row.ports if port.now),
            "is_empty": not any(row.now for row in rows),
            "is_emptying": any(row.now for row in rows) and not any(row.wanted for row in rows),
            "flags": Flags.from_json(shown.flags).written(),
            "keywords": [f"{keyword}={membership}" for keyword, membership in shown.keywords],
            "others": _others(shown, {row.key for row in rows}),
            "may_act": is_operator(request.user) and shown.retired_at is None,
        },
    )


@require_POST
@operator_required
def rename(request: HttpRequest, public_id: str) -> HttpResponse:
    """Give the partition another name; nothing is staged."""
    shown = _found(request, public_id)
    try:
        named = operations.rename_partition(
            partition=shown, name=request.POST.get("name", "").strip(), actor=person(request)
        )
    except (PartitionsError, SubnetError) as refusal:
        return _answer(request, public_id, str(refusal), is_refused=True)
    return _answer(
        request, public_id, f"{shown.name} is called {named.name} now. The next rollout writes it to the file."
    )


@require_POST
@operator_required
def retire(request: HttpRequest, public_id: str) -> HttpResponse:
    """Retire an empty partition, or stage that everybody leaves it."""
    shown = _found(request, public_id)
    try:
        outcome = operations.retire_partition(
            partition=shown, actor=person(request), reason=request.POST.get("reason", "")
        )
    except (PartitionsError, SubnetError) as refusal:
        return _answer(request, public_id, str(refusal), is_refused=True)
    if outcome.is_retired:
        return _answer(request, public_id, f"{shown.name} is retired. Its P_Key {PKey(shown.pkey)} cools down.")
    sentence = (
        f"{outcome.ports} ports of {outcome.servers} servers are staged out of {shown.name}. Roll that out, then "
        "retire it."
    )
    return _answer(request, public_id, sentence)


def _answer(request: HttpRequest, public_id: str, sentence: str, *, is_refused: bool = False) -> HttpResponse:
    """The sentence, to the board's script or on the partition's page."""
    if wants_json(request):
        return told_as_json(sentence, status=409 if is_refused else 200)
    (messages.error if is_refused else messages.success)(request, sentence)
    return redirect("console:partition", public_id=public_id)


def _found(request: HttpRequest, public_id: str) -> Partition:
    rows = Partition.objects.select_related("tenant", "subnet")
    return get_object_or_404(rows, subnet=the_subnet(request), public_id=public_id)


def _others(partition: Partition, here: set[str]) -> list[Server]:
    """The servers that could be added, by hostname."""
    servers = Server.objects.filter(subnet=partition.subnet_id).order_by("hostname")
    return [server for server in servers if server.public_id not in here]
