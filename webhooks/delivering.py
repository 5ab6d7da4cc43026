"""Deliver what is due: a few messages a tick, side by side, so that no endpoint makes the others or the worker wait.

The worker of the queue `housekeeping` also hands events to the followers; a tick here takes seconds at most, whatever
endpoints do. A row is claimed before it is sent by putting its next try off: a worker that dies in between sends it
again later (at least once), and two workers never send it at the same time.
"""

import json
import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db.models import Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from remote import posting
from remote.posting import BadTarget, NotPosted
from webhooks import sealing
from webhooks.models import Delivery, Endpoint
from webhooks.networks import allowed_for
from webhooks.operations import give_up
from webhooks.terms import AT_ONCE, CLAIMED_FOR, OF_ONE, PAUSES

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of one try: the status that took it, or why it was not taken."""

    status: int | None
    failure: str = ""


def deliver(*, now: datetime) -> int:
    """Try what is due at `now`; return how many were taken."""
    claimed = [row for row in _chosen(now) if _claim(row, now)]
    if not claimed:
        return 0
    with ThreadPoolExecutor(max_workers=len(claimed), thread_name_prefix="webhook") as threads:
        tried = list(threads.map(_try, claimed))  # touches no rows
    return sum(_settled(row, one) for row, one in zip(claimed, tried, strict=True))


def body_of(row: Delivery) -> bytes:
    """The bytes that are sent and signed."""
    return json.dumps({"id": row.public_id, **row.said}, ensure_ascii=False, sort_keys=True).encode()


def _chosen(now: datetime) -> Sequence[Delivery]:
    """The first few of each endpoint, and of those the ones that wait longest: no backlog stands before another's."""
    place = Window(RowNumber(), partition_by="endpoint", order_by=("next_try_at", "pk"))
    due = Delivery.objects.due(now).filter(endpoint__in=Endpoint.objects.on()).annotate(place=place)
    return list(
        due.filter(place__lte=OF_ONE).select_related("endpoint__tenant").order_by("next_try_at", "pk")[:AT_ONCE]
    )


def _claim(row: Delivery, now: datetime) -> bool:
    mine = Delivery.objects.waiting().filter(pk=row.pk, next_try_at=row.next_try_at)
    return mine.update(next_try_at=now + CLAIMED_FOR, tries=row.tries + 1) == 1


def _try(row: Delivery) -> Tried:
    try:
        return _posted(row, body_of(row), sealing.opened(row.endpoint.secret), sealing.opened(row.endpoint.url))
    except InvalidToken:
        return Tried(None, "Its address or secret cannot be read with the keys of now. Make it anew.")
    except (BadTarget, NotPosted) as error:  # also a name that leads inside: somebody may mend that
        return Tried(None, str(error))


def _posted(row: Delivery, body: bytes, secret: str, url: str) -> Tried:
    timestamp = int(time.time())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "FabricUI-webhook",
        "FabricUI-Id": row.public_id,
        "FabricUI-Timestamp": str(timestamp),
        "FabricUI-Signature": sealing.signature(secret=secret, timestamp=timestamp, body=body),
    }
    allowed = allowed_for(row.endpoint.tenant)
    target = posting.parse(url, allowed=allowed)
    return Tried(posting.post(target, body, headers, allowed=allowed, ca_file=settings.WEBHOOK_CA_FILE))


def _settled(row: Delivery, tried: Tried) -> bool:
    """As `_settle`; one row that cannot be written leaves the others of the tick alone: it is sent again later."""
    try:
        return _settle(row, tried)
    except Exception:
        log.exception("what became of message %s could not be written down", row.public_id)
        return False


def _settle(row: Delivery, tried: Tried) -> bool:
    """Write down what became of it; give the endpoint up after the last try."""
    now = timezone.now()
    mine = Delivery.objects.waiting().filter(pk=row.pk)
    if tried.status is not None:
        done = {"state": Delivery.State.DELIVERED, "status": tried.status, "finished_at": now, "failure": ""}
        return mine.update(**done) == 1
    tries = row.tries + 1
    if tries <= len(PAUSES):
        mine.update(failure=tried.failure, next_try_at=now + PAUSES[tries - 1])
        return False
    if row.endpoint.deliveries.filter(state=Delivery.State.DELIVERED, finished_at__gt=row.created_at).exists():
        # It takes messages, but not this one.
        mine.update(failure=tried.failure, state=Delivery.State.GIVEN_UP, finished_at=now)
        return False
    mine.update(failure=tried.failure)
    if Endpoint.objects.filter(pk=row.endpoint_id).exists():  # else somebody removed it meanwhile
        give_up(endpoint=row.endpoint, because=f"It took nothing at {tries} tries. {tried.failure}")
    return False
