"""The room's Celery tasks: three lines each. Every task is safe to run twice."""

from celery import shared_task
from django.utils import timezone

from portal import turns
from portal.evidence import signing


@shared_task
def tick(**_: object) -> None:
    """Take tenants' turns further."""
    turns.tick(now=timezone.now())


@shared_task
def sign_evidence(**_: object) -> None:
    """Sign the evidence that tenants asked for."""
    signing.tick(now=timezone.now())
