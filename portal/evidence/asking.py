"""Ask for signed evidence: a row that the housekeeping worker signs, because it alone has the key."""

from datetime import timedelta
from typing import Final

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext

from audit import nudge
from audit.actions import Action
from audit.record import record
from audit.values import Subject
from people.actor import actor_of
from people.models import Tenant
from portal.door import Seat
from portal.errors import Refused
from portal.models import SignedEvidence

APART: Final = timedelta(minutes=1)
SIGN: Final = "portal.tasks.sign_evidence"


@transaction.atomic
def ask(*, seat: Seat) -> SignedEvidence:
    """Ask for evidence of how things stand now. Raises Refused while one waits, or just after one was signed."""
    Tenant.objects.select_for_update(no_key=True).get(pk=seat.tenant.pk)  # two clicks at once are one
    now = timezone.now()
    its = SignedEvidence.objects.filter(tenant=seat.tenant)
    if its.waiting().exists():
        raise Refused(gettext("One is being signed just now. Nothing was asked. It shows here in a moment."))
    if its.filter(asked_at__gt=now - APART, asked_at__lte=now, given_up_at=None).exists():
        raise Refused(
            gettext("One was signed less than a minute ago. Nothing was asked. Take that one, or wait a minute.")
        )
    row = SignedEvidence.objects.create(tenant=seat.tenant, asked_by=seat.person, asked_at=now)
    record(
        action=Action.EVIDENCE_ASK, actor=actor_of(seat.person), tenant_key=seat.tenant.public_id,
        subject=Subject(kind="evidence", key=row.public_id, label=seat.tenant.name),
    )  # fmt: skip
    transaction.on_commit(lambda: nudge.task(SIGN, {}), robust=True)
    return row
