"""Both witnesses as a page shows them: the lamp of a verdict, and its points side by side."""

from dataclasses import dataclass
from datetime import datetime

from console.lamps import UNKNOWN, Colour, Lamp
from inventory.models import Port
from subnet.witness import ABSENT, Point, Verdict

_VERDICTS = {
    Verdict.AGREES: Lamp(Colour.GOOD, "circle-check", "both agree"),
    Verdict.DISAGREES: Lamp(Colour.BAD, "alert-triangle", "they disagree"),
    Verdict.UNPROVABLE: Lamp(Colour.IDLE, "help-circle", "not provable here"),
    Verdict.UNSEEN: Lamp(Colour.WARN, "eye", "never seen"),
    Verdict.UNREGISTERED: Lamp(Colour.WARN, "circle-dashed", "never registered"),
}


def _is_older(seen_at: datetime | None, looked_at: datetime | None) -> bool:
    return seen_at is not None and looked_at is not None and seen_at < looked_at


@dataclass(frozen=True, slots=True)
class Heard:
    """One port's witnesses: the verdict, and what they say point by point."""

    port: Port
    device: str
    lamp: Lamp
    points: tuple[tuple[Point, Lamp], ...]
    is_gone: bool  # the last look did not show it
    has_moved: bool  # its cable ends elsewhere than when it was confirmed
    is_stale: bool  # seen, but not at the newest look: its leaf did not answer there


def verdict(value: str) -> Lamp:
    """How a verdict is drawn; *unknown* while nothing was compared yet."""
    try:
        return _VERDICTS[Verdict(value)]
    except (ValueError, KeyError):
        return UNKNOWN


def heard(port: Port) -> Heard:
    """What both say of `port`, with its HCA and subnet fetched. No query."""
    points = [Point.from_json(value) for value in port.points]
    is_gone = port.seen_state == ABSENT
    home = (port.home_leaf_guid, port.home_leaf_port)
    return Heard(
        port=port,
        device="" if port.hca is None else port.hca.device,
        lamp=verdict(port.testimony),
        points=tuple((point, verdict(point.verdict)) for point in points),
        is_gone=is_gone,
        has_moved=None not in home and home != (port.leaf_guid, port.leaf_port),
        is_stale=not is_gone and _is_older(port.seen_at, port.subnet.looked_at),
    )
