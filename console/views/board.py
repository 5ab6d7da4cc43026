"""The board: columns of servers, and the one address that every way of moving posts to."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_POST, require_safe

from console.board_facts import board_subnet, fabric, fingerprint, is_settling
from console.board_search import Search
from console.board_words import told
from console.columns import EVERYTHING, read_board
from console.frame import holding_rollout, the_subnet
from console.requests import filter_text, person, told_as_json, wants_json
from console.views.home import no_subnet
from inventory.models import Server, Subnet
from partitions import operations
from partitions.board import UNASSIGNED
from partitions.errors import PartitionsError
from partitions.mirror import batches
from partitions.models import Partition, StagedChange
from people.permissions import is_operator, operator_required, reviewer_required
from people.said import said
from subnet.errors import SubnetError
from subnet.pkey import Membership

LONGEST_PINS = 4000  # characters: three hundred columns


@require_safe
@never_cache
@gzip_page
@reviewer_required
def board(request: HttpRequest) -> HttpResponse:
    """All servers in the partitions people want them in; the fragment is everything that changes by itself.

    A page that asks again names the fingerprint of what it shows, and hears 304 while that is still so: then a poll
    costs three queries whatever the size.
    """
    subnet = board_subnet(request)
    if subnet is None:
        return no_subnet(request)
    user, now = person(request), timezone.now()
    tag = quote_etag(fingerprint(subnet, who=(user.pk, user.role), address=request.get_full_path(), now=now))
    is_fragment = bool(request.htmx)  # type: ignore[attr-defined]
    if is_fragment and (unchanged := get_conditional_response(request, etag=tag)) is not None:
        return unchanged
    search = Search.parse(filter_text(request, "q"))
    shown = {
        "subnet": subnet,
        "board": read_board(
            subnet=subnet, user=user, now=now, search=search, pins=_pins(request),
            fabric=fabric(subnet, now=now), is_settling=is_settling(subnet),
        ),
        "rollout": holding_rollout(subnet),
        "may_act": is_operator(request.user),
        "search": search,
        "tag": tag,
        "undoable": subnet.undoable,  # type: ignore[attr-defined]
    }  # fmt: skip
    answer = render(request, "console/board.html#live" if is_fragment else "console/board.html", shown)
    answer["ETag"] = tag
    return answer


@require_safe
@never_cache
@operator_required
def matching(request: HttpRequest) -> HttpResponse:
    """Every card that the address's search finds, as JSON; with `column` those of one column, to be selected."""
    subnet = board_subnet(request)
    if subnet is None:
        raise Http404
    now = timezone.now()
    shown = read_board(
        subnet=subnet, user=person(request), now=now, search=Search.parse(filter_text(request, "q")),
        pins=(EVERYTHING,), fabric=fabric(subnet, now=now), is_settling=is_settling(subnet),
    )  # fmt: skip
    only = request.GET.get("column", "")
    cards = [
        {"server": card.key, "source": column.key, "name": card.hostname}
        for column in shown.columns
        if only in ("", column.key)
        for card in column.cards
    ]
    return JsonResponse({"cards": cards})


def _pins(request: HttpRequest) -> frozenset[str] | None:
    """The columns that the address opens; None when it does not say."""
    if "open" not in request.GET:
        return None
    return frozenset(filter(None, request.GET["open"][:LONGEST_PINS].split(",")))


@require_POST
@operator_required
def move(request: HttpRequest) -> HttpResponse:
    """Stage that servers move, or with `keep` that they join. One `server` and `source` a server, one `target`.

    Those that are refused are named with the reason, and the others are staged all the same; 409 when none is.
    """
    subnet = the_subnet(request)
    servers = _servers(request, subnet)
    sources = [_partition(subnet, key) for key in request.POST.getlist("source") or [""]]
    if len(sources) != len(servers):
        raise Http404
    target = _partition(subnet, request.POST.get("target", ""))
    moves = list(zip(servers, sources, strict=True))
    try:
        outcomes = operations.stage_moves(
            moves=moves, target=target, actor=person(request), keep=bool(request.POST.get("keep")),
            reason=request.POST.get("reason", ""),
        )  # fmt: skip
    except (PartitionsError, SubnetError) as refusal:
        outcomes = tuple(operations.Moved(server, source, str(refusal)) for server, source in moves)
    sentence, is_refused = told(outcomes, target)
    if wants_json(request):
        refused = [{"server": one.server.public_id, "sentence": said(one.refusal)} for one in outcomes if one.refusal]
        return told_as_json(sentence, status=409 if is_refused else 200, refused=refused)
    if is_refused:
        messages.error(request, sentence)
    else:
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
            return told_as_json(str(refusal), status=409)
        messages.error(request, str(refusal))
    else:
        sentence = f"{server} is staged as a {wanted} member of {partition.name}. Nothing has reached the fabric."
        if wants_json(request):
            return told_as_json(sentence)
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


@require_POST
@operator_required
def undo(request: HttpRequest) -> HttpResponse:
    """Take back what this person staged or discarded last. 409 with the reason when that cannot be."""
    subnet = the_subnet(request)
    if subnet is None:
        raise Http404
    try:
        undone = operations.undo(subnet=subnet, actor=person(request))
    except (PartitionsError, SubnetError) as refusal:
        return _answer(request, str(refusal), is_refused=True)
    return _answer(request, f"Undone: {undone.title}.")


def _answer(request: HttpRequest, sentence: str, *, is_refused: bool = False) -> HttpResponse:
    """The sentence, to the page's script or on the board."""
    if wants_json(request):
        return told_as_json(sentence, status=409 if is_refused else 200)
    (messages.error if is_refused else messages.success)(request, sentence)
    return redirect("console:board")


def _back(request: HttpRequest, subnet: Subnet | None) -> HttpResponse:
    """To the partition's page that the form came from, or to the board."""
    key = request.POST.get("back", "")
    if key and Partition.objects.filter(subnet=subnet, public_id=key).exists():
        return redirect("console:partition", public_id=key)
    return redirect("console:board")


def _servers(request: HttpRequest, subnet: Subnet | None) -> list[Server]:
    """The servers that a form names, in its order and each once; 404 when one of them is not there."""
    keys = request.POST.getlist("server")
    visible = Server.objects.visible_to(request.user).select_related("subnet")
    found: dict[str, Server] = {}
    for batch in batches(keys):
        found |= {server.public_id: server for server in visible.filter(subnet=subnet, public_id__in=batch)}
    if not keys or len(set(keys)) != len(keys) or len(found) != len(keys):
        raise Http404
    return [found[key] for key in keys]


def _partition(subnet: Subnet | None, key: str) -> Partition | None:
    """The partition that a form names; None is Unassigned. A form that names neither is not ours: 404."""
    if key == UNASSIGNED:
        return None
    if not key:
        raise Http404
    return get_object_or_404(Partition.objects.select_related("tenant"), subnet=subnet, public_id=key)
