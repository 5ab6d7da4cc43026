"""The board's search: words and tokens such as `state:down tenant:acme partition:training srv-0`. Pure.

Each word must be found; a token narrows one thing. Quotes keep words together: tenant:"Acme Corp".
"""

import re
from dataclasses import dataclass
from typing import Final, Protocol, Self

TOKENS: Final = ("state", "tenant", "partition", "pkey", "by", "lamp")
STATES: Final = ("down", "staged", "waits", "conflict", "unconfirmed", "trouble", "limited", "fine")
_PIECE: Final = re.compile(r'(?:(?P<key>[a-z]+):)?(?:"(?P<quoted>[^"]*)"?|(?P<word>\S*))', re.IGNORECASE)
MOST: Final = 200  # characters that are looked at


class Sought(Protocol):
    """What the search looks through, of one card in its column."""

    @property
    def search(self) -> str: ...  # words, lower case
    @property
    def states(self) -> frozenset[str]: ...  # of STATES
    @property
    def lamps(self) -> str: ...  # what the four lamps say, lower case
    @property
    def people(self) -> str: ...  # who has staged it, lower case; "me" among them


class Place(Protocol):
    """What it looks through of a column."""

    @property
    def name(self) -> str: ...
    @property
    def tenant(self) -> str: ...
    @property
    def pkey(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Search:
    """What somebody typed, understood. `mistakes` are sentences about what was not."""

    text: str
    words: tuple[str, ...] = ()
    tokens: tuple[tuple[str, str], ...] = ()
    mistakes: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Understand `text`; never raises."""
        words: list[str] = []
        tokens: list[tuple[str, str]] = []
        mistakes: list[str] = []
        for piece in _PIECE.finditer(text[:MOST]):
            key, value = (piece["key"] or "").lower(), (piece["quoted"] or piece["word"] or "").lower()
            if key and key not in TOKENS:
                mistakes.append(f"There is no {key}: to search by. Use {_listed(TOKENS)}.")
            elif key == "state" and value and not any(state.startswith(value) for state in STATES):
                mistakes.append(f"There is no state {value}. Use {_listed(STATES)}.")
            elif key and value:
                tokens.append((key, value))
            elif value:
                words.append(value)
        return cls(text, tuple(words), tuple(tokens), tuple(mistakes))

    def __bool__(self) -> bool:
        return bool(self.words or self.tokens or self.mistakes)

    def takes_column(self, column: Place) -> bool:
        """Whether anything in this column can match."""
        looked = {"tenant": column.tenant.lower(), "partition": column.name.lower(), "pkey": column.pkey}
        return not self.mistakes and all(value in looked[key] for key, value in self.tokens if key in looked)

    def takes(self, card: Sought) -> bool:
        """Whether a card matches, in a column that does."""
        for key, value in self.tokens:
            if key == "state" and not any(state.startswith(value) for state in card.states):
                return False
            if key == "by" and value not in card.people:
                return False
            if key == "lamp" and value not in card.lamps:
                return False
        return all(word in card.search for word in self.words)


def _listed(names: tuple[str, ...]) -> str:
    return " or ".join((", ".join(names[:-1]), names[-1]))
