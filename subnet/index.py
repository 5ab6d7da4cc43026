"""At which index of a port's P_Key table each key will stand after the next sweep.

A key that stays keeps its index: live connections use the index. Where a new key lands also depends on slots the
running SM remembers, so the answer is a set (ground truth: OpenSM, 5.1 and 5.4; read-back, 3).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from subnet.pkey import DEFAULT, FULL_BIT, Membership, PKey, entry, entry_text


@dataclass(frozen=True, slots=True)
class Hazard:
    """Something a person should know before the change goes out."""

    kind: str
    sentence: str


@dataclass(frozen=True, slots=True)
class PortHistory:
    """The tables that one port is known to have held since the present master's OpenSM process started, oldest first.

    Each maps index to 16-bit entry; the last is the newest one that is known. `is_whole` says that the port held no
    other table since then; without it other keys may have passed through, and predictions stay wide.
    """

    tables: tuple[Mapping[int, int], ...] = ()
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Prediction:
    """Surviving keys with their exact index, and for each new entry every index it may take.

    `new` holds for a re-read by the present master, `after_takeover` for a subnet manager that takes over and then
    reads the same file; the survivors are the same for both.
    """

    survivors: Mapping[int, int] = field(default_factory=dict)  # index → 16-bit entry
    new: Mapping[int, frozenset[int]] = field(default_factory=dict)  # 16-bit entry → possible indexes
    hazards: tuple[Hazard, ...] = ()
    after_takeover: Mapping[int, frozenset[int]] = field(default_factory=dict)  # 16-bit entry → possible indexes


def predict(
    observed: Mapping[int, int],
    capacity: int,
    wanted: Mapping[PKey, Membership],
    default: Membership,
    *,
    history: PortHistory | None = None,
) -> Prediction:
    """Where OpenSM will put the wanted keys of one port whose table is `observed` (index → entry).

    `history` narrows the sets of new keys; without it they are as wide as an unknown past makes them.

    `wanted` holds the keys beside Default; `default` is the port's membership in Default; `capacity` counts slots.
    Assumes keep_pkey_indexes TRUE and allow_both_pkeys FALSE, OpenSM's defaults. The set of a new key is every slot
    from 1 that no surviving key holds: a slot the SM remembers, the one after the last ever used, or, when the table
    has wrapped, the lowest hole (osm_pkey_mgr.c: pkey_mgr_update_port). It is empty when the table has no room.
    """
    target = {int(pkey): entry(pkey, membership) for pkey, membership in wanted.items()}
    held: dict[int, list[int]] = {}
    for index, number in sorted(observed.items()):
        held.setdefault(number & ~FULL_BIT, []).append(index)

    # Default is put at index 0 whatever stands there; nothing else is.
    survivors = {0: entry(DEFAULT, default)} if observed else {}
    unplaced: list[int] = []
    for key, number in target.items():
        indexes = held.get(key, [])
        if len(indexes) == 1 and indexes[0] != 0:
            survivors[indexes[0]] = number
        else:
            unplaced.append(number)
    room = frozenset(range(1, capacity)) - survivors.keys()
    new = dict.fromkeys(unplaced, room)
    target[int(DEFAULT)] = entry(DEFAULT, default)
    hazards = tuple(_hazards(observed, capacity, target, held, unplaced, room))
    if not observed:
        new[entry(DEFAULT, default)] = frozenset({0})
    return Prediction(survivors=survivors, new=new, hazards=hazards, after_takeover=dict(new))


def _hazards(
    observed: Mapping[int, int],
    capacity: int,
    target: Mapping[int, int],
    held: Mapping[int, list[int]],
    unplaced: Sequence[int],
    room: frozenset[int],
) -> list[Hazard]:
    """What can go wrong at this port, the worst first."""
    found: list[Hazard] = []
    if len(target) > capacity:
        found.append(
            Hazard(
                "table_full",
                f"The port has room for {capacity} keys and is to hold {len(target)}: OpenSM leaves some out "
                "(ERR 0512) and does not choose by the file's order. Take the port out of other partitions first.",
            )
        )
    elif len(target) >= 0.9 * capacity:
        found.append(Hazard("table_nearly_full", f"{len(target)} of the port's {capacity} slots will be in use."))
    if observed and held.get(int(DEFAULT)) != [0]:
        found.append(
            Hazard(
                "default_off_index_0",
                "Default does not stand at index 0 alone; OpenSM will put it there and move what stands there, under "
                "live connections. Look for `indx0` or allow_both_pkeys in OpenSM's configuration.",
            )
        )
    twice = sorted(key for key, indexes in held.items() if len(indexes) > 1)
    if twice:
        keys = ", ".join(entry_text(key) for key in twice)
        found.append(Hazard("key_twice", f"P_Key {keys} stands at two indexes; only one of them will stay."))
    # Only a table that has wrapped hands out a slot that is freed in the same sweep (osm_pkey_mgr.c).
    wraps = bool(unplaced) and max(observed, default=0) + len(unplaced) >= capacity
    freed = sorted(i for i in room if i in observed and observed[i] & ~FULL_BIT not in target)
    if wraps and freed:
        slots = ", ".join(f"{index} ({entry_text(observed[index])})" for index in freed)
        found.append(
            Hazard(
                "freed_index_reused",
                f"The table is full to its end, so a new key may take an index freed by this change: {slots}. A "
                "connection that survives on that index would be in the new partition. Stop its programs first.",
            )
        )
    toggled = [
        key
        for key, indexes in held.items()
        if key in target and any(observed[index] != target[key] for index in indexes) and key != int(DEFAULT)
    ]
    if toggled and (wraps or max(observed, default=0) >= capacity - 1):
        found.append(
            Hazard(
                "wrap_defect",
                "A key changes between full and limited on a port whose table has wrapped: OpenSM may later let two "
                "keys alternate in one slot without a log line. Restart the standby, hand over to it, then change.",
            )
        )
    return found
