"""A rollout that is taken back unless somebody confirms it: the choice on the plan page, the countdown on its own."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from deploy.models import Rollout

CHOICES: Final = (
    ("", "no, it stays by itself"),
    ("5", "within 5 minutes of the proof"),
    ("15", "within 15 minutes of the proof"),
    ("60", "within an hour of the proof"),
    ("1440", "within a day of the proof"),
)


@dataclass(frozen=True, slots=True)
class ToConfirm:
    """What waits for a person: how long still, and what happens otherwise."""

    words: str
    otherwise: str


def confirm_within(text: str) -> timedelta | None:
    """The time that was chosen on the plan page; None for none, and for what is no choice."""
    return timedelta(minutes=int(text)) if text and text in dict(CHOICES) else None


def to_confirm(rollout: Rollout, *, now: datetime) -> ToConfirm | None:
    """The countdown of a proven rollout that nobody has confirmed yet; None for every other one."""
    if rollout.confirm_by is None or rollout.confirmed_at is not None or rollout.state != Rollout.State.PROVEN:
        return None
    undoing = rollout.undone_by.order_by("-pk").first()
    if undoing is not None and undoing.state == Rollout.State.PROVEN:
        return None  # it was taken back
    back = f"Then the table of revision {rollout.parent.number} goes out again, as a rollout of its own."
    left = rollout.confirm_by - now
    if left <= timedelta(0):
        return ToConfirm("Nobody confirmed it in time: it is being taken back.", back)
    return ToConfirm(f"Confirm it within {_told(left)}, or it is taken back.", back)


def _told(left: timedelta) -> str:
    """“4 min 05 s”, “2 h 10 min”."""
    seconds = int(left.total_seconds())
    if seconds >= 3600:
        return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"
    return f"{seconds // 60} min {seconds % 60:02} s"
