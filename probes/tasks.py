"""The room's Celery tasks: fetch, call, done. Every task is safe to run twice."""

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from probes import planning, rollup, running
from probes.hosts import measure


@shared_task
def run(*, run_id: int) -> None:
    """Run one probe."""
    running.run(run_id=run_id, measure=measure)


@shared_task
def tick(**_: object) -> None:
    """Queue what is due and begin what may begin."""
    planning.tick(now=timezone.now())


@shared_task
def roll_up(**_: object) -> None:
    """Turn old runs into days."""
    rollup.roll_up(
        now=timezone.now(),
        runs_kept_days=settings.PROBE_RUNS_KEPT_DAYS,
        days_kept_days=settings.PROBE_DAYS_KEPT_DAYS,
    )
