"""The standbys that a form offers to go without, and why none may be lacked. Reads no database."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Standby:
    """One of them: what is known to be wrong there, and whether it is ticked."""

    name: str
    trouble: str
    is_ticked: bool


def standbys(managers: Iterable[Mapping[str, Any]], *, ticked: Collection[str] = ()) -> tuple[Standby, ...]:
    """Every manager host but the master, those in trouble first; `managers` are rows of a look or of the watch."""
    found = [
        Standby(str(row["host"]), str(row.get("error") or ""), row["host"] in ticked)
        for row in managers
        if row.get("role") != "MASTER"
    ]
    return tuple(sorted(found, key=lambda one: (not one.trouble, one.name)))
