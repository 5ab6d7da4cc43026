"""Write and sign the evidence that was asked for. The housekeeping worker's: it alone reads the private key."""

import logging
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction

from audit import documents, signing
from audit.actions import Action
from audit.errors import SigningUnavailable
from audit.models import Event
from audit.record import record
from audit.values import SYSTEM, Subject
from people.models import TenantRole
from portal.door import Seat
from portal.evidence.contents import gather
from portal.models import SignedEvidence

log = logging.getLogger(__name__)

KIND: Final = "evidence"
KEPT: Final = 20  # signed documents of a tenant
GIVE_UP_AFTER: Final = timedelta(hours=1)


def tick(*, now: datetime) -> None:
    """Sign what waits. Safe to run twice: of two workers one signs, and the other's document is dropped."""
    for row in SignedEvidence.objects.waiting().select_related("tenant", "asked_by").order_by("pk"):
        seat = _seat(row)
        if seat is None:
            _give_up(row, "Whoever asked has no role for the tenant any more.", now=now)
            continue
        try:
            signing.ensure()  # before everything is gathered: without a key that would be every few seconds
            data = documents.sign(kind=KIND, content=_content(row, seat, now=now), now=now)
        except SigningUnavailable as error:
            log.error("evidence for %s cannot be signed: %s", row.tenant.public_id, error)
            if now - row.asked_at > GIVE_UP_AFTER:
                _give_up(row, str(error), now=now)
            continue
        _store(row, data, now=now)


def _seat(row: SignedEvidence) -> Seat | None:
    role = TenantRole.objects.in_force().filter(user=row.asked_by, user__is_active=True, tenant=row.tenant).first()
    return None if role is None else Seat(row.asked_by, row.tenant, TenantRole.Role(role.role))


def _content(row: SignedEvidence, seat: Seat, *, now: datetime) -> dict[str, object]:
    asked = Event.objects.filter(action=Action.EVIDENCE_ASK.value, subject_key=row.public_id)
    return {
        "id": row.public_id,
        "made_at": now,
        "asked": {
            "by": str(row.asked_by),
            "at": row.asked_at,
            "hash": asked.values_list("hash", flat=True).first() or "unknown",
        },
        **gather(seat, now=now),
    }


@transaction.atomic
def _store(row: SignedEvidence, data: bytes, *, now: datetime) -> None:
    digest = documents.digest(data)
    waiting = SignedEvidence.objects.waiting().filter(pk=row.pk)
    if not waiting.update(signed_at=now, digest=digest, data=data):
        return
    its = SignedEvidence.objects.filter(tenant=row.tenant).order_by("-pk").values_list("pk", flat=True)
    SignedEvidence.objects.filter(pk__in=list(its[KEPT:])).delete()
    record(
        action=Action.EVIDENCE_SIGN, actor=SYSTEM, tenant_key=row.tenant.public_id,
        subject=Subject(kind="evidence", key=row.public_id, label=digest),
        after={"sha256": digest, "bytes": len(data)},
    )  # fmt: skip


@transaction.atomic
def _give_up(row: SignedEvidence, why: str, *, now: datetime) -> None:
    if SignedEvidence.objects.waiting().filter(pk=row.pk).update(given_up_at=now):
        record(
            action=Action.EVIDENCE_GIVE_UP, actor=SYSTEM, tenant_key=row.tenant.public_id, reason=why,
            subject=Subject(kind="evidence", key=row.public_id, label=row.tenant.name),
        )  # fmt: skip
