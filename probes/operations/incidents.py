"""Incidents: only a person closes one."""

from django.db import transaction
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import Actor, Subject
from probes.errors import ProbeRefused
from probes.models import Incident
from probes.operations.scopes import tenant_key_of


def incident_subject(incident: Incident) -> Subject:
    """Name an incident in the trail by the pair it is about, or by the check that found a leak."""
    if incident.leak is not None or incident.pair is None:
        return Subject(kind="probe-incident", key=incident.public_id, label=str(incident.leak))
    return Subject(kind="probe-incident", key=incident.public_id, label=f"{incident.pair} ({incident.pair.scope})")


@transaction.atomic
def acknowledge_incident(*, incident: Incident, actor: Actor, note: str) -> Incident:
    """Close an incident with what was found and done. Raises ProbeRefused without a note, or if it is closed."""
    note = note.strip()
    if not note:
        raise ProbeRefused("Say what you found and did: the next person who sees this pair will want to know.")
    row = Incident.objects.select_for_update().get(pk=incident.pk)
    if row.acknowledged_at is not None:
        raise ProbeRefused(f"{row.acknowledged_by} acknowledged it already: “{row.note}”.")
    row.acknowledged_at, row.acknowledged_by, row.note = timezone.now(), actor.name[:150], note[:2000]
    row.save(update_fields=["acknowledged_at", "acknowledged_by", "note"])
    record(
        action=Action.PROBE_INCIDENT_ACKNOWLEDGE, actor=actor, subject=incident_subject(row), reason=row.note,
        before={"rule": row.rule, "sentence": row.sentence, "times": row.times},
        tenant_key=tenant_key_of(row.pair.scope) if row.pair is not None else "",
    )  # fmt: skip
    return row
