"""The bounds of delivery, in one place. Pure."""

from datetime import timedelta
from typing import Final

DELIVER: Final = "webhooks.tasks.deliver"
DELIVER_WITHIN_S: Final = 10  # a wish for a round that nobody took by then is old: the clock’s next one is there
ROUND_S: Final = 20.0  # a round begins no message after that, so that it ends
LOOK_AGAIN_S: Final = 0.5  # for what falls due while others are on their way
AT_ONCE: Final = 32  # messages that are on their way together
OF_OWNER: Final = 4  # of them, of one tenant or of the operators
OF_ONE: Final = 2  # of those, for one endpoint
CLAIMED_FOR: Final = timedelta(seconds=60)
# Until the next try after the first, second … failure; after the last one it is given up: about nine hours.
PAUSES: Final = tuple(timedelta(seconds=seconds) for seconds in (10, 30, 120, 600, 1800, 7200, 21600))
MOST_WAITING: Final = 1000  # for one endpoint
MOST_ENDPOINTS: Final = 10  # of the operators, and of each tenant
KEPT: Final = timedelta(days=14)  # deliveries that are over
