"""The room's Celery tasks: fetch, call, done. Every task is safe to run twice."""

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from deploy.hosts import connected as managers
from probes import attempts, isolation, path_checks, planning, rollup, running
from probes.hosts import connected, measure


@shared_task
def run(*, run_id: int) -> None:
    """Run one probe."""
    running.run(run_id=run_id, measure=measure)


@shared_task
def tick(**_: object) -> None:
    """Queue what is due and begin what may begin."""
    planning.tick(now=timezone.now())


@shared_task
def check_isolation(**_: object) -> None:
    """Ask for the checks of isolation that are due, and hand to the queues what waits."""
    isolation.tick(now=timezone.now())


@shared_task
def ask_for_paths(*, subnet_id: int) -> None:
    """Ask the SA about the waiting pairs of a subnet; queue `observe`, for it reaches manager hosts."""
    path_checks.run(subnet_id=subnet_id, connect=managers)


@shared_task
def attempt(*, check_id: int) -> None:
    """Make one attempt that must fail."""
    attempts.run(check_id=check_id, connect=connected)


@shared_task
def roll_up(**_: object) -> None:
    """Turn old runs into days."""
    kept = {"runs_kept_days": settings.PROBE_RUNS_KEPT_DAYS, "days_kept_days": settings.PROBE_DAYS_KEPT_DAYS}
    rollup.roll_up(now=timezone.now(), **kept)
    isolation.forget(now=timezone.now(), **kept)
