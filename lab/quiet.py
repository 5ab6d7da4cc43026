"""Waiting until no sweep runs: a measurement or a test that begins in the middle of one means nothing."""

import time
from pathlib import Path

from lab.errors import LabError

QUIET_S = 1.5  # no rewrite of the list for so long: no sweep is running
WITHIN_S = 60


def wait_until_quiet(listing: Path, *, quiet_s: float = QUIET_S) -> None:
    """Return once OpenSM has left its subnet list alone for `quiet_s`; raise LabError after a minute."""
    deadline = time.monotonic() + WITHIN_S
    quiet_since, seen = time.monotonic(), -1
    while time.monotonic() - quiet_since < quiet_s:
        if time.monotonic() > deadline:
            raise LabError(f"OpenSM sweeps without end: {listing} is rewritten again and again, or never was.")
        time.sleep(0.05)
        now = listing.stat().st_mtime_ns if listing.exists() else -1
        if now != seen or now == -1:
            quiet_since, seen = time.monotonic(), now
