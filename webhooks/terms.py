"""The bounds of delivery, in one place. Pure."""

from datetime import timedelta
from typing import Final

DELIVER: Final = "webhooks.tasks.deliver"
AT_ONCE: Final = 16  # messages a tick
OF_ONE: Final = 4  # of them, for one endpoint
CLAIMED_FOR: Final = timedelta(seconds=60)
# Until the next try after the first, second … failure; after the last one it is given up: about nine hours.
PAUSES: Final = tuple(timedelta(seconds=seconds) for seconds in (10, 30, 120, 600, 1800, 7200, 21600))
MOST_WAITING: Final = 1000  # for one endpoint
MOST_ENDPOINTS: Final = 10  # of the operators, and of each tenant
KEPT: Final = timedelta(days=14)  # deliveries that are over
