"""Whoever wants to know that the whole fabric was read: higher rooms put a function here when they start.

Called after the look is stored and what it saw stands in the inventory; a follower that fails breaks no look.
"""

import logging
from collections.abc import Callable
from typing import Final

from inventory.models import Subnet

log = logging.getLogger(__name__)

FOLLOWERS: Final[dict[str, Callable[[Subnet], None]]] = {}


def register(name: str, follower: Callable[[Subnet], None]) -> None:
    """Have `follower` called after each look from the first port to the last."""
    FOLLOWERS[name] = follower


def tell(subnet: Subnet) -> None:
    """Call every follower, whatever the others do."""
    for name, follower in FOLLOWERS.items():
        try:
            follower(subnet)
        except Exception:
            log.exception("%s failed after a look at subnet %s", name, subnet)
