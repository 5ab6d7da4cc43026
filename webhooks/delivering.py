"""Deliver what is due: messages side by side, so that no owner’s slow endpoints make another’s messages wait.

The queue `webhooks` has a worker of its own. A round goes on while something is due, for ROUND_S at most: as soon as
one message is over, the next may go. Who has least on its way goes first (`webhooks/shares.py`). A row is claimed
before it is sent by putting its next try off: a worker that dies in between sends it again later (at least once), and
two workers never send it at the same time.
"""

import json
import logging
import time
from collections.abc import Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db.models import Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from remote import posting
from remote.posting import BadTarget, NotPosted
from webhooks import sealing, shares
from webhooks.models import Delivery, Endpoint
from webhooks.networks import allowed_for
from webhooks.operations import give_up
from webhooks.querysets import EndpointQuerySet
from webhooks.terms import AT_ONCE, CLAIMED_FOR, LOOK_AGAIN_S, OF_ONE, PAUSES, ROUND_S

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of one try: the status that took it, or why it was not taken."""

    status: int | None
    failure: str = ""


def deliver(*, now: datetime) -> int:
    """Try what is due at `now` and what falls due meanwhile, for ROUND_S; return how many were taken."""
    began = time.monotonic()
    taken = 0
    on_their_way: dict[Future[Tried], Delivery] = {}
    with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="webhook") as threads:
        while True:
            passed = timedelta(seconds=time.monotonic() - began)
            if passed.total_seconds() < ROUND_S:
                for row in _chosen(now + passed, on_their_way.values()):
                    if _claim(row, now + passed):
                        on_their_way[threads.submit(_try, row)] = row  # touches no rows
            if not on_their_way:
                return taken
            over, _ = wait(on_their_way, timeout=LOOK_AGAIN_S, return_when=FIRST_COMPLETED)
            taken += sum(_settled(on_their_way.pop(one), one) for one in over)


def body_of(row: Delivery) -> bytes:
    """The bytes that are sent and signed."""
    return json.dumps({"id": row.public_id, **row.said}, ensure_ascii=False, sort_keys=True).encode()


def _chosen(now: datetime, on_their_way: Collection[Delivery]) -> Sequence[Delivery]:
    """What goes next beside what is on its way. Of who has all that it may have nothing is even read."""
    held = [shares.Held(row.endpoint_id, row.endpoint.tenant_id) for row in on_their_way]
    place = Window(RowNumber(), partition_by="endpoint", order_by=("next_try_at", "pk"))
    due = Delivery.objects.due(now).filter(endpoint__in=_with_room(held)).annotate(place=place)
    first = due.filter(place__lte=OF_ONE).order_by("next_try_at", "pk")
    found = first.values_list("pk", "endpoint", "endpoint__tenant")
    wanted = shares.choose([(pk, shares.Held(endpoint, owner)) for pk, endpoint, owner in found], held)
    rows = Delivery.objects.select_related("endpoint__tenant").in_bulk(wanted)
    return [rows[pk] for pk in wanted if pk in rows]


def _with_room(held: Sequence[shares.Held]) -> EndpointQuerySet:
    endpoints, owners = shares.full(held)
    found = Endpoint.objects.on().exclude(pk__in=endpoints).exclude(tenant__in=[one for one in owners if one])
    return found.exclude(tenant=None) if None in owners else found


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


def _settled(row: Delivery, tried: Future[Tried]) -> bool:
    """As `_settle`; one row that cannot be written leaves the others of the round alone: it is sent again later."""
    try:
        return _settle(row, tried.result())
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
