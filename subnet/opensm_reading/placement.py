"""From named members to each port's P_Key table: who is in which partition, and at which index it lands.

`osm_prtn_add_port`, `osm_prtn_add_all` (osm_prtn.c), `osm_pkey_mgr_process` and `pkey_mgr_update_port`
(osm_pkey_mgr.c), for the first sweep of a freshly started SM over ports whose table begins as [0] = 0xffff.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from subnet.guid import GUID
from subnet.opensm_reading.fabric import EndPort, Fabric
from subnet.opensm_reading.partitions import DEFAULT_KEY, PartitionState
from subnet.opensm_reading.store import Store
from subnet.opensm_reading.tokens import ALL, ALL_CAS, ALL_ROUTERS, ALL_SWITCHES, BOTH, FULL, LIMITED, SELF

FULL_BIT = 0x8000
FRESH: Mapping[int, int] = {0: 0xFFFF}
_BLOCK = 32
_OF_TYPE = {"CA": ALL_CAS, "SW": ALL_SWITCHES, "RT": ALL_ROUTERS}
# Default's members before the file is read: every port limited, then the SM's port full (prtn_make_default).
_DEFAULT_ALL, _DEFAULT_SELF = -2, -1
_NEVER = -3


@dataclass(frozen=True, slots=True)
class Placed:
    """One port's table (index → entry) and the entries for which it had no room (ERR 0512)."""

    table: dict[int, int]
    dropped: tuple[int, ...]


class Members:
    """Which ports of a fabric are in which partition once the file has been read: the last spec that names a port wins.

    With allow_both_pkeys a full and a limited entry may stand side by side, but only from one spec that says `both`:
    any other removes the port from the opposite map (`manage_membership_change`).
    """

    def __init__(self, store: Store, fabric: Fabric, *, allow_both_pkeys: bool) -> None:
        self._codes = store.codes
        self._fabric = fabric
        self._allow_both = allow_both_pkeys
        self._numbers = {guid.number: port for guid, port in fabric.ports.items()}
        self._sm_number = fabric.sm_port.number

    def of(self, state: PartitionState) -> Iterator[tuple[EndPort, int]]:
        """Each port in the partition with its membership: LIMITED, FULL or (with allow_both_pkeys) BOTH."""
        is_default = state.key == DEFAULT_KEY
        for port, last in self._last(state.named, state.scopes, is_default=is_default):
            if last == _DEFAULT_ALL:
                yield port, LIMITED
            elif last == _DEFAULT_SELF:
                yield port, FULL
            else:
                membership = self._codes[last] & 3
                yield port, FULL if membership == BOTH and not self._allow_both else membership

    def index0_keys(self, states: list[PartitionState]) -> dict[GUID, int]:
        """The entry that each port must hold at index 0 because of `indx0`, which the port's last one wins.

        A later spec of the same P_Key without the flag takes it back (`osm_prtn_add_port`).
        """
        winners: dict[GUID, tuple[int, PartitionState]] = {}
        for state in states:
            if not state.indx0_named and not state.indx0_scopes:
                continue
            for port, last in self._last(state.indx0_named, state.indx0_scopes, is_default=False):
                if last > winners.get(port.guid, (_NEVER, state))[0]:
                    winners[port.guid] = last, state
        keys: dict[GUID, int] = {}
        for guid, (last, state) in winners.items():
            port = self._fabric.ports[guid]
            if self._latest(port, state.named, state.scopes, is_default=False) > last:
                continue
            membership = self._codes[last] & 3
            limited = membership == LIMITED or (membership == BOTH and self._allow_both)
            keys[guid] = state.key if limited else state.key | FULL_BIT
        return keys

    def _last(
        self, named: dict[int, int], scopes: dict[int, int], *, is_default: bool
    ) -> Iterator[tuple[EndPort, int]]:
        """Each port that is named at all, with the spec that named it last."""
        numbers = self._numbers
        if is_default or any(kind != SELF for kind in scopes):
            for port in numbers.values():
                last = self._latest(port, named, scopes, is_default=is_default)
                if last != _NEVER:
                    yield port, last
            return
        few, many = (named, numbers) if len(named) < len(numbers) else (numbers, named)
        here = {number for number in few if number in many}
        if SELF in scopes and self._sm_number in numbers:
            here.add(self._sm_number)
        for number in here:
            yield numbers[number], self._latest(numbers[number], named, scopes, is_default=False)

    def _latest(self, port: EndPort, named: dict[int, int], scopes: dict[int, int], *, is_default: bool) -> int:
        number = port.guid.number
        last = max(named.get(number, _NEVER), scopes.get(ALL, _NEVER), scopes.get(_OF_TYPE[port.node_type], _NEVER))
        if number == self._sm_number:
            last = max(last, scopes.get(SELF, _NEVER), _DEFAULT_SELF if is_default else _NEVER)
        return max(last, _DEFAULT_ALL) if is_default else last


def fallback_keys(fabric: Fabric, index0: Mapping[GUID, int]) -> dict[GUID, int]:
    """What `indx0` of a rejected file still does: Default is made again, which takes back only its own index 0."""
    return {guid: entry for guid, entry in index0.items() if guid in fabric.ports and entry & 0x7FFF != DEFAULT_KEY}


def place(entries: list[int], *, capacity: int, index0: int, allow_both_pkeys: bool) -> Placed:
    """The table of a port that shall hold `entries`, given in OpenSM's order, by a freshly started SM.

    `index0` is the entry that indx0 wants first, 0 without one. Identity of keys includes bit 15 only with
    allow_both_pkeys.
    """

    def identity(entry: int) -> int:
        return entry if allow_both_pkeys else entry & 0x7FFF

    wanted_first = identity(index0)
    default = 0xFFFF if allow_both_pkeys else DEFAULT_KEY
    held = {identity(entry): index for index, entry in FRESH.items()}
    staying: list[tuple[int, int]] = []
    coming: list[int] = []
    for entry in entries:
        index = held.get(identity(entry))
        # pkey_mgr_process_physical_port: a held key stays, unless index 0 is for another one.
        moves = index == 0 and (
            wanted_first not in (0, identity(entry)) or (not index0 and entry & 0x7FFF != DEFAULT_KEY)
        )
        if index is None or moves:
            coming.append(entry)
        else:
            staying.append((index, entry))
    table = dict(reversed(staying))
    last_used = max(table, default=-1)  # last_pkey_idx - 1
    dropped: list[int] = []
    for entry in coming:
        if (not index0 and identity(entry) == default) or (index0 and identity(entry) == wanted_first):
            index = 0
        else:
            index = last_used + 1 if last_used >= 0 else 1
        if index >= capacity:
            free = _free_slot(table, capacity) if identity(entry) != default else None
            if free is None:
                dropped.append(entry)
                continue
            index = free
        table[index] = entry
        last_used = max(last_used, index)
    return Placed(dict(sorted(table.items())), tuple(dropped))


def _free_slot(table: dict[int, int], capacity: int) -> int | None:
    """The lowest free slot but index 0 (`osm_pkey_find_next_free_entry`); None when the table is full."""
    for index in range(1, -(-capacity // _BLOCK) * _BLOCK):
        if index not in table:
            return index if index < capacity else None
    return None
