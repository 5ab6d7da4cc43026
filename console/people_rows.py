"""How an account stands, as lamps."""

from typing import Final

from console.lamps import Colour, Lamp
from people import second_factor
from people.models import User

OPEN: Final = Lamp(Colour.GOOD, "circle-check", "open")
LOCKED: Final = Lamp(Colour.BAD, "ban", "locked")
HAS_SECOND_FACTOR: Final = Lamp(Colour.GOOD, "shield-check", "second factor")
OWES_SECOND_FACTOR: Final = Lamp(Colour.WARN, "hourglass", "sets it up at the next login")
NO_SECOND_FACTOR: Final = Lamp(Colour.IDLE, "circle-minus", "none")


def marks_of(person: User) -> tuple[Lamp, Lamp]:
    """Whether the account is open, and whether it has the second factor that its role demands.

    Takes a person from `with_second_factor`.
    """
    if person.has_second_factor:  # type: ignore[attr-defined]  # annotated by the queryset
        factor = HAS_SECOND_FACTOR
    else:
        factor = OWES_SECOND_FACTOR if second_factor.is_due(person) else NO_SECOND_FACTOR
    return (OPEN if person.is_active else LOCKED), factor
