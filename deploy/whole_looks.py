"""Whoever wants to know that the whole fabric was read: higher rooms put a function here when they start.

Called after the look is stored and what it saw stands in the inventory; a follower that fails breaks no look.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final

from inventory.models import Subnet
from subnet.guid import GUID
from subnet.observed import PortReading

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WholeLook:
    """A look from the first port to the last that began at `at` or, of a scan, ended there.

    A discovery asked the fabric itself which ports there are. A scan took a manager host's list for it, which is as
    old as that OpenSM's last sweep: what it does not find was missing some time ago.
    """

    subnet: Subnet
    readings: Mapping[GUID, PortReading]
    at: datetime
    is_discovery: bool

    @cached_property
    def switches(self) -> frozenset[GUID]:
        """The node GUIDs of the switches that answered."""
        return frozenset(one.node_guid for one in self.readings.values() if one.node_type == "SW")


FOLLOWERS: Final[dict[str, Callable[[WholeLook], None]]] = {}


def register(name: str, follower: Callable[[WholeLook], None]) -> None:
    """Have `follower` called after each look from the first port to the last."""
    FOLLOWERS[name] = follower


def tell(look: WholeLook) -> None:
    """Call every follower, whatever the others do."""
    for name, follower in FOLLOWERS.items():
        try:
            follower(look)
        except Exception:
            log.exception("%s failed after a look at subnet %s", name, look.subnet)
