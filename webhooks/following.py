"""The followers of the trail: events become messages, one row for each endpoint that wants them, and syslog lines."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from audit import nudge
from audit.models import Event
from remote import syslog
from webhooks.concerns import tenants_of
from webhooks.kinds import OF_TENANTS, SEVERITY, Kind, kind_of, message, sentence
from webhooks.models import Delivery, Endpoint
from webhooks.operations import give_up
from webhooks.terms import DELIVER, DELIVER_WITHIN_S, MOST_WAITING

TOO_MANY = f"{MOST_WAITING} messages wait for it, and that is the most. It was switched off."


def queue(events: Sequence[Event]) -> None:
    """Write a row for each message; an event that is handed over twice makes none twice."""
    endpoints = list(Endpoint.objects.on().select_related("tenant"))
    if not endpoints:
        return
    now = timezone.now()
    told = [(event, kind) for event in events if (kind := kind_of(event)) is not None]
    asked = any(endpoint.tenant is not None for endpoint in endpoints)
    concerned = {event.pk: tenants_of(event) for event, kind in told if asked and kind in OF_TENANTS}
    rows = [
        _row(endpoint, event, kind, now)
        for event, kind in told
        for endpoint in endpoints
        if kind.value in endpoint.kinds
        and (endpoint.tenant is None or endpoint.tenant.public_id in concerned.get(event.pk, ()))
    ]
    Delivery.objects.bulk_create(rows, ignore_conflicts=True)
    for endpoint in {row.endpoint for row in rows}:
        if endpoint.deliveries.waiting().count() > MOST_WAITING:
            give_up(endpoint=endpoint, because=TOO_MANY)
    if rows:
        transaction.on_commit(partial(nudge.task, DELIVER, {}, within_s=DELIVER_WITHIN_S), robust=True)


def _row(endpoint: Endpoint, event: Event, kind: Kind, now: datetime) -> Delivery:
    said = message(event, kind, is_for_tenant=endpoint.tenant is not None).said
    return Delivery(endpoint=endpoint, number=event.number, kind=kind.value, said=said, created_at=now, next_try_at=now)


def tell_syslog(events: Sequence[Event]) -> None:
    """Send a line for each event. Raises NotLogged: the follower stays where it is and tries again later.

    A server that does not answer holds the transaction for two seconds then; UDP and the local socket for none.
    """
    lines = []
    for event in events:
        kind = kind_of(event)
        if kind is not None:
            data = {
                "event": str(event.number), "action": event.action, "subject": event.subject_key,
                "rollout": event.rollout_key, "request": event.request_id,
            }  # fmt: skip
            text = sentence(event)
            lines.append(syslog.line(severity=SEVERITY[kind], at=event.at, name=kind.value, text=text, data=data))
    if lines:
        syslog.send(syslog.parse(settings.SYSLOG), lines, ca_file=settings.SYSLOG_CA_FILE)
