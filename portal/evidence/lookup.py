"""Whose a signed document is: by its SHA-256 or its id, from the trail, also when it is kept no more."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from audit.actions import Action
from audit.models import Event
from people.models import Tenant
from portal.models import SignedEvidence

SHORTEST: Final = 12  # digits of a SHA-256, as pages show it
_DIGEST: Final = re.compile(rf"[0-9a-f]{{{SHORTEST},64}}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One document: `asked_by` is the name of that moment, `events` are the trail's numbers; None if not yet."""

    id: str
    tenant: str
    asked_by: str
    asked_at: datetime | None
    signed_at: datetime | None
    digest: str
    events: tuple[int, ...]
    is_kept: bool


def find(text: str) -> list[Found]:
    """The documents with this id, or whose SHA-256 is or begins with `text`, in the order of the trail."""
    wanted = text.strip()
    keys = [wanted]
    if _DIGEST.match(wanted.lower()):
        signed = Event.objects.filter(action=Action.EVIDENCE_SIGN.value)
        keys += signed.filter(subject_label__startswith=wanted.lower()).values_list("subject_key", flat=True)
    told = Event.objects.filter(
        action__in=(Action.EVIDENCE_ASK.value, Action.EVIDENCE_SIGN.value),
        subject_kind="evidence",
        subject_key__in=keys,
    )
    by_key: dict[str, dict[str, Event]] = {}
    for event in told.order_by("number"):
        by_key.setdefault(event.subject_key, {})[event.action] = event
    return [_found(key, events) for key, events in by_key.items()]


def _found(key: str, events: dict[str, Event]) -> Found:
    asked, signed = events.get(Action.EVIDENCE_ASK.value), events.get(Action.EVIDENCE_SIGN.value)
    tenant_key = next(iter(events.values())).tenant_key
    tenant = Tenant.objects.filter(public_id=tenant_key).first()
    return Found(
        id=key,
        tenant=f"{tenant.name} ({tenant.slug})" if tenant is not None else tenant_key,
        asked_by=asked.actor_name if asked is not None else "",
        asked_at=asked.at if asked is not None else None,
        signed_at=signed.at if signed is not None else None,
        digest=signed.subject_label if signed is not None else "",
        events=tuple(event.number for event in events.values()),
        is_kept=SignedEvidence.objects.filter(public_id=key).exclude(data=None).exists(),
    )
