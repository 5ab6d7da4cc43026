"""The scheduled checks of the trail, and what they raise the alarm about."""

import logging
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.utils import timezone

from audit import anchors, chain, outage, spool
from audit.actions import Action
from audit.errors import AuditError, SigningUnavailable, TrailUnavailable
from audit.models import TrailCheck
from audit.record import record
from audit.values import SYSTEM, Subject
from audit.verifier import Report

log = logging.getLogger(__name__)

Kind = TrailCheck.Kind
CANNOT: Final = "cannot"  # the trouble of a check that could not be made
TOO_LONG_AGO: Final = timedelta(hours=3)  # three times the time between two checks of the whole


def every_minute() -> None:
    """Try whether events can be recorded, chain what was spooled, check the newest events, sign and anchor the head."""
    why_not = outage.refusal()
    if why_not:
        outage.note(why_not)
    else:
        spool.recover()
    now = timezone.now()
    try:
        _, report = anchors.seal(now=now)
    except SigningUnavailable as error:
        _keep(Kind.ANCHOR, now=now, trouble=CANNOT, sentence=str(error))
        return
    _keep(Kind.ANCHOR, now=now, sentence="The head is signed and anchored.")
    _keep_report(Kind.NEWEST, report, now=now)


def every_hour() -> None:
    """Check every event, and the whole against every anchor."""
    now = timezone.now()
    try:
        report = chain.verify(anchors=anchors.every())
    except SigningUnavailable as error:
        _keep(Kind.WHOLE, now=now, trouble=CANNOT, sentence=str(error))
        return
    _keep_report(Kind.WHOLE, report, now=now)


def alarms(*, now: datetime) -> list[str]:
    """What a reviewer must know of the trail now, a sentence each. Two queries at most."""
    found = []
    outage_sentence = outage.known()
    if outage_sentence:
        found.append(f"No change can be recorded, so none is made. {outage_sentence}")
    waiting = spool.waiting()
    if waiting:
        events = "1 event of a restore waits" if waiting == 1 else f"{waiting} events of restores wait"
        found.append(f"{events} beside the audit trail until it takes events again.")
    for check in TrailCheck.objects.order_by("kind"):
        if check.trouble:
            what = "could not be checked" if check.trouble == CANNOT else f"is broken ({check.trouble})"
            found.append(f"The audit trail {what}: {check.sentence}")
        elif now - check.checked_at > TOO_LONG_AGO:
            found.append(
                f"The audit trail was last checked at {check.checked_at:%Y-%m-%d %H:%M} UTC "
                f"({check.get_kind_display()}). "
                "Its check runs by itself; see that the workers beat and housekeeping run."
            )
    return list(dict.fromkeys(found))


def _keep_report(kind: TrailCheck.Kind, report: Report, *, now: datetime) -> None:
    before = TrailCheck.objects.filter(kind=kind).first()
    _keep(
        kind,
        now=now,
        trouble=report.kind or "",
        sentence=report.sentence,
        broken_at=report.broken_at,
        events=report.events,
        anchored_to=report.anchored_to,
    )
    if report.is_sound:
        return
    log.critical("%s", report.sentence)
    if before is None or (before.trouble, before.broken_at) != (report.kind, report.broken_at):
        _record_break(report)


def _keep(kind: TrailCheck.Kind, *, now: datetime, sentence: str, trouble: str = "", **columns: object) -> None:
    values = {"broken_at": None, "events": 0, "anchored_to": 0, **columns}
    TrailCheck.objects.update_or_create(
        kind=kind, defaults={"checked_at": now, "trouble": trouble, "sentence": sentence, **values}
    )


def _record_break(report: Report) -> None:
    try:
        with transaction.atomic():
            record(
                action=Action.TRAIL_BROKEN,
                actor=SYSTEM,
                subject=Subject(kind="event", key=str(report.broken_at), label=f"event {report.broken_at}"),
                after={"kind": report.kind, "sentence": report.sentence},
            )
    except (AuditError, TrailUnavailable):
        log.exception("the break could not be recorded")
