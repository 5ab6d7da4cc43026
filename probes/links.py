"""Links to pages of higher rooms: those rooms say here where their pages are, and this room names none of theirs."""

from collections.abc import Callable

_where: dict[str, Callable[[str], str]] = {}


def register(kind: str, address_of: Callable[[str], str]) -> None:
    """Let pages link to what is called `kind` ("server", "rollout") by `address_of(public_id)`."""
    _where[kind] = address_of


def address(kind: str, public_id: str) -> str:
    """Where that page is; empty when no room has said."""
    address_of = _where.get(kind)
    return "" if address_of is None else address_of(public_id)
