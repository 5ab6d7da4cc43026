"""One port's P_Key table as one OpenSM process keeps it: the table, and at which index it remembers each key.

A model of OpenSM 3.3.23 with keep_pkey_indexes TRUE and allow_both_pkeys FALSE on a little-endian host
(osm_pkey_mgr.c: pkey_mgr_process_physical_port, pkey_mgr_update_port; osm_pkey.c; ground truth: OpenSM, 5.1 to 5.4).
The contract test `tests/subnet/test_index_in_opensm.py` runs it beside the real one.
"""

from collections import deque
from collections.abc import Mapping
from typing import Self

from subnet.pkey import DEFAULT, FULL_BIT

_DEFAULT = int(DEFAULT)


class PortSlots:
    """What an OpenSM process that has just read `table` (index → 16-bit entry) knows of a port, and what it does next.

    `capacity` counts slots. `remembered` maps an entry, membership bit included, to the index where this process last
    put it; `used` is one more than the highest index in use so far. Both outlive the keys themselves.
    """

    __slots__ = ("capacity", "remembered", "table", "used")

    def __init__(self, table: Mapping[int, int], capacity: int) -> None:
        self.capacity = capacity
        self.table = dict(table)
        self.remembered: dict[int, int] = {}
        self.used = 0

    @classmethod
    def settled(cls, table: Mapping[int, int], capacity: int) -> Self:
        """The same after the process has swept `table` once: it remembers what stands there."""
        slots = cls(table, capacity)
        slots.sweep(keys_of(table))
        return slots

    def copy(self) -> Self:
        """Another one that knows the same."""
        other = type(self)(self.table, self.capacity)
        other.remembered = dict(self.remembered)
        other.used = self.used
        return other

    def reread(self, table: Mapping[int, int]) -> None:
        """Take `table` for what the port holds now, as a process does that becomes the master; it forgets nothing."""
        self.table = dict(table)

    def sweep(self, wanted: Mapping[int, int]) -> "Sweep":
        """Give the port the keys `wanted` (15-bit key → entry, Default included), as one heavy sweep does.

        A key that stays keeps its index, also when its membership changes; a new one takes the index that is
        remembered for it, else the one after the last that was ever used, else the lowest that is free.
        """
        at = self._standing()
        placed: dict[int, int] = {}
        new: deque[int] = deque()
        # Partitions are gone through in the order of their key as it lies in memory, the low byte first.
        for key in sorted(wanted, key=in_memory):
            index = at.get(key)
            if index is not None and (index == 0) == (key == _DEFAULT):
                placed[index] = wanted[key]
                continue
            if index is not None:  # at index 0 in Default's place, or Default elsewhere
                self._forget(index)
            new.append(wanted[key])
        for index, number in placed.items():
            self._remember(number, index)
        dropped: list[int] = []
        overwritten: dict[int, int] = {}
        while new:
            number = new.popleft()
            index = self.remembered.get(number)
            if index == 0:
                self._forget(0)
                new.append(number)
                continue
            if index is None:
                index = self._unused(placed, is_default=number & ~FULL_BIT == _DEFAULT)
                if index is None:
                    dropped.append(number)
                    continue
                self._remember(number, index)
            elif index in placed:
                overwritten[placed[index]] = number
            placed[index] = number
        self.table = placed
        return Sweep(tuple(dropped), overwritten)

    def _standing(self) -> dict[int, int]:
        """15-bit key → the index that counts for it: of two, the full one, else the lower."""
        at: dict[int, int] = {}
        for index, number in sorted(self.table.items()):
            known = at.get(number & ~FULL_BIT)
            if known is None or self.table[known] < number:
                at[number & ~FULL_BIT] = index
        return at

    def _unused(self, placed: Mapping[int, int], *, is_default: bool) -> int | None:
        """The index for a key that none is remembered for; None when the table is full."""
        if is_default:
            return 0
        index = self.used or 1
        if index < self.capacity:
            return index
        # The table has wrapped: the lowest index that this sweep has not taken.
        lowest = next((free for free in range(1, self.capacity) if free not in placed), None)
        if lowest is not None:
            self._forget(lowest)
        return lowest

    def _remember(self, number: int, index: int) -> None:
        self.used = max(self.used, index + 1)
        self.remembered[number] = index

    def _forget(self, index: int) -> None:
        """Forget one key that was put at `index`. A key that was there as full and as limited is known twice, and
        OpenSM forgets only the first of them: the wrap defect.
        """
        known = [number for number, place in self.remembered.items() if place == index]
        if not known:
            return
        del self.remembered[min(known, key=in_memory)]
        if self.used == index + 1:
            self.used = max((place + 1 for place in self.remembered.values()), default=0)


class Sweep:
    """What one sweep did beside placing keys.

    `dropped` are the entries that found no room (ERR 0512), `overwritten` those that lost their slot to another key
    by the wrap defect: entry that stood there → entry that stands there now.
    """

    __slots__ = ("dropped", "overwritten")

    def __init__(self, dropped: tuple[int, ...], overwritten: Mapping[int, int]) -> None:
        self.dropped = dropped
        self.overwritten = overwritten


def keys_of(table: Mapping[int, int]) -> dict[int, int]:
    """15-bit key → entry of a table; of a key that stands there twice, what counts for OpenSM: the full one."""
    keys: dict[int, int] = {}
    for number in table.values():
        key = number & ~FULL_BIT
        keys[key] = max(number, keys.get(key, 0))
    return keys


def in_memory(number: int) -> int:
    """The order of a key or an entry in OpenSM's maps: its bytes in network order, read on a little-endian host."""
    return (number & 0xFF) << 8 | number >> 8
