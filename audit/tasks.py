"""The room's Celery tasks."""

from celery import shared_task

from audit import follow as following


@shared_task
def follow(**_: object) -> None:
    """Hand new events to the followers."""
    following.tick()
