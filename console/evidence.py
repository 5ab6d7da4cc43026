"""The evidence of a rollout as its page shows it: counts, discrepancies, what was not checked, and closing words."""

from collections.abc import Iterable
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
    """What stands in `Rollout.read_back`; its shape is that of deploy/evidence.py. `found` are sentences."""

    counts: tuple[tuple[str, int], ...]
    found: tuple[str, ...]
    owed: tuple[str, ...]
    drifted: tuple[str, ...]
    not_checked: tuple[str, ...]
    log: tuple[str, ...]
    cost: str  # how long the barrier and the tables took, and how many SMPs
    second_reading: str  # which manager host read some of it too, and whether it agrees; "" when none did

    def count(self, name: str) -> int:
        """One number by its name in the evidence; 0 when it is not there."""
        return dict(self.counts).get(dict(COUNTS)[name], 0)


def evidence(rollout: Rollout) -> Evidence | None:
    """The evidence, or None while nothing was read back."""
    stored = rollout.read_back
    if not stored:
        return None
    counts = stored.get("counts", {})
    return Evidence(
        counts=tuple((words, counts[name]) for name, words in COUNTS if name in counts),
        found=_texts([*stored.get("census_problems", ()), *stored.get("discrepancies", ())]),
        owed=_texts(stored.get("owed", ())),
        drifted=_texts(stored.get("drifted", ())),
        not_checked=_texts(stored.get("not_checked", ())),
        log=_texts(stored.get("log", ())),
        cost=_cost(stored.get("seconds", {}), stored.get("smps")),
        second_reading=_second_reading(stored.get("second_reading") or {}),
    )


def _texts(values: Iterable[object]) -> tuple[str, ...]:
    return tuple(str(value) for value in values)


def _cost(seconds: dict[str, float], smps: int | None) -> str:
    """“sweep barrier 0.8 s, tables 0.3 s, 1,204 SMPs”."""
    told = [f"sweep barrier {seconds['barrier']:.1f} s"] if "barrier" in seconds else []
    told += [f"tables {seconds['tables']:.1f} s"] if "tables" in seconds else []
    return ", ".join([*told, *([f"{smps:,} SMPs"] if smps else [])])


def _second_reading(said: dict[str, Any]) -> str:
    """“sm-b, which wrote nothing, read 2 of the changed ports too, and agrees.”"""
    count = said.get("ports", 0)
    if not count:
        return ""
    agrees = "and agrees" if not said["differ"] else f"and reads {said['differ']} of them otherwise"
    whom = "1 of the changed ports" if count == 1 else f"{count} of the changed ports"
    return f"{said['host']}, whose OpenSM has written nothing, read {whom} too, {agrees}."


def closing(rollout: Rollout, found: Evidence | None) -> str:
    """What the end of the rollout means, in words that claim no more than was verified."""
    number = rollout.revision.number
    match rollout.state:
        case Rollout.State.PROVEN:
            return _proven(number, found)
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
            return "It was cancelled before anything was placed."
        case Rollout.State.RESTORED:
            return f"The fabric contradicted the plan, so revision {rollout.parent.number} was put in place again."
        case Rollout.State.STUCK:
            return (
                f"Revision {rollout.parent.number} still counts as current. No other rollout starts until a person "
                "has looked and let go here."
            )
    return ""


def _proven(number: int, found: Evidence | None) -> str:
    if found is None:
        return f"Revision {number} is proven, but its evidence is not stored."
    left = found.count("absent") + found.count("unreadable")
    others = f" {left} could not be read and {'is' if left == 1 else 'are'} checked on return." if left else ""
    return (
        f"Verified: revision {number} stands on every manager host with one and the same digest, and the P_Key tables "
        f"of the fabric, read behind a sweep barrier, agree: {found.count('proven')} of {found.count('ports')} ports "
        f"proven, {found.count('discrepancies')} discrepancies, {found.count('unaffected_ports_changed')} other ports "
        f"changed.{others}"
    )
