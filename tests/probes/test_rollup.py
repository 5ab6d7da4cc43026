"""Old runs become days whose percentiles are those of all samples."""

from datetime import timedelta

import pytest

from probes.histogram import Histogram
from probes.models import ProbeDay, ProbePair, ProbeRun
from probes.rollup import roll_up
from tests.probes.site import START, lost, ok

pytestmark = pytest.mark.django_db
OLD = START - timedelta(days=40)


def go(now=START) -> int:
    return roll_up(now=now, runs_kept_days=30, days_kept_days=100)


def test_a_day_holds_all_samples_of_its_runs(site):
    site.run(ok(390, ns=20_000, samples=990), at=OLD)
    site.run(ok(380, ns=90_000, samples=10), at=OLD)
    site.run(lost(), at=OLD)
    recent = site.run(ok(391), at=START)
    assert go() == 3
    day = ProbeDay.objects.get()
    assert (day.day, day.runs, day.failed) == (OLD.date(), 2, 1)
    completions = Histogram.from_json(day.completions)
    assert completions.samples == 1000
    assert completions.percentile(50) == pytest.approx(20_000, rel=0.0625)
    assert completions.percentile(99.5) == pytest.approx(90_000, rel=0.0625)
    assert Histogram.from_json(day.rates).percentile(100) == pytest.approx(390_000, rel=0.0625)
    assert list(ProbeRun.objects.all()) == [recent]


def test_rolling_up_twice_changes_nothing_and_late_rows_are_added(site):
    site.run(ok(390), at=OLD)
    go()
    assert go() == 0
    site.run(ok(390), at=OLD + timedelta(minutes=1))
    go()
    assert ProbeDay.objects.get().runs == 2


def test_the_pair_and_its_history_outlive_the_runs(site):
    site.run(ok(390), at=OLD)
    go()
    pair = ProbePair.objects.get()
    assert pair.newest is None
    assert pair.recent == [390]


def test_days_go_in_the_end(site):
    site.run(ok(390), at=OLD)
    go()
    go(now=START + timedelta(days=90))
    assert not ProbeDay.objects.exists()


def test_a_day_that_is_not_over_stays(site):
    site.run(ok(390), at=START - timedelta(days=29, hours=23))
    assert go() == 0
