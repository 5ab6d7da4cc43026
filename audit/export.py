"""The trail as JSON lines: a first line that says what the file holds, then an event a line. `verifier.py` reads it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from django.db import transaction

from audit import chain
from audit.actions import Action
from audit.appending import THE_HEAD
from audit.models import EXPORTED, ChainHead, Event
from audit.record import record
from audit.values import Actor, Subject
from audit.verifier import GENESIS, canonical

FORMAT: Final = 1


def whole(*, since: int = 1) -> Iterator[str]:
    """The lines of an export from event `since` to the head, each with its end; the chain can be checked from them."""
    head = ChainHead.objects.filter(pk=THE_HEAD).first() or ChainHead(number=0, hash=GENESIS)
    lost = [
        {"from": first, "to": last, "told_at": at, "in": number}
        for first, last, at, number in chain.told_losses(before=since)
    ]
    header = {
        "fabricui_trail": FORMAT,
        "from": since,
        "to": head.number,
        "head": {"number": head.number, "hash": head.hash},
        "lost": lost,
    }
    yield json.dumps(header, ensure_ascii=False) + "\n"
    for row in chain.events(since, head.number):
        yield line(row)


def line(event: Event | Mapping[str, Any]) -> str:
    """One event as an export holds it, hash and code included, with the line's end."""
    row = event.to_json() if isinstance(event, Event) else event
    return canonical({name: row[name] for name in EXPORTED}).decode() + "\n"


def record_export(
    *,
    actor: Actor,
    what: str,
    form: str,
    events: int,
    filters: Mapping[str, str] | None = None,
    tenant_key: str = "",
) -> Event:
    """Record that `actor` took events out of FabricUI: call it before the first of them is given.

    `what` tells it in words, `form` is the format (jsonl, csv, print), `filters` is what was asked for,
    `tenant_key` whose events they are.
    """
    after = {"form": form, "events": events, "filters": dict(filters or {})}
    subject = Subject(kind="trail", key="trail", label=what)
    with transaction.atomic():
        return record(action=Action.TRAIL_EXPORT, actor=actor, subject=subject, after=after, tenant_key=tenant_key)


def lines(events: Iterable[Event]) -> Iterator[str]:
    """The events of a queryset as lines, for an export that is filtered; each can be checked by its own hash."""
    return (line(event) for event in events)
