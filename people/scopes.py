"""What an API token may be for: each room that answers programs says so here when it starts.

A scope narrows what its person may do; it never widens it: the door asks for both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Scope:
    """One thing that a token can be made for, in the words of the page, and who may make such a token."""

    name: str
    words: str
    is_for: Callable[[Any], bool]


_SCOPES: dict[str, Scope] = {}


def register(name: str, words: str, is_for: Callable[[Any], bool]) -> None:
    """Offer a scope; `is_for(user)` says to whom."""
    _SCOPES[name] = Scope(name, words, is_for)


def every() -> list[Scope]:
    """All scopes, by name."""
    return [scope for _, scope in sorted(_SCOPES.items())]


def scopes_of(user: Any) -> list[Scope]:
    """The scopes that `user` may put into a token, by name."""
    return [scope for scope in every() if scope.is_for(user)]
