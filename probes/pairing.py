"""Who is probed with whom: rounds of disjoint pairs, so that no host is in two pairs at once.

The circle method (kvprobe 5): n hosts need n - 1 rounds of n/2 pairs; an odd number gets a bye. A *position* counts
pairs over all rounds and both directions, so it is the one number to keep between ticks: whoever takes the next k
pairs from a position, again and again, covers every ordered pair exactly once a cycle.
"""

from collections.abc import Iterator, Sequence
from typing import Final

type Pair = tuple[int, int]  # sender, target: ids of hosts

DIRECTIONS: Final = 2


def rounds(hosts: Sequence[int]) -> int:
    """How many rounds cover every pair once: n - 1, or n for an odd number."""
    n = len(hosts)
    return 0 if n < 2 else n - 1 + n % 2


def pairs_of_round(hosts: Sequence[int], number: int) -> list[Pair]:
    """The disjoint pairs of round `number` (taken modulo their count).

    Which end sends depends on the two places, such that every host sends in about half of its pairs.
    """
    count = rounds(hosts)
    if count == 0:
        return []
    n = count + 1  # with the bye
    turn = number % count
    # Place n - 1 stands still, the others move one place a round; place len(hosts) is the bye.
    circle = [(turn + offset) % count for offset in range(count)]
    places = [(n - 1, circle[0])] + [(circle[i], circle[count - i]) for i in range(1, n // 2)]
    pairs = []
    for one, other in places:
        if max(one, other) < len(hosts):
            low, high = min(one, other), max(one, other)
            sender, target = (low, high) if (low + high) % 2 else (high, low)
            pairs.append((hosts[sender], hosts[target]))
    return pairs


def quick_round(hosts: Sequence[int]) -> list[Pair]:
    """One round in which each host takes part once: the upper half with the lower half (ClusterKit's quick mode)."""
    half = len(hosts) // 2
    return list(zip(hosts[:half], hosts[len(hosts) - half :], strict=True))


def full_cycle(hosts: Sequence[int]) -> int:
    """How many ordered pairs there are: positions run from 0 to this, and begin anew."""
    return len(hosts) * (len(hosts) - 1)


def take(hosts: Sequence[int], position: int) -> Iterator[Pair]:
    """The ordered pairs from `position` on, one cycle of them: first all rounds one way, then all the other way.

    A position beyond the cycle is taken modulo its length, so a host that joined or left moves the place and loses
    nothing for good: what is missed grows stale, and stale pairs go first.
    """
    total = full_cycle(hosts)
    if total == 0:
        return
    per_round = len(hosts) // 2
    count = rounds(hosts)
    start = position % total
    at_round, at_pair = divmod(start, per_round)
    given = 0
    while given < total:
        backward = at_round // count % DIRECTIONS == 1
        for sender, target in pairs_of_round(hosts, at_round)[at_pair:]:
            yield (target, sender) if backward else (sender, target)
            given += 1
            if given == total:
                return
        at_pair = 0
        at_round += 1
