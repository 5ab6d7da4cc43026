"""Figures for Prometheus, behind a token of their own: a scraper is no person and has no session.

Only the newest of each series is shown, as gauges: rows are rolled up and removed, so a counter would go backwards.
"""

from collections.abc import Iterator
from typing import Final

from django.conf import settings
from django.db.models import Count, Max
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from probes.models import Incident, ProbePair, ProbeRun, ProbeScope

PAIRS_UP_TO: Final = 64 * 63  # ordered pairs of a profile; larger scopes give only their counts
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """The text that Prometheus reads. 404 without the token, so that nobody learns that it exists."""
    token = settings.METRICS_TOKEN
    given = request.headers.get("Authorization", "")
    if not token or not constant_time_compare(given, f"Bearer {token}"):
        raise Http404
    return HttpResponse("\n".join(_lines()) + "\n", content_type=CONTENT_TYPE)


def _lines() -> Iterator[str]:
    scopes = {scope.pk: scope for scope in ProbeScope.objects.named()}
    yield from _head("fabricui_probe_pairs", "Series by the verdict on their newest run.")
    grouped = ProbePair.objects.values("scope", "profile", "kind", "mode", "verdict").annotate(count=Count("pk"))
    for row in grouped.order_by("scope", "profile", "kind", "mode", "verdict"):
        labels = _labels(scopes[row["scope"]], profile=row["profile"], kind=row["kind"], mode=row["mode"])
        labels |= {"verdict": row["verdict"].lower()}
        yield f"fabricui_probe_pairs{_text(labels)} {row['count']}"
    yield from _head("fabricui_probe_newest_timestamp_seconds", "When a series of the scope was last probed.")
    for age in ProbePair.objects.values("scope").annotate(at=Max("newest_at")).order_by("scope"):
        name = _text(_scope(scopes[age["scope"]]))
        yield f"fabricui_probe_newest_timestamp_seconds{name} {age['at'].timestamp():.0f}"
    yield from _head("fabricui_probe_runs_waiting", "Runs that are queued or under way.")
    for state in ("QUEUED", "CLAIMED", "RUNNING"):
        count = ProbeRun.objects.filter(state=state).count()
        yield f"fabricui_probe_runs_waiting{_text({'state': state.lower()})} {count}"
    yield from _head("fabricui_probe_incidents_open", "Incidents that nobody has acknowledged.")
    unclosed = dict(
        Incident.objects.filter(acknowledged_at=None)
        .values_list("pair__scope")
        .annotate(count=Count("pk"))
        .values_list("pair__scope", "count")
    )
    for pk, scope in scopes.items():
        yield f"fabricui_probe_incidents_open{_text(_scope(scope))} {unclosed.get(pk, 0)}"
    yield from _pairs(scopes)


def _pairs(scopes: dict[int, ProbeScope]) -> Iterator[str]:
    counted = ProbePair.objects.values("scope", "profile", "kind").annotate(count=Count("pk"))
    small = {(row["scope"], row["profile"], row["kind"]) for row in counted if row["count"] <= PAIRS_UP_TO}
    rows = ProbePair.objects.exclude(gbps=None).select_related("sender__server", "target__server").order_by("pk")
    shown = [row for row in rows.iterator(chunk_size=2000) if (row.scope_id, row.profile, row.kind) in small]
    yield from _head("fabricui_probe_bits_per_second", "Payload rate of the newest run, if it measured.")
    for row in shown:
        yield f"fabricui_probe_bits_per_second{_of_pair(scopes, row)} {(row.gbps or 0) * 1e9:.0f}"
    yield from _head("fabricui_probe_completion_median_seconds", "Median completion of a chain in the newest run.")
    for row in shown:
        if row.p50_ns is not None:
            yield f"fabricui_probe_completion_median_seconds{_of_pair(scopes, row)} {row.p50_ns / 1e9:.9f}"


def _of_pair(scopes: dict[int, ProbeScope], row: ProbePair) -> str:
    labels = _labels(scopes[row.scope_id], profile=row.profile, kind=row.kind, mode=row.mode)
    return _text(labels | {"sender": str(row.sender), "target": str(row.target), "rail": str(row.rail)})


def _head(name: str, words: str) -> Iterator[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} gauge"


def _scope(scope: ProbeScope) -> dict[str, str]:
    return {"scope": str(scope), "subnet": str(scope.subnet)}


def _labels(scope: ProbeScope, *, profile: str, kind: str, mode: str) -> dict[str, str]:
    return _scope(scope) | {"kind": kind.lower(), "mode": mode, "profile": profile}


def _text(labels: dict[str, str]) -> str:
    """Labels as the text format wants them: backslash, quote and newline are escaped, nothing else is special."""
    escaped = {
        name: value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for name, value in labels.items()
    }
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped.items()) + "}"
