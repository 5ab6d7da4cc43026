"""What a state looks like: colour, shape and word together, so that none of the three is needed alone.

Pure: no Django, no clock. *Unknown* is never drawn as good.
"""

from dataclasses import dataclass
from enum import StrEnum


class Colour(StrEnum):
    """The classes of static/fabricui.css: `lamp-good` and so on."""

    GOOD = "good"
    BUSY = "busy"
    WARN = "warn"
    BAD = "bad"
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class Lamp:
    """One state as it is drawn: `shape` is an icon of static/vendor/icons."""

    colour: Colour
    shape: str
    word: str


ALARM = Lamp(Colour.BAD, "alert-octagon", "alarm")
UNKNOWN = Lamp(Colour.IDLE, "help-circle", "unknown")

_ROLLOUT = {
    "QUEUED": Lamp(Colour.IDLE, "hourglass", "queued"),
    "STAGING": Lamp(Colour.BUSY, "loader-2", "staging"),
    "PLACING": Lamp(Colour.BUSY, "loader-2", "placing"),
    "RELOADING": Lamp(Colour.BUSY, "loader-2", "reloading"),
    "READING_BACK": Lamp(Colour.BUSY, "loader-2", "reading back"),
    "RESTORING": Lamp(Colour.WARN, "arrow-back-up", "restoring"),
    "PROVEN": Lamp(Colour.GOOD, "shield-check", "proven"),
    "REFUSED": Lamp(Colour.WARN, "ban", "refused"),
    "CANCELLED": Lamp(Colour.IDLE, "circle-minus", "cancelled"),
    "RESTORED": Lamp(Colour.WARN, "arrow-back-up", "restored"),
    "UNPROVEN": Lamp(Colour.WARN, "circle-dashed", "unproven"),
    "DEGRADED": Lamp(Colour.WARN, "circle-half-2", "degraded"),
    "STUCK": Lamp(Colour.BAD, "alert-octagon", "stuck"),
}
_SM = {
    "MASTER": Lamp(Colour.GOOD, "crown", "master"),
    "STANDBY": Lamp(Colour.GOOD, "player-pause", "standby"),
    "DISCOVERING": Lamp(Colour.WARN, "loader-2", "discovering"),
    "NOTACTIVE": Lamp(Colour.BAD, "plug-connected-x", "not active"),
}
_LINK = {
    "ACTIVE": Lamp(Colour.GOOD, "circle-check", "active"),
    "ARMED": Lamp(Colour.WARN, "circle-half-2", "armed"),
    "INIT": Lamp(Colour.WARN, "circle-half-2", "initialising"),
    "DOWN": Lamp(Colour.BAD, "plug-connected-x", "down"),
}
_MODE = {
    "OBSERVE": Lamp(Colour.IDLE, "eye", "observe only"),
    "PROPOSE": Lamp(Colour.IDLE, "pencil", "propose only"),
    "WRITE": Lamp(Colour.GOOD, "circle-check", "ready"),
}


def rollout(state: str) -> Lamp:
    """How a rollout's state is drawn."""
    return _ROLLOUT.get(state, UNKNOWN)


def subnet_manager(role: str | None) -> Lamp:
    """How a subnet manager's role is drawn, as sminfo prints it."""
    return _SM.get((role or "").upper(), UNKNOWN)


def link(state: str | None) -> Lamp:
    """How a port's link state is drawn; vendors write `4: ACTIVE` and `Active` for the same thing."""
    word = (state or "").rpartition(":")[2].strip().upper()
    return _LINK.get({"INITIALIZE": "INIT", "INITIALIZING": "INIT"}.get(word, word), UNKNOWN)


def port(*, is_confirmed: bool, has_conflict: bool) -> Lamp:
    """Whether a port may be staged, and if not, why."""
    if has_conflict:
        return Lamp(Colour.BAD, "alert-triangle", "conflict")
    if not is_confirmed:
        return Lamp(Colour.WARN, "circle-dashed", "unconfirmed")
    return Lamp(Colour.GOOD, "circle-check", "confirmed")


def file(*, digest: str | None, current: str, error: str | None) -> Lamp:
    """How a manager host's partitions.conf stands beside the current revision."""
    if error or not digest:
        return UNKNOWN
    if digest == current:
        return Lamp(Colour.GOOD, "circle-check", "current")
    return Lamp(Colour.BAD, "alert-triangle", "differs")


def subnet(*, mode: str, is_frozen: bool, rollout_state: str | None) -> Lamp:
    """The one lamp of a subnet in the page's head: what matters most comes first."""
    if rollout_state in {"STUCK", "UNPROVEN", "DEGRADED"}:
        return rollout(rollout_state)
    if is_frozen:
        return Lamp(Colour.WARN, "snowflake", "frozen")
    if rollout_state is not None:
        return Lamp(Colour.BUSY, "loader-2", "rolling out")
    return _MODE.get(mode, UNKNOWN)


_DRIFT = {
    "ROGUE_SM": Lamp(Colour.BAD, "alert-octagon", "rogue SM"),
    "ISOLATION_LOST": Lamp(Colour.BAD, "alert-octagon", "isolation lost"),
    "FILE": Lamp(Colour.BAD, "file-diff", "file differs"),
    "TABLE": Lamp(Colour.BAD, "alert-triangle", "table differs"),
    "TAKEOVER": Lamp(Colour.WARN, "crown", "takeover"),
    "ROLES": Lamp(Colour.WARN, "alert-triangle", "SM roles"),
    "OPTION": Lamp(Colour.WARN, "settings", "option differs"),
    "HOST": Lamp(Colour.WARN, "plug-connected-x", "manager host"),
}
_ANSWERS = {
    "yes": Lamp(Colour.GOOD, "circle-check", "yes"),
    "no": Lamp(Colour.BAD, "alert-triangle", "no"),
}


def drift(kind: str, *, is_over: bool) -> Lamp:
    """How one kind of drift is drawn."""
    lamp = _DRIFT.get(kind, UNKNOWN)
    return Lamp(Colour.IDLE, lamp.shape, lamp.word) if is_over else lamp


def drifting(*, count: int, is_alarm: bool, is_seen: bool) -> Lamp:
    """Whether a subnet is as its current revision says."""
    if is_alarm:
        return ALARM
    if count:
        return Lamp(Colour.BAD, "alert-triangle", f"{count} difference{'' if count == 1 else 's'}")
    return Lamp(Colour.GOOD, "shield-check", "nothing differs") if is_seen else UNKNOWN


def answer(word: str) -> Lamp:
    """How an answer to a question about the managers is drawn: yes, no or unknown."""
    return _ANSWERS.get(word, UNKNOWN)
