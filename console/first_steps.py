"""The way from an empty database to a fabric that FabricUI may write: five steps, each done, next, or later.

Pure: it is told what there is.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from console.lamps import Colour, Lamp

ENOUGH_MANAGERS: Final = 2


class At(StrEnum):
    """Where a step stands."""

    DONE = "done"
    NEXT = "next"
    LATER = "later"


_LAMPS: Final = {
    At.DONE: Lamp(Colour.GOOD, "circle-check", "done"),
    At.NEXT: Lamp(Colour.BUSY, "arrow-right", "next"),
    At.LATER: Lamp(Colour.IDLE, "circle-dashed", "later"),
}


@dataclass(frozen=True, slots=True)
class Known:
    """What there is already."""

    has_subnet: bool = False
    managers: int = 0
    good_managers: int = 0  # whose newest check found nothing missing
    has_revision: bool = False
    servers: int = 0
    may_write: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One step; `name` is what the page calls its section."""

    name: str
    title: str
    at: At

    @property
    def lamp(self) -> Lamp:
        """How it is drawn."""
        return _LAMPS[self.at]


def steps(known: Known) -> tuple[Step, ...]:
    """The five steps in their order; the first that is not done is next. A step may be done before an earlier one."""
    table = (
        ("subnet", "Name the subnet", known.has_subnet),
        ("managers", "Enrol two manager hosts", known.good_managers >= ENOUGH_MANAGERS),
        ("revision", "Take over what stands there, or start fresh", known.has_revision),
        ("servers", "Let servers register themselves", known.servers > 0),
        ("write", "Qualify the subnet and switch writing on", known.may_write),
    )
    first_open = next((name for name, _, is_done in table if not is_done), "")
    return tuple(
        Step(name, title, At.DONE if is_done else At.NEXT if name == first_open else At.LATER)
        for name, title, is_done in table
    )
