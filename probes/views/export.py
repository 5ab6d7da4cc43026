"""Runs as CSV or JSON, for people's own tools."""

import json
from collections.abc import Iterator
from typing import Any, Final

from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.views.decorators.http import require_safe

from audit import cells
from people.permissions import reviewer_required
from probes.models import ProbeRun
from probes.views.scopes import scope_or_404

MOST: Final = 100_000
COLUMNS: Final = (
    "public_id", "kind", "profile", "mode", "sender", "target", "rail", "why", "state", "outcome", "finished_at",
    "gbps", "pct_line", "p50_ns", "p99_ns", "samples", "verdict", "link_layer", "is_software", "reason",
)  # fmt: skip


@require_safe
@reviewer_required
def export(request: HttpRequest, public_id: str, form: str) -> StreamingHttpResponse:
    """All runs of a scope that are over, newest first."""
    if form not in ("csv", "json"):
        raise Http404
    scope = scope_or_404(request, public_id)
    runs = (
        ProbeRun.objects.filter(scope=scope, finished_at__isnull=False)
        .select_related("sender__server", "target__server")
        .order_by("-finished_at", "-pk")[:MOST]
    )
    rows = (_row(run) for run in runs.iterator(chunk_size=1000))
    lines = cells.lines(COLUMNS, (row.values() for row in rows)) if form == "csv" else _json(rows)
    kind = "text/csv; charset=utf-8" if form == "csv" else "application/json"
    answer = StreamingHttpResponse(lines, content_type=kind)
    answer["Content-Disposition"] = f'attachment; filename="probes-{scope.public_id}.{form}"'
    answer["Cache-Control"] = "no-store"
    return answer


def _row(run: ProbeRun) -> dict[str, Any]:
    values = {name: getattr(run, name) for name in COLUMNS if name not in ("sender", "target", "finished_at")}
    finished = run.finished_at.isoformat() if run.finished_at is not None else ""
    named = {"sender": str(run.sender), "target": str(run.target), "finished_at": finished}
    return {name: (values | named)[name] for name in COLUMNS}


def _json(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    yield "["
    for number, row in enumerate(rows):
        yield ("" if number == 0 else ",") + "\n" + json.dumps(row)
    yield "\n]\n"
