"""What the drift pages show: open rows with their words, how old the coverage is, the posture, and what is over."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.utils import timezone

from console import lamps
from console.standbys import standbys
from deploy import drifting, files, queries
from deploy.drift_models import Drift, Watch
from inventory.models import Subnet
from partitions import drift_adoption
from partitions.errors import AdoptionRefused
from subnet.errors import SubnetError
from subnet.file_drift import FileDrift
from subnet.plan import unified_diff

MOST_OVER: Final = 20
LATE: Final = 4  # intervals without a look, after which the watch is not believed to run
MENDED: Final = frozenset({Drift.Kind.FILE, Drift.Kind.TABLE, Drift.Kind.ISOLATION_LOST})  # by putting back


@dataclass(frozen=True, slots=True)
class DriftRow:
    """One row of drift as a page draws it."""

    row: Drift
    lamp: lamps.Lamp
    head: str
    details: tuple[str, ...]

    @property
    def has_page(self) -> bool:
        """Whether there is more to see than these sentences."""
        return self.row.kind == Drift.Kind.FILE or len(self.row.details) > len(self.details) + 1


@dataclass(frozen=True, slots=True)
class Check:
    """One question about the managers with its lamp."""

    question: str
    lamp: lamps.Lamp
    sentence: str
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class DriftedFile:
    """A file that differs: as text, and as OpenSM reads it. `trouble` says why the latter cannot be told."""

    diff: str
    explained: FileDrift | None
    trouble: str


def shown(row: Drift, *, most: int = 1000) -> DriftRow:
    """The row with its lamp and its first sentences."""
    head, *rest = row.details or [str(row)]
    return DriftRow(row, lamps.drift(row.kind, is_over=row.closed_at is not None), head, tuple(rest[:most]))


def overview(subnet: Subnet, *, ticked: Collection[str] = ()) -> dict[str, Any]:
    """Everything of the drift page beside the frame: three queries. `ticked` standbys are to be gone without."""
    now = timezone.now()
    watch = Watch.objects.filter(subnet=subnet).first() or Watch(subnet=subnet, next_at=now)
    rows = drifting.open_drift(subnet)
    over = Drift.objects.filter(subnet=subnet).exclude(closed_at=None).exclude(opened_at=None).order_by("-closed_at")
    late = timedelta(seconds=settings.WATCH_INTERVAL_S * LATE)
    checked_at = watch.checked_at
    return {
        "watch": watch,
        "is_late": checked_at is None or now - checked_at > late,
        "state": lamps.drifting(count=len(rows), is_alarm=any(row.is_alarm for row in rows), is_seen=bool(checked_at)),
        "rows": [shown(row, most=6) for row in rows],
        "can_put_back": any(row.kind in MENDED for row in rows),
        "rogue": any(row.kind == Drift.Kind.ROGUE_SM for row in rows),
        "standbys": standbys(watch.managers, ticked=ticked),
        "checks": _checks(watch),
        "over": [shown(row) for row in over[:MOST_OVER]],
        "interval_s": settings.WATCH_INTERVAL_S,
    }


def file_of(row: Drift) -> DriftedFile | None:
    """What differs in the file of a FILE row; None for other kinds. Seconds for a large file."""
    if row.kind != Drift.Kind.FILE:
        return None
    digest = row.facts.get("digest") or ""
    current = queries.current_revision(row.subnet)
    standing = None if current is None else files.Standing.of(current)
    found = files.contents(row.subnet, [digest]).get(digest, b"")
    diff = "" if standing is None else unified_diff(standing.data, found, row.key)
    diff = diff.replace(f"{row.key} (now)", f"revision {standing.number if standing else ''}", 1)
    diff = diff.replace(f"{row.key} (planned)", f"{row.key} (found)", 1)
    try:
        return DriftedFile(diff, drift_adoption.explain(row), "")
    except (AdoptionRefused, SubnetError) as error:
        return DriftedFile(diff, None, str(error))


def _checks(watch: Watch) -> list[Check]:
    return [
        Check(one["question"], lamps.answer(one["answer"]), one["sentence"], tuple(sorted(one["values"].items())))
        for one in watch.posture
    ]
