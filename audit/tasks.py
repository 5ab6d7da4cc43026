"""The room's Celery tasks."""

from celery import shared_task

from audit import follow as following
from audit import watch


@shared_task
def follow(**_: object) -> None:
    """Hand new events to the followers."""
    following.tick()


@shared_task
def every_minute() -> None:
    """See that events can be recorded; check, sign and anchor the newest."""
    watch.every_minute()


@shared_task
def every_hour() -> None:
    """Check the whole trail."""
    watch.every_hour()
