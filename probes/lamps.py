"""How the room's states are drawn: colour, shape and word together, so that none of the three is needed alone."""

from typing import NamedTuple


class Lamp(NamedTuple):
    """One state as `{% lamp %}` draws it: a colour of static/fabricui.css, an icon, a word."""

    colour: str
    shape: str
    word: str


UNKNOWN = Lamp("idle", "help-circle", "not tested")

_VERDICT = {
    "GOOD": Lamp("good", "circle-check", "good"),
    "WARN": Lamp("warn", "alert-triangle", "worse than usual"),
    "BAD": Lamp("bad", "alert-octagon", "bad"),
    "NONE": Lamp("idle", "circle-dashed", "not judged"),
}
_STATE = {
    "QUEUED": Lamp("idle", "hourglass", "queued"),
    "CLAIMED": Lamp("busy", "hourglass", "about to begin"),
    "RUNNING": Lamp("busy", "loader-2", "running"),
    "DONE": Lamp("good", "circle-check", "measured"),
    "FAILED": Lamp("bad", "x", "failed"),
    "DROPPED": Lamp("idle", "circle-minus", "not run"),
    "DEFERRED": Lamp("idle", "hourglass", "put off"),
}


def verdict(value: str) -> Lamp:
    """How a verdict is drawn."""
    return _VERDICT.get(value, UNKNOWN)


def state(value: str) -> Lamp:
    """How a run's state is drawn."""
    return _STATE.get(value, UNKNOWN)


_ISOLATION = {
    "ISOLATED": Lamp("good", "shield-check", "isolated"),
    "LEAK": Lamp("bad", "alert-octagon", "LEAK"),
    "INCONCLUSIVE": Lamp("warn", "help-circle", "inconclusive"),
}


def isolation(verdict: str) -> Lamp:
    """How a verdict on isolation is drawn."""
    return _ISOLATION.get(verdict, UNKNOWN)


def isolation_state(state: str) -> Lamp:
    """How a check of isolation without a verdict is drawn."""
    return _STATE.get(state, UNKNOWN)


def incident(*, is_acknowledged: bool, has_recovered: bool) -> Lamp:
    """How an incident is drawn."""
    if is_acknowledged:
        return Lamp("idle", "circle-check", "acknowledged")
    return Lamp("warn", "alert-triangle", "good again") if has_recovered else Lamp("bad", "alert-octagon", "bad")


def leak(*, is_acknowledged: bool, has_recovered: bool) -> Lamp:
    """How the incident of a leak is drawn."""
    if is_acknowledged:
        return Lamp("idle", "circle-check", "acknowledged")
    return Lamp("warn", "shield-check", "isolated again") if has_recovered else Lamp("bad", "alert-octagon", "critical")
