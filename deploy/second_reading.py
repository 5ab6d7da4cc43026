"""The second reading: what a manager host whose OpenSM wrote nothing reads of the changed ports. Pure.

The master's host reads all tables, and its OpenSM has written them; that another host sees the same keys at the same
LIDs behind the same barrier rests on nothing of the first one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from subnet.observed import ObservedFabric


@dataclass(frozen=True, slots=True)
class SecondReading:
    """What a manager host that has not written the tables reads of some affected ports, beside the master's reading.

    `differ` are sentences; `failure` says why there is no second reading, "" when there is one or nothing to read.
    """

    host: str = ""
    ports: int = 0  # read by both
    differ: tuple[str, ...] = ()
    failure: str = ""


def compared(host: str, answer: object, fabric: ObservedFabric, *, master: str) -> SecondReading:
    """Compare the second reading with the first, port by port; what only one of them has read says nothing."""
    if answer is None:
        return SecondReading()
    if not isinstance(answer, Mapping):
        return SecondReading(host, failure=f"No other manager host than {master} has read the ports: {answer}")
    both = {
        guid: (fabric.ports[guid].pkeys, keys)
        for guid, keys in answer.items()
        if keys is not None and guid in fabric.ports and fabric.ports[guid].is_read
    }
    differ = tuple(
        f"Port {guid}: {host} reads {_entries(seen)} where {master}, whose OpenSM has written it, reads "
        f"{_entries(first)}."
        for guid, (first, seen) in sorted(both.items())
        if dict(first) != dict(seen)
    )
    failure = "" if both else f"{host} could read none of the ports that {master} has read."
    return SecondReading(host, len(both), differ, failure)


def _entries(keys: Mapping[int, int]) -> str:
    return " ".join(f"{index}:0x{key:04x}" for index, key in sorted(keys.items())) or "no key"
