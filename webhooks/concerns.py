"""Whom an event concerns beside the tenant that it names: rooms above, which know rows, say it here.

A rollout touches partitions of several tenants, and its event names none of them.
"""

from collections.abc import Callable, Collection

from audit.models import Event

type Concern = Callable[[Event], Collection[str]]  # → public ids of tenants

_known: dict[str, Concern] = {}


def register(name: str, concern: Concern) -> None:
    """Ask `concern` for each event that tenants may be told of. Registering the same name again replaces it."""
    _known[name] = concern


def tenants_of(event: Event) -> set[str]:
    """Public ids of the tenants that `event` concerns."""
    found = {event.tenant_key} if event.tenant_key else set()
    for concern in _known.values():
        found |= set(concern(event))
    return found
