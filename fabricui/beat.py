"""Beat's scheduler: Celery's own, which says with each turn of its loop that it still turns."""

import time
from typing import Any

from celery.beat import Scheduler

from fabricui import heartbeat


class TellingScheduler(Scheduler):
    """The schedule is code and every tick is idempotent, so nothing is kept on disk; the loop tells that it lives."""

    _told_at = 0.0

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due, tell at most each second, and return how long to sleep: a heartbeat's pause at most."""
        wait: float = super().tick(*args, **kwargs)
        if time.monotonic() - self._told_at >= 1.0:
            heartbeat.tell([heartbeat.BEAT], {})
            self._told_at = time.monotonic()
        return min(wait, heartbeat.EVERY_S)
