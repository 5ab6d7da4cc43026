"""What rooms above add to the operator's pages: an item of the navigation, and what waits for a person on Home.

The console knows none of them; they say so here when they start.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.utils.functional import Promise

from console.lamps import Lamp


@dataclass(frozen=True, slots=True)
class Need:
    """Something that waits for a person, and where it is dealt with."""

    lamp: Lamp
    sentence: str
    address: str


type Needs = Callable[[], Sequence[Need]]

type Page = tuple[str | Promise, str, str, str]  # title, url name, icon, and the key after “g” that leads there

_pages: dict[str, Page] = {}
_needs: dict[str, Needs] = {}


def register_page(title: str | Promise, name: str, icon: str, key: str) -> None:
    """Add a page to the navigation."""
    _pages[name] = (title, name, icon, key)


def register_needs(name: str, needs: Needs) -> None:
    """Ask `needs` for what waits for a person each time Home is shown: a few queries whatever there is."""
    _needs[name] = needs


def pages() -> Sequence[Page]:
    """The added pages, as `console.frame.PAGES` has its own."""
    return tuple(_pages.values())


def needs() -> list[Need]:
    """All that the rooms above know to wait for a person."""
    return [one for ask in _needs.values() for one in ask()]
