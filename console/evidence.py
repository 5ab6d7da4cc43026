"""The evidence of a rollout as its page shows it: counts, discrepancies, what was not checked, and closing words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deploy.models import Rollout

COUNTS = (
    ("ports", "ports compared"),
    ("proven", "proven"),
    ("absent", "absent"),
    ("unreadable", "unreadable"),
    ("discrepancies", "discrepancies"),
    ("unaffected_ports_changed", "other ports changed"),
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What stands in `Rollout.read_back`."""

    counts: tuple[tuple[str, int], ...]
    discrepancies: tuple[Mapping[str, Any], ...]
    owed: tuple[str, ...]
    not_checked: tuple[str, ...]


def evidence(rollout: Rollout) -> Evidence | None:
    """The evidence, or None while nothing was read back."""
    stored = rollout.read_back
    if not stored:
        return None
    counts = stored.get("counts", stored)
    return Evidence(
        counts=tuple((words, counts[name]) for name, words in COUNTS if name in counts),
        discrepancies=tuple(stored.get("discrepancies_found", stored.get("discrepancies", ()))),
        owed=tuple(stored.get("owed", ())),
        not_checked=tuple(stored.get("not_checked", ())),
    )


def closing(rollout: Rollout, found: Evidence | None) -> str:
    """What the end of the rollout means, in words that claim no more than was verified."""
    counts = dict(found.counts) if found else {}
    number = rollout.revision.number
    match rollout.state:
        case Rollout.State.PROVEN:
            return (
                f"Verified: revision {number} stands on every manager host with the same digest, and behind a sweep "
                f"barrier the fabric's own P_Key tables were read: {counts.get('proven', 0)} of "
                f"{counts.get('ports compared', 0)} ports proven, {counts.get('discrepancies', 0)} discrepancies, "
                f"{counts.get('other ports changed', 0)} other ports changed."
            )
        case Rollout.State.DEGRADED:
            return (
                f"Verified on the fabric, but one manager host does not hold revision {number} yet. It is owed and "
                "tried again by itself; until then a takeover would not have this revision."
            )
        case Rollout.State.UNPROVEN:
            return (
                f"Revision {number} is placed, but the fabric could not be read, so nothing is proven. It is read "
                "again by itself; nothing is restored out of ignorance."
            )
        case Rollout.State.REFUSED:
            return "Nothing was placed: the managers and the fabric are as they were."
        case Rollout.State.CANCELLED:
            return "It was cancelled before anything was staged or placed."
        case Rollout.State.RESTORED:
            return f"The fabric contradicted the plan, so revision {rollout.parent.number} was put in place again."
        case Rollout.State.STUCK:
            return (
                f"Revision {rollout.parent.number} still counts as current. No other rollout starts until a person "
                "has looked and let go here."
            )
    return ""
