"""The points of one series: single runs, then days; the same rows make the table and the chart."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from probes.histogram import Histogram
from probes.judgement import HISTORY, median_and_mad
from probes.models import ProbeDay, ProbePair, ProbeRun
from probes.profiles import is_latency

MOST_RUNS = 500


@dataclass(frozen=True, slots=True)
class Point:
    """One run, or one day of them. Rates in Gb/s, times in ns; `low` and `high` bound what was usual just before it."""

    at: datetime
    gbps: float | None
    pct_line: float | None
    p50_ns: float | None
    p99_ns: float | None
    samples: int
    low: float | None
    high: float | None
    run: ProbeRun | None = None
    runs: int = 1
    failed: int = 0

    @property
    def day(self) -> str:
        """The day that it stands for, which is one of UTC: “2026-12-01”. In no reader's zone it is another one."""
        return f"{self.at:%Y-%m-%d}"

    @property
    def epoch(self) -> int:
        """Seconds since 1970, for the chart."""
        return int(self.at.timestamp())


def points_of(pair: ProbePair, *, since: datetime) -> list[Point]:
    """The points of a series since then, newest first. Three queries."""
    runs = list(
        ProbeRun.objects.filter(pair=pair, finished_at__gte=since, state__in=("DONE", "FAILED")).order_by(
            "-finished_at", "-pk"
        )[:MOST_RUNS]
    )
    latency = is_latency(pair.profile)
    values: list[float] = []
    points = []
    for run in reversed(runs):
        assert run.finished_at is not None  # noqa: S101  it ended
        low, high = _band(values)
        value = run.p50_ns if latency else run.gbps
        points.append(
            Point(
                run.finished_at, run.gbps, run.pct_line, run.p50_ns, run.p99_ns, run.samples, low, high, run,
                failed=int(run.state == ProbeRun.State.FAILED),
            )
        )  # fmt: skip
        if value is not None:
            values.append(value)
    oldest = points[0].at.date() if points else None
    days = ProbeDay.objects.filter(pair=pair, day__gte=since.date()).order_by("day")
    rolled = [_day(day) for day in days if oldest is None or day.day < oldest or len(runs) < MOST_RUNS]
    return sorted([*rolled, *points], key=lambda point: point.at, reverse=True)


def _band(values: Sequence[float]) -> tuple[float | None, float | None]:
    habit = median_and_mad(values[-HISTORY:])
    if habit is None:
        return None, None
    middle, mad = habit
    return max(0.0, middle - 3 * 1.4826 * mad), middle + 3 * 1.4826 * mad


def _day(day: ProbeDay) -> Point:
    rates, completions = Histogram.from_json(day.rates), Histogram.from_json(day.completions)
    middle = rates.percentile(50)
    return Point(
        at=datetime.combine(day.day, time(12), tzinfo=UTC),
        gbps=None if middle is None else middle / 1000,
        pct_line=None,
        p50_ns=completions.percentile(50),
        p99_ns=completions.percentile(99),
        samples=completions.samples,
        low=None,
        high=None,
        runs=day.runs,
        failed=day.failed,
    )


RANGES = {
    "1d": ("a day", timedelta(days=1)),
    "7d": ("a week", timedelta(days=7)),
    "30d": ("30 days", timedelta(days=30)),
    "1y": ("a year", timedelta(days=366)),
}
