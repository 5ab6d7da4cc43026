"""One pair over time, with its chart, its table, and what a prompt would cost on it."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from people.permissions import is_operator, reviewer_required
from probes.cost import RANKS, TOKENS, Cost, costs
from probes.models import Incident, ProbeHost, ProbePair, ProbeRun, ProbeScope
from probes.profiles import CONTIGUOUS, SCATTERED, is_latency
from probes.series import RANGES, points_of
from probes.views.scopes import kind_asked, profile_asked, scope_or_404

SCATTER_PENALTY = 0.6  # below, most of the time goes into the number of pieces (kvprobe 2.3)


@dataclass(frozen=True, slots=True)
class Ratio:
    """Scattered beside contiguous; None when one of the two was not measured."""

    scattered: float | None
    contiguous: float | None

    @property
    def value(self) -> float | None:
        """Scattered rate over contiguous rate."""
        return self.scattered / self.contiguous if self.scattered and self.contiguous else None

    @property
    def is_low(self) -> bool:
        """Whether scattering costs more than is usual."""
        return self.value is not None and self.value < SCATTER_PENALTY


@require_safe
@never_cache
@reviewer_required
def series(request: HttpRequest, public_id: str, sender_id: str, target_id: str) -> HttpResponse:
    """The series of one profile of a pair."""
    scope = scope_or_404(request, public_id)
    hosts = ProbeHost.objects.visible_to(request.user).select_related("server")
    sender, target = get_object_or_404(hosts, public_id=sender_id), get_object_or_404(hosts, public_id=target_id)
    profile, kind = profile_asked(request, scope), kind_asked(request, scope)
    profile = "link" if kind == "TCP" else profile
    within = request.GET.get("within", "7d")
    words, span = RANGES.get(within, RANGES["7d"])
    pairs = ProbePair.objects.filter(scope=scope, sender=sender, target=target, mode=scope.mode)
    of_profile = pairs.filter(profile=profile, kind=kind).order_by("rail")
    rail = request.GET.get("rail", "")
    pair = (of_profile.filter(rail=int(rail)) if rail.isdecimal() and len(rail) < 4 else of_profile).first()
    points = [] if pair is None else points_of(pair, since=timezone.now() - span)
    newest = {row.profile: row for row in pairs.filter(kind="RDMA").order_by("-rail")}
    rates = {name: row.gbps for name, row in newest.items() if row.gbps is not None}
    return render(
        request,
        "probes/series.html",
        {
            "scope": scope,
            "sender": sender,
            "target": target,
            "profile": profile,
            "kind": kind,
            "pair": pair,
            "rails": of_profile.values_list("rail", flat=True),
            "points": points,
            "measured": [point for point in points if point.gbps is not None],
            "within": within,
            "within_words": words,
            "ranges": [(key, value[0]) for key, value in RANGES.items()],
            "is_latency": is_latency(profile),
            "is_software": any(point.run is not None and point.run.is_software for point in points),
            "ratio": Ratio(rates.get(SCATTERED), rates.get(CONTIGUOUS)),
            "incidents": Incident.objects.filter(pair__in=pairs, acknowledged_at=None).select_related("pair"),
            "waiting": ProbeRun.objects.filter(
                scope=scope, sender=sender, target=target, state__in=("QUEUED", "CLAIMED", "RUNNING")
            ).count(),
            "may_act": is_operator(request.user),
            **_cost_table(request, scope, rates, newest),
        },
    )


def _cost_table(
    request: HttpRequest, scope: ProbeScope, rates: dict[str, float], newest: dict[str, ProbePair]
) -> dict[str, object]:
    """What the page's table of models shows, for the tokens and ranks that the address names."""
    tokens = _one_of(request.GET.get("tokens", ""), TOKENS, 32_768)
    ranks = _one_of(request.GET.get("ranks", ""), RANKS, 8)
    link = newest.get(CONTIGUOUS)
    line = link.gbps / link.pct_line * 100 if link is not None and link.gbps and link.pct_line else None
    table: list[Cost] = list(costs(rates, tokens=tokens, ranks=ranks, ttft_ms=scope.ttft_budget_ms, line_gbps=line))
    return {"costs": table, "tokens": tokens, "token_choices": TOKENS, "ranks": ranks, "rank_choices": RANKS}


def _one_of(text: str, allowed: tuple[int, ...], default: int) -> int:
    return next((value for value in allowed if str(value) == text), default)
