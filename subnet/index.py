"""At which index of a port's P_Key table each key will stand after the next sweep.

A key that stays keeps its index: live connections use the index. Where a new key lands also depends on what the
OpenSM process remembers of the port (`subnet/slots.py`), so the answer is a set; it has one member when the port's
history is known (ground truth: OpenSM, 5.1 and 5.4; read-back, 3; ADR 17).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from subnet.pkey import DEFAULT, FULL_BIT, Membership, PKey, entry, entry_text
from subnet.slots import PortSlots, in_memory, keys_of

HazardKind = Literal[
    "table_full",
    "table_nearly_full",
    "default_off_index_0",
    "key_twice",
    "freed_index_reused",
    "freed_index_reused_after_takeover",
    "wrap_defect",
]
NEARLY_FULL: Final = 0.9
_DEFAULT: Final = int(DEFAULT)
_MOST_LISTED: Final = 8
_MOST_RETURNS: Final = 32  # a port is thought to have left and come back at any of its last so many changes


@dataclass(frozen=True, slots=True)
class Hazard:
    """Something a person should know before the change goes out.

    `keys` are the 16-bit entries it is about. Of a slot that passes from one key to another, `index` is the slot,
    `keys` are the entry that stood there and then the entry that takes it.
    """

    kind: HazardKind
    sentence: str
    keys: tuple[int, ...] = ()
    index: int | None = None

    @property
    def needs_takeover(self) -> bool:
        """Whether it only happens when the subnet manager changes, or the port is away, before the file is read."""
        return self.kind == "freed_index_reused_after_takeover"


@dataclass(frozen=True, slots=True)
class PortHistory:
    """The tables that one port is known to have held since the present master's OpenSM process started, oldest first.

    Each maps index to 16-bit entry; the last is the newest one that is known. `is_whole` says that the first is what
    the process made of the table it found, and that the port held no other since; without it other keys may have
    passed through, and predictions stay wide. `by_others` are the positions of those that another master made while
    this process stood by: it remembers nothing of them. `earlier` are tables from before the process, as far as they
    are known: a connection may still use an index that was freed then.
    """

    tables: tuple[Mapping[int, int], ...] = ()
    is_whole: bool = False
    by_others: frozenset[int] = frozenset()
    earlier: tuple[Mapping[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Prediction:
    """Surviving keys with their exact index, and for each new entry every index it may take; none when none is free.

    `new` holds for a re-read by the present master of a port that it has not lost sight of since; `after_takeover`
    for a subnet manager that takes over, before or after that re-read, and was never master before in its process's
    life, and for the present one when the port left the fabric and came back. The survivors are the same for all.
    """

    survivors: Mapping[int, int] = field(default_factory=dict)  # index → 16-bit entry
    new: Mapping[int, frozenset[int]] = field(default_factory=dict)  # 16-bit entry → possible indexes
    hazards: tuple[Hazard, ...] = ()
    after_takeover: Mapping[int, frozenset[int]] = field(default_factory=dict)  # 16-bit entry → possible indexes

    @property
    def acceptable(self) -> dict[int, frozenset[int]]:
        """What a read-back may find for each new entry: nobody can see that a port was away for a moment."""
        return {number: indexes | self.after_takeover.get(number, frozenset()) for number, indexes in self.new.items()}


def predict(
    observed: Mapping[int, int],
    capacity: int,
    wanted: Mapping[PKey, Membership],
    default: Membership,
    *,
    history: PortHistory | None = None,
) -> Prediction:
    """Where OpenSM will put the wanted keys of one port whose table is `observed` (index → entry).

    `wanted` holds the keys beside Default; `default` is the port's membership in Default; `capacity` counts slots.
    Assumes keep_pkey_indexes TRUE and allow_both_pkeys FALSE, OpenSM's defaults. With a whole `history` that ends at
    `observed` a new key has one index; otherwise its set is every slot from 1 that no surviving key holds.
    """
    target = {int(pkey): entry(pkey, membership) for pkey, membership in wanted.items()}
    target[_DEFAULT] = entry(DEFAULT, default)
    history = history or PortHistory()
    master = _master(observed, capacity, history)
    others = _newcomers(observed, capacity, history)
    if master is not None:
        has_wrapped = master.used >= capacity
    else:
        has_wrapped = any(max(table, default=0) >= capacity - 1 for table in (*history.tables, observed))
    sweeps = [slots.sweep(target) for slots in others]
    # Without the wrap defect it does not depend on what is remembered which keys find no room: one slot a key.
    sweep = sweeps[0] if master is None else master.sweep(target)
    overwritten = {} if master is None else sweep.overwritten

    survivors = {
        index: target[number & ~FULL_BIT]
        for index, number in _standing(observed).items()
        if number & ~FULL_BIT in target and (index == 0) == (number & ~FULL_BIT == _DEFAULT)
    }
    if observed:
        # Default is put at index 0 whatever stands there; nothing else is.
        survivors[0] = target[_DEFAULT]
    survivors = {index: number for index, number in survivors.items() if number not in overwritten}
    room = frozenset(range(1, capacity)) - survivors.keys()
    new: dict[int, frozenset[int]] = {}
    after_takeover: dict[int, frozenset[int]] = {}
    for number in target.values():
        if number in survivors.values():
            continue
        if number & ~FULL_BIT == _DEFAULT:
            new[number] = after_takeover[number] = frozenset({0})
            continue
        after_takeover[number] = _places(number, others)
        stands = number
        while stands in overwritten:
            # A key and the one that overwrites it take turns in one slot, sweep by sweep.
            stands = overwritten[stands]
        if number in sweep.dropped:
            new[number] = frozenset()
        else:
            new[number] = room if master is None else _places(stands, [master])
    hazards = [
        *_room_hazards(observed, capacity, target, sweep.dropped),
        *_reuse_hazards(observed, capacity, target, history, new if master is not None else None, after_takeover),
        *_wrap_hazards(observed, target, overwritten, has_wrapped=has_wrapped),
    ]
    return Prediction(survivors=survivors, new=new, hazards=tuple(hazards), after_takeover=after_takeover)


def _master(observed: Mapping[int, int], capacity: int, history: PortHistory) -> PortSlots | None:
    """What the present master's process remembers of the port; None when that is not known.

    A table that does not follow from the one before says that something was missed: nothing is known then either.
    """
    if not history.is_whole or not history.tables or history.tables[-1] != observed:
        return None
    slots = PortSlots(history.tables[0], capacity)
    for at, table in enumerate(history.tables):
        if at in history.by_others:
            slots.reread(table)
            continue
        slots.sweep(keys_of(table))
        if slots.table != table:
            return None
    return slots


def _newcomers(observed: Mapping[int, int], capacity: int, history: PortHistory) -> list[PortSlots]:
    """What a process may remember that met the port at some moment: just now, or at any table of its history."""
    if not history.tables or history.tables[-1] != observed:
        tables: Sequence[Mapping[int, int]] = (observed,)
    else:
        tables = history.tables[-_MOST_RETURNS:]
    found: list[PortSlots] = []
    for table in tables:
        for slots in found:
            slots.sweep(keys_of(table))
        found = [slots for slots in found if slots.table == table]
        met = PortSlots.settled(table, capacity)
        if all((met.remembered, met.used) != (slots.remembered, slots.used) for slots in found):
            found.append(met)
    return [PortSlots(observed, capacity), *found]


def _standing(table: Mapping[int, int]) -> dict[int, int]:
    """The part of a table that OpenSM goes by: of a key that stands there twice the full one, else the lower one."""
    counts = keys_of(table)
    standing: dict[int, int] = {}
    for index, number in sorted(table.items()):
        if counts.get(number & ~FULL_BIT) == number:
            standing[index] = number
            del counts[number & ~FULL_BIT]
    return standing


def _places(number: int, after: Iterable[PortSlots]) -> frozenset[int]:
    """The indexes at which an entry stands in any of the tables."""
    return frozenset(index for slots in after for index, held in slots.table.items() if held == number)


def _room_hazards(
    observed: Mapping[int, int], capacity: int, target: Mapping[int, int], dropped: Sequence[int]
) -> Iterator[Hazard]:
    """What is wrong with the port's table or its number of keys, the worst first."""
    if dropped:
        yield Hazard(
            "table_full",
            f"The port has room for {capacity} keys and is to hold {len(target)}: OpenSM leaves out "
            f"{_listed(dropped)} (ERR 0512), whatever the file's order. Take the port out of other partitions first.",
            keys=tuple(dropped),
        )
    elif len(target) >= NEARLY_FULL * capacity:
        yield Hazard("table_nearly_full", f"{len(target)} of the port's {capacity} slots will be in use.")
    standing = _standing(observed)
    first = observed.get(0)
    if observed and (first is None or first & ~FULL_BIT != _DEFAULT or first != standing.get(0)):
        yield Hazard(
            "default_off_index_0",
            "Default does not stand at index 0 alone; OpenSM will put it there and move what stands there, under "
            "live connections. Look for `indx0` or allow_both_pkeys in OpenSM's configuration.",
            keys=() if first is None else (first,),
            index=0,
        )
    twice = sorted({number & ~FULL_BIT for index, number in observed.items() if index not in standing})
    if twice:
        yield Hazard(
            "key_twice",
            f"P_Key {_listed(twice)} stands at two indexes; only the full one, or else the lower one, will stay.",
            keys=tuple(twice),
        )


def _reuse_hazards(
    observed: Mapping[int, int],
    capacity: int,
    target: Mapping[int, int],
    history: PortHistory,
    new: Mapping[int, frozenset[int]] | None,
    after_takeover: Mapping[int, frozenset[int]],
) -> Iterator[Hazard]:
    """Each slot that passes from one key to another, where a connection of the old key would pass with it.

    `new` None: what the master remembers is not known. Then only a table that is visibly in use to its end is told.
    """
    freed = _freed(observed, target, history)
    unplaced = [number for number, indexes in after_takeover.items() if indexes and number & ~FULL_BIT != _DEFAULT]
    if new is None:
        wraps = bool(unplaced) and max(observed, default=0) + len(unplaced) >= capacity
        new = dict.fromkeys(unplaced, frozenset(freed)) if wraps else {}
    ways: tuple[tuple[HazardKind, Mapping[int, frozenset[int]]], ...] = (
        ("freed_index_reused", new),
        ("freed_index_reused_after_takeover", {number: after_takeover[number] for number in unplaced}),
    )
    told: set[int] = set()
    for kind, places in ways:
        for number, indexes in sorted(places.items(), key=lambda item: in_memory(item[0])):
            for index in sorted(indexes & freed.keys() - told):
                if freed[index] & ~FULL_BIT == number & ~FULL_BIT:
                    continue
                told.add(index)
                is_sure = kind != "freed_index_reused" and len(indexes) == 1
                sentence = _reused(kind, entry_text(number), index, entry_text(freed[index]), is_sure=is_sure)
                yield Hazard(kind, sentence, keys=(freed[index], number), index=index)


def _reused(kind: HazardKind, new: str, index: int, old: str, *, is_sure: bool) -> str:
    takes = "takes" if is_sure else "may take"
    if kind == "freed_index_reused":
        return (
            f"{new} {takes} index {index}, which {old} has left or leaves. A connection that survives on that index "
            "would be in the new partition. Stop its programs first."
        )
    return (
        "If another subnet manager takes over, or the port leaves the fabric for a moment, before this is done, "
        f"{new} {takes} index {index}, which {old} has left or leaves. A connection that survives on that index would "
        "be in the new partition. Stop its programs first."
    )


def _freed(observed: Mapping[int, int], target: Mapping[int, int], history: PortHistory) -> dict[int, int]:
    """Index → the last entry that left it, now or as far back as is known; indexes whose key stays are not freed."""
    freed: dict[int, int] = {}
    for table in (*history.earlier, *history.tables, observed):
        freed |= {index: number for index, number in table.items() if index > 0}
    return {
        index: number
        for index, number in freed.items()
        if index not in observed or observed[index] & ~FULL_BIT not in target
    }


def _wrap_hazards(
    observed: Mapping[int, int], target: Mapping[int, int], overwritten: Mapping[int, int], *, has_wrapped: bool
) -> Iterator[Hazard]:
    """The defect of a table that has been in use to its end (ground truth: OpenSM, 5.4), certain or to come."""
    for old, number in overwritten.items():
        yield Hazard(
            "wrap_defect",
            f"OpenSM will put {entry_text(number)} into the slot of {entry_text(old)}, and from then on let the two "
            "take turns there at every sweep without a log line. Restart the standby and hand over to it first.",
            keys=(old, number),
        )
    toggled = sorted(
        target[number & ~FULL_BIT]
        for index, number in observed.items()
        if index > 0 and target.get(number & ~FULL_BIT, number) != number
    )
    if toggled and has_wrapped and not overwritten:
        yield Hazard(
            "wrap_defect",
            f"{_listed(toggled)} changes between full and limited on a port whose table has wrapped: OpenSM may later "
            "let two keys alternate in one slot without a log line. Restart the standby, hand over to it, then change.",
            keys=tuple(toggled),
        )


def _listed(numbers: Sequence[int]) -> str:
    more = len(numbers) - _MOST_LISTED
    return ", ".join(entry_text(number) for number in numbers[:_MOST_LISTED]) + (
        f" and {more} more" if more > 0 else ""
    )
