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
