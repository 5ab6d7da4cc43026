"""The scheduled checks of the trail. What they found stands in `audit/standing.py`."""

import logging
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from audit import anchors, chain, outage, spool
from audit.actions import Action
from audit.errors import AuditError, SigningUnavailable, TrailUnavailable
from audit.models import TrailCheck
from audit.record import record
from audit.standing import CANNOT, Kind, keep
from audit.values import SYSTEM, Subject
from audit.verifier import Report

log = logging.getLogger(__name__)


def every_minute() -> None:
    """Try whether events can be recorded, chain what was spooled, check the newest events, sign and anchor the head.

    A trail that was never checked as a whole is, at once.
    """
    why_not = outage.refusal()
    if why_not:
        outage.note(why_not)
    else:
        spool.recover()
    now = timezone.now()
    try:
        _, report = anchors.seal(now=now)
    except (SigningUnavailable, TrailUnavailable) as error:
        keep(Kind.ANCHOR, now=now, trouble=CANNOT, sentence=str(error))
        return
    keep(Kind.ANCHOR, now=now, sentence="The head is signed and anchored.")
    _keep_report(Kind.NEWEST, report, now=now)
    if not TrailCheck.objects.filter(kind=Kind.WHOLE).exclude(key_version=0, trouble="").exists():
        every_hour()


def every_hour() -> None:
    """Check every event, and the whole against every anchor."""
    now = timezone.now()
    try:
        report = chain.verify(anchors=anchors.every())
    except (SigningUnavailable, TrailUnavailable) as error:
        keep(Kind.WHOLE, now=now, trouble=CANNOT, sentence=str(error))
        return
    _keep_report(Kind.WHOLE, report, now=now)


def _keep_report(kind: TrailCheck.Kind, report: Report, *, now: datetime) -> None:
    before = TrailCheck.objects.filter(kind=kind).first()
    keep(
        kind,
        now=now,
        trouble=report.kind or "",
        sentence=report.sentence,
        broken_at=report.broken_at,
        events=report.events,
        anchored_to=report.anchored_to,
        checked_to=report.up_to,
    )
    if report.is_sound:
        return
    log.critical("%s", report.sentence)
    # Not by its number too: where the end was cut off, the event that tells of it moves that on.
    if before is None or before.trouble != report.kind:
        _record_break(report)


def _record_break(report: Report) -> None:
    try:
        with transaction.atomic():
            record(
                action=Action.TRAIL_BROKEN,
                actor=SYSTEM,
                subject=Subject(kind="event", key=str(report.broken_at), label=f"event {report.broken_at}"),
                after={"kind": report.kind, "sentence": report.sentence},
            )
    except AuditError as error:
        log.error("the break could not be recorded: %s", error)
