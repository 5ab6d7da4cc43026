"""The heat map of a scope, and the strip of one of its servers."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from people.permissions import is_operator, reviewer_required
from probes import heat
from probes.blocks import counted
from probes.members import Roll, roll_of
from probes.models import ProbeHost, ProbePair, ProbeRun, ProbeScope
from probes.profiles import is_latency
from probes.views.scopes import kind_asked, profile_asked, scope_or_404


@require_safe
@never_cache
@reviewer_required
def scope(request: HttpRequest, public_id: str) -> HttpResponse:
    """The matrix of senders and targets for one profile; `?block=3x7` opens a block of a large one."""
    shown = scope_or_404(request, public_id)
    profile, kind = profile_asked(request, shown), kind_asked(request, shown)
    profile = "link" if kind == "TCP" else profile
    roll = roll_of(shown)
    nodes = _nodes(roll, request.GET.get("hosts", ""))
    drawn = _drawn(shown, nodes, profile, kind)
    return render(
        request,
        "probes/scope.html",
        {
            "scope": shown,
            "profile": profile,
            "kind": kind,
            "heat": drawn,
            "roll": roll,
            "search": request.GET.get("hosts", ""),
            "is_software": _is_software(shown, kind),
            "waiting": ProbeRun.objects.filter(scope=shown, state__in=("QUEUED", "CLAIMED", "RUNNING")).count(),
            "recent": ProbeRun.objects.filter(scope=shown, finished_at__isnull=False)
            .select_related("sender__server", "target__server")
            .order_by("-finished_at")[:8],
            "may_act": is_operator(request.user),
        },
    )


@require_safe
@never_cache
@reviewer_required
def server(request: HttpRequest, public_id: str, host_id: str) -> HttpResponse:
    """One server of a scope: all its pairs, as sender and as target."""
    shown = scope_or_404(request, public_id)
    host = get_object_or_404(ProbeHost.objects.visible_to(request.user).select_related("server"), public_id=host_id)
    profile, kind = profile_asked(request, shown), kind_asked(request, shown)
    profile = "link" if kind == "TCP" else profile
    pairs = ProbePair.objects.of(shown, profile=profile, kind=kind)
    roll = roll_of(shown)
    others = [member.host for member in roll.members if member.host.pk != host.pk]
    sent = {pair.target_id: pair for pair in pairs.filter(sender=host).order_by("-rail")}
    received = {pair.sender_id: pair for pair in pairs.filter(target=host).order_by("-rail")}
    return render(
        request,
        "probes/server.html",
        {
            "scope": shown,
            "host": host,
            "profile": profile,
            "kind": kind,
            "is_latency": is_latency(profile),
            "lines": [(other, sent.get(other.pk), received.get(other.pk)) for other in others],
            "is_software": _is_software(shown, kind),
        },
    )


def _drawn(scope: ProbeScope, nodes: list[tuple[int, heat.Node]], profile: str, kind: str) -> heat.HeatMap:
    """The matrix; of more hosts than it has rows each block is counted."""
    latency, now, named = is_latency(profile), timezone.now(), [node for _, node in nodes]
    if len(nodes) > heat.LARGEST:
        blocks = counted(scope, nodes, profile=profile, kind=kind, is_latency=latency)
        return heat.draw_blocks(named, blocks, is_latency=latency, now=now)
    return heat.draw(named, _newest(scope, profile, kind, [pk for pk, _ in nodes]), is_latency=latency, now=now)


def _nodes(roll: Roll, search: str) -> list[tuple[int, heat.Node]]:
    """The hosts whose names contain what is looked for, by row id; all of them without."""
    wanted = search.strip().lower()[:100]
    return [
        (member.host.pk, heat.Node(member.host.public_id, str(member.host)))
        for member in roll.members
        if wanted in str(member.host).lower()
    ]


def _newest(scope: ProbeScope, profile: str, kind: str, hosts: list[int]) -> list[heat.Newest]:
    """The newest of every pair; of several rails the one that is worst off, which the dictionary keeps last."""
    column = "p50_ns" if is_latency(profile) else "gbps"
    rows = (
        ProbePair.objects.of(scope, profile=profile, kind=kind)
        .filter(sender__in=hosts, target__in=hosts)
        .order_by("-pct_line", "pk")
        .values_list(
            "sender__public_id", "target__public_id", "outcome", "verdict", "newest_at", column, "pct_line", "rail"
        )
    )
    found: dict[tuple[str, str], heat.Newest] = {}
    for sender, target, outcome, verdict, at, value, pct, _ in rows:
        item = heat.Newest(sender, target, outcome, verdict, at, value, pct)
        other = found.get((sender, target))
        if other is None or _is_worse(item, other):
            found[sender, target] = item
    return list(found.values())


def _is_worse(one: heat.Newest, other: heat.Newest) -> bool:
    order = {"BAD": 2, "WARN": 1}
    return order.get(one.verdict, 0) > order.get(other.verdict, 0)


def _is_software(scope: ProbeScope, kind: str) -> bool:
    """Whether the newest measured run of the scope went over Soft-RoCE."""
    newest = (
        ProbeRun.objects.filter(scope=scope, kind=kind, state=ProbeRun.State.DONE)
        .order_by("-finished_at")
        .values_list("is_software", flat=True)
        .first()
    )
    return bool(newest)
