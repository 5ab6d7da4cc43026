"""Retention: single runs become days of histograms, days are removed in the end. Safe to run at any time."""

from collections import defaultdict
from datetime import UTC, date, datetime, time, timedelta

from django.db import transaction

from probes.histogram import Histogram
from probes.models import ProbeDay, ProbeRun

OVER = (ProbeRun.State.DONE, ProbeRun.State.FAILED, ProbeRun.State.DROPPED, ProbeRun.State.DEFERRED)
BATCH = 500


def roll_up(*, now: datetime, runs_kept_days: int, days_kept_days: int) -> int:
    """Roll up every whole day (UTC) older than `runs_kept_days`; return how many runs were removed.

    One transaction a day. Percentiles over a day come from its merged histogram; rates are counted in Mb/s.
    """
    first_kept = datetime.combine((now - timedelta(days=runs_kept_days)).astimezone(UTC).date(), time(), tzinfo=UTC)
    removed = 0
    while (oldest := _oldest(first_kept)) is not None:
        removed += _roll_up_day(oldest)
    ProbeDay.objects.filter(day__lt=(now - timedelta(days=days_kept_days)).date()).delete()
    return removed


def _oldest(before: datetime) -> date | None:
    """The day of the oldest run that is over and to be rolled up."""
    found = (
        ProbeRun.objects.filter(state__in=OVER, finished_at__lt=before)
        .order_by("finished_at")
        .values_list("finished_at")
    ).first()
    return None if found is None or found[0] is None else found[0].astimezone(UTC).date()


@transaction.atomic
def _roll_up_day(day: date) -> int:
    begins = datetime.combine(day, time(), tzinfo=UTC)
    runs = ProbeRun.objects.filter(state__in=OVER, finished_at__gte=begins, finished_at__lt=begins + timedelta(days=1))
    rates: dict[int, list[int]] = defaultdict(list)
    completions: dict[int, list[Histogram]] = defaultdict(list)
    failures: dict[int, int] = defaultdict(int)
    told = runs.exclude(state__in=(ProbeRun.State.DROPPED, ProbeRun.State.DEFERRED)).exclude(pair=None)
    for run in told.only("pair_id", "state", "gbps", "histogram").iterator(chunk_size=BATCH):
        pair = run.pair_id
        assert pair is not None  # noqa: S101  excluded above
        if run.state == ProbeRun.State.FAILED:
            failures[pair] += 1
        elif run.gbps is not None:
            rates[pair].append(max(1, round(run.gbps * 1000)))
            completions[pair].append(Histogram.from_json(run.histogram))
    for pair in rates.keys() | failures.keys():
        counted = Histogram.of(rates[pair])
        merged = Histogram().merged(*completions[pair])
        row = ProbeDay.objects.filter(pair=pair, day=day).first()
        if row is None:
            row = ProbeDay(pair_id=pair, day=day, runs=0, failed=0, rates={}, completions={})
        row.runs += len(rates[pair])
        row.failed += failures[pair]
        row.rates = Histogram.from_json(row.rates).merged(counted).to_json()
        row.completions = Histogram.from_json(row.completions).merged(merged).to_json()
        row.save()
    removed: int = runs.count()
    runs.delete()
    return removed
