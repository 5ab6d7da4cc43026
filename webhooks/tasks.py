"""The room's Celery tasks. What waits for others' machines has the queue `webhooks` to itself."""

from celery import shared_task
from django.utils import timezone

from webhooks import delivering, operations


@shared_task
def deliver(**_: object) -> None:
    """Try the messages that are due."""
    delivering.deliver(now=timezone.now())


@shared_task
def forget_old(**_: object) -> None:
    """Remove old deliveries."""
    operations.forget_old(now=timezone.now())
