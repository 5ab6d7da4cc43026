"""Whose message goes next: who has least on its way, and of those the one that waits longest. Pure.

An endpoint that hangs holds its place for six seconds. So nobody, however many endpoints or messages it has, holds
more than OF_OWNER places; and tenants together leave OF_OWNER places free, so that the operators’ alarms
never wait for a tenant.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from webhooks.terms import AT_ONCE, OF_ONE, OF_OWNER


@dataclass(frozen=True, slots=True)
class Held:
    """One place: for which endpoint, of which tenant (None: of the operators)."""

    endpoint: int
    owner: int | None


def full(held: Iterable[Held]) -> tuple[set[int], set[int | None]]:
    """The endpoints, and the owners, that have all the places they may have."""
    places = list(held)
    endpoints = Counter(place.endpoint for place in places)
    owners = Counter(place.owner for place in places)
    return (
        {endpoint for endpoint, count in endpoints.items() if count >= OF_ONE},
        {owner for owner, count in owners.items() if count >= OF_OWNER},
    )


def choose(waiting: Sequence[tuple[int, Held]], held: Iterable[Held]) -> list[int]:
    """The keys of `waiting` (the longest waiting first) that go now, in the order in which they go."""
    endpoints, owners, tenants = Counter[int](), Counter[int | None](), 0
    for place in held:
        endpoints[place.endpoint] += 1
        owners[place.owner] += 1
        tenants += place.owner is not None
    lines: dict[int | None, list[tuple[int, Held]]] = {}
    for key, place in waiting:
        lines.setdefault(place.owner, []).append((key, place))
    for line in lines.values():
        line.reverse()  # taken from the end
    chosen: list[int] = []
    while lines and owners.total() < AT_ONCE:
        owner = min(lines, key=lambda one: owners[one])  # of equals the first: it waits longest
        if owners[owner] >= OF_OWNER or not lines[owner] or (owner is not None and tenants >= AT_ONCE - OF_OWNER):
            del lines[owner]
            continue
        key, place = lines[owner].pop()
        if endpoints[place.endpoint] >= OF_ONE:
            continue
        chosen.append(key)
        endpoints[place.endpoint] += 1
        owners[owner] += 1
        tenants += owner is not None
    return chosen
