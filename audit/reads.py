"""Reads of what is sensitive leave an event too: who looked at whose evidence, once a minute at most."""

from django.db import transaction

from audit.actions import Action
from audit.models import Event
from audit.once import first_in_a_minute
from audit.record import record
from audit.values import Actor, Subject


def record_read(
    *, actor: Actor, subject: Subject, what: str, tenant_key: str = "", rollout_key: str = "", revision_key: str = ""
) -> Event | None:
    """Record that `actor` looked at `what` (“P_Key tables of the proof”) of `subject`, before it is shown.

    None when the same look was recorded within the last minute: a page that fetches itself again is one look.
    Raises TrailUnavailable: what cannot be recorded is not shown.
    """
    source = f"{actor.kind}:{actor.key}:{subject.kind}:{subject.key}:{what}"
    if not first_in_a_minute(action=Action.EVIDENCE_READ, source=source):
        return None
    with transaction.atomic():
        return record(
            action=Action.EVIDENCE_READ, actor=actor, subject=subject, after={"what": what}, tenant_key=tenant_key,
            rollout_key=rollout_key, revision_key=revision_key,
        )  # fmt: skip
