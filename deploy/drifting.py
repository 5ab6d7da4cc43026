"""The rows of drift: opened once, told once, closed once, each with its event. Reaches no machine.

One look proves that a difference is there; that it is gone is believed after two looks in a row, or after a proof, so
that nothing flaps. What a look could not see stays as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import OuterRef, QuerySet
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import SYSTEM, Actor, Subject
from deploy.drift_findings import Finding, Seen
from deploy.drift_models import ALARMS, SEEN_TWICE, Drift, Watch
from deploy.errors import ReasonNeeded
from deploy.models import Rollout
from inventory.models import Subnet

MISSES: Final = 2  # looks in a row without it, until it is believed to be gone
# Every port that was wrong has been read again and is right: that needs no second look.
CERTAIN: Final = frozenset({Drift.Kind.TABLE})
TABLES: Final = "fabric"  # the key of the one row about tables


@dataclass(slots=True)
class Settled:
    """What became of the rows by one look."""

    opened: list[Drift] = field(default_factory=list)
    changed: list[Drift] = field(default_factory=list)  # open before, and its facts are others now
    closed: list[Drift] = field(default_factory=list)
    doubtful: bool = False  # something was seen, or missed, that one more look will decide


def open_drift(subnet: Subnet) -> list[Drift]:
    """What is told and not over, alarms first. One query."""
    rows = Drift.objects.filter(subnet=subnet, closed_at=None).exclude(opened_at=None)
    return sorted(rows, key=lambda row: (not row.is_alarm, row.opened_at))


def alarms(subnet_id: int) -> list[Drift]:
    """The open rows that stop rollouts. One query."""
    return list(alarming(subnet_id).order_by("-kind", "opened_at"))


def alarming(subnet_id: int | OuterRef) -> QuerySet[Drift]:
    """The same in no order, to be asked within another query too."""
    return Drift.objects.filter(subnet=subnet_id, closed_at=None, kind__in=ALARMS).exclude(opened_at=None)


def adopted_digests(subnet_id: int) -> dict[str, int]:
    """Digests of files whose differences a person took over as staged changes (→ 0). One query."""
    rows = Drift.objects.filter(subnet=subnet_id, closed_at=None, kind=Drift.Kind.FILE).exclude(adopted_digest="")
    return {row.adopted_digest: 0 for row in rows if row.facts.get("digest") == row.adopted_digest}


def settle(*, subnet: Subnet, seen: Seen, now: datetime) -> Settled:
    """Make the rows say what one look found: open, refresh or close them, with an event for each that is told."""
    settled = Settled()
    with transaction.atomic():
        Watch.objects.select_for_update().get(subnet=subnet)  # of two looks one waits here
        rows = {(Drift.Kind(row.kind), row.key): row for row in Drift.objects.filter(subnet=subnet, closed_at=None)}
        found = {(finding.kind, finding.key): finding for finding in seen.findings}
        for place, finding in found.items():
            _see(subnet, rows.get(place), finding, now=now, settled=settled)
        proven_at = _proven_at(subnet)
        for place, row in rows.items():
            if place not in found and seen.answers(*place):
                _miss(row, now=now, proven_at=proven_at, settled=settled)
        for row in settled.opened:
            _record(row, Action.DRIFT_OPEN)
        for row in settled.closed:
            _record(row, Action.DRIFT_CLOSE)
    return settled


def open_takeover(*, subnet: Subnet, finding: Finding, now: datetime) -> None:
    """Tell of a takeover; of one that is told already and not proven again yet, this is the newest."""
    settled = Settled()
    with transaction.atomic():
        Watch.objects.select_for_update().get(subnet=subnet)
        row = Drift.objects.filter(subnet=subnet, closed_at=None, kind=finding.kind, key=finding.key).first()
        _see(subnet, row, finding, now=now, settled=settled)
        for opened in settled.opened:
            _record(opened, Action.DRIFT_OPEN)


def refresh(row: Drift, *, details: tuple[str, ...], facts: Mapping[str, Any]) -> None:
    """Say anew what is known of an open row; no event."""
    if (tuple(row.details), row.facts) != (details, dict(facts)):
        row.details, row.facts = list(details), dict(facts)
        row.save(update_fields=["details", "facts"])


def close(row: Drift, *, closing: str, now: datetime) -> bool:
    """End an open row with how it ended; False when it is over already."""
    with transaction.atomic():
        ended = Drift.objects.filter(pk=row.pk, closed_at=None).update(closed_at=now, closing=closing)
        row.refresh_from_db()
        if ended:
            _record(row, Action.DRIFT_CLOSE)
    return bool(ended)


def set_restoring(*, subnet: Subnet, enabled: bool, actor: Actor, reason: str) -> Watch:
    """Let FabricUI mend a lost isolation by itself on this subnet, or no longer. Raises ReasonNeeded."""
    if enabled and not reason.strip():
        raise ReasonNeeded("Say why FabricUI may place files here without a person.")
    with transaction.atomic():
        watch = watch_of(subnet)
        before = watch.restores_alone
        if before == enabled:
            return watch
        watch.restores_alone = enabled
        watch.save(update_fields=["restores_alone"])
        record(
            action=Action.DRIFT_RESTORING,
            actor=actor,
            subject=Subject(kind="subnet", key=subnet.public_id, label=subnet.name),
            before={"restores_alone": before},
            after={"restores_alone": enabled},
            reason=reason,
        )
    return watch


def watch_of(subnet: Subnet) -> Watch:
    """The watch of `subnet`; it is due at once when there was none."""
    watch, _ = Watch.objects.select_for_update().get_or_create(subnet=subnet, defaults={"next_at": timezone.now()})
    return watch


@transaction.atomic
def ask_to_watch(*, subnet: Subnet, actor: Actor) -> None:
    """A person wants the next look at once."""
    watch_of(subnet)
    watch_soon(subnet=subnet, now=timezone.now())
    subject = Subject(kind="subnet", key=subnet.public_id, label=subnet.name)
    record(action=Action.OBSERVATION_REQUEST, actor=actor, subject=subject, after={"why": "watch"})


def watch_soon(*, subnet: Subnet, now: datetime) -> None:
    """Have the subnet watched at the next tick instead of at its turn."""
    Watch.objects.filter(subnet=subnet).update(next_at=now, asked_at=None)


def take_over(row: Drift, *, now: datetime) -> None:
    """Note that the differences of a FILE row became staged changes: the next rollout may overwrite these bytes."""
    Drift.objects.filter(pk=row.pk, closed_at=None).update(adopted_digest=row.facts.get("digest") or "", adopted_at=now)


def subject_of(row: Drift) -> Subject:
    """The row as an event names it."""
    return Subject(kind="drift", key=row.public_id, label=f"{row.get_kind_display()}: {row.key} on {row.subnet}")


def _see(subnet: Subnet, row: Drift | None, finding: Finding, *, now: datetime, settled: Settled) -> None:
    """It is there: make its row, or refresh it; tell of it once it is believed."""
    needed = 2 if finding.kind in SEEN_TWICE else 1
    is_new = row is None
    if row is None:
        row = Drift(subnet=subnet, kind=finding.kind, key=finding.key, first_seen_at=now, sightings=0)
    was_open = row.opened_at is not None
    same = (list(finding.details), dict(finding.facts)) == (row.details, row.facts)
    if not same and row.opened_at is not None:
        settled.changed.append(row)
    row.details, row.cause, row.facts = list(finding.details), finding.cause, dict(finding.facts)
    row.sightings, row.missed, row.last_seen_at = row.sightings + 1, 0, now
    if row.opened_at is None:
        if row.sightings >= needed:
            row.opened_at = now
            settled.opened.append(row)
        else:
            settled.doubtful = True
    columns = ["details", "cause", "facts", "sightings", "missed", "last_seen_at"]
    if is_new:
        row.save()
    else:
        row.save(update_fields=columns if was_open == (row.opened_at is not None) else [*columns, "opened_at"])


def _miss(row: Drift, *, now: datetime, proven_at: datetime | None, settled: Settled) -> None:
    """It was not there where it would have been seen."""
    if row.opened_at is None:  # it passed before anybody was told
        row.delete()
        return
    is_proven = proven_at is not None and proven_at > row.last_seen_at
    row.missed += 1
    if row.missed < (1 if is_proven or row.kind in CERTAIN else MISSES):
        settled.doubtful = True
        row.save(update_fields=["missed"])
        return
    row.closed_at = now
    row.closing = "A rollout proved the current revision since." if is_proven else "It was not there any more."
    row.save(update_fields=["missed", "closed_at", "closing"])
    settled.closed.append(row)


def _proven_at(subnet: Subnet) -> datetime | None:
    proven = Rollout.objects.filter(subnet=subnet, state=Rollout.State.PROVEN).order_by("-finished_at").first()
    return proven.finished_at if proven is not None else None


def _record(row: Drift, action: Action) -> None:
    seconds = (row.closed_at - (row.opened_at or row.first_seen_at)) if row.closed_at else timedelta(0)
    after: dict[str, Any] = {"kind": row.kind, "key": row.key, "details": row.details[:5], "cause": row.cause}
    if row.closed_at:
        after = {"kind": row.kind, "key": row.key, "closing": row.closing, "seconds": int(seconds.total_seconds())}
    record(action=action, actor=SYSTEM, subject=subject_of(row), after=after)
