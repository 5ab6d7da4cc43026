"""When the index of a key last changed on a port, from the looks at the fabric that FabricUI keeps.

A program that took an index holds on to it; what can change one is said on the page beside this.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from deploy.models import TableChanges
from deploy.table_history import unpacked
from inventory.models import Subnet
from subnet.pkey import FULL_BIT

LOOKS: Final = 200  # newest looks that are gone through

type Key = tuple[str, int]  # port GUID, P_Key without the membership bit


@dataclass(frozen=True, slots=True)
class Change:
    """The newest change of one key's index on one port; None is “not there”."""

    at: datetime
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Stability:
    """What the kept looks say: the newest change of each key that had one, and since when each is known to stand.

    `known` is the first look of those that read the port without a gap: an index may have gone and come back while
    the port did not answer.
    """

    changes: Mapping[Key, Change]
    known: Mapping[Key, datetime]


def newest_changes(*, subnet: Subnet, guids: Collection[str], pkeys: Collection[int]) -> Stability:
    """The newest change of each of `pkeys` on each of `guids`. One query; some milliseconds for each full look."""
    rows = TableChanges.objects.filter(subnet=subnet).select_related("observation").order_by("-id")[:LOOKS]
    looks = list(reversed(rows))
    wanted, keys = set(guids), set(pkeys)
    last: dict[Key, int | None] = {}
    changes: dict[Key, Change] = {}
    known: dict[Key, datetime] = {}
    for look in looks:
        at = look.observation.read_at or look.observation.requested_at
        for guid, seen in unpacked(bytes(look.data)).items():
            if guid not in wanted:
                continue
            if seen == "unread":
                for pkey in keys:
                    known.pop((guid, pkey), None)
                continue
            held = {} if seen is None else {number & ~FULL_BIT: int(index) for index, number in seen.items()}
            for pkey in keys:
                index = held.get(pkey)
                if (guid, pkey) in last and last[guid, pkey] != index:
                    changes[guid, pkey] = Change(at, last[guid, pkey], index)
                last[guid, pkey] = index
                known.setdefault((guid, pkey), at)
    return Stability(changes, known)
