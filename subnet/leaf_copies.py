"""What a leaf switch does to the port it faces: whether it still drops by P_Key, and by the port's own keys.

OpenSM keeps a packed copy of a port's keys on the switch port, so only its set counts (ground truth: OpenSM, 5.5).
Each function returns what is wrong as the end of a sentence about the port, "" when nothing is.
"""

from collections.abc import Collection, Iterable

from subnet.observed import PortReading
from subnet.pkey import entry_text


def is_comparable(port: PortReading, keys: Collection[int]) -> bool:
    """Whether the switch enforces at this port by a copy that was read and has room for `keys`."""
    leaf = port.leaf
    if leaf is None or leaf.pkeys is None or not (leaf.enforce_in or leaf.enforce_out):
        return False
    return leaf.capacity is None or len(keys) <= leaf.capacity


def of_affected(now: PortReading, keys: Collection[int]) -> str:
    """Compare the copy with the entries that the port should hold."""
    copy = _copy(now)
    if not is_comparable(now, keys) or copy == set(keys):
        return ""
    return f"is filtered by its leaf switch with {_listed(copy)} and not with {_listed(keys)}."


def of_unaffected(was: PortReading, now: PortReading) -> str:
    """Compare the copy with what the port itself holds, unless the copy is as it was before."""
    copy, keys = _copy(now), set(now.pkeys.values())
    if not is_comparable(now, keys) or copy == keys:
        return ""
    if was.leaf is not None and was.leaf.pkeys is not None and _copy(was) == copy:
        return ""
    return f"is filtered by its leaf switch with {_listed(copy)} and holds {_listed(keys)}."


def enforcement_lost(was: PortReading | None, now: PortReading) -> str:
    """Compare the enforcement bits with those before; a cable that went to another switch port says nothing."""
    before, leaf = None if was is None else was.leaf, now.leaf
    if before is None or leaf is None or (before.guid, before.port) != (leaf.guid, leaf.port):
        return ""
    lost = [
        way
        for way, had, has in (
            ("into the switch", before.enforce_in, leaf.enforce_in),
            ("out of it", before.enforce_out, leaf.enforce_out),
        )
        if had and not has
    ]
    if not lost:
        return ""
    return (
        f"is filtered by its leaf switch no more on the way {' and '.join(lost)}: only the HCA itself keeps it in its "
        "partitions. Look whether its keys still fit into the switch port's table."
    )


def _copy(port: PortReading) -> set[int]:
    return set() if port.leaf is None or port.leaf.pkeys is None else set(port.leaf.pkeys.values())


def _listed(keys: Iterable[int]) -> str:
    return ", ".join(entry_text(number) for number in sorted(keys)) or "nothing"
