"""Who runs a rollout: a name for this very process, and a way to see that another one on this machine is gone.

The lease itself is columns of Rollout, changed by compare-and-swap (`deploy/story.py`). Time ends it; a process that is
known to be dead ends it sooner. Time is the machine's own since its boot, wherever the holder is of the same boot: a
wall clock that jumps neither takes a lease from a living worker nor keeps one for a dead one.
"""

import os
import secrets
import time
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db.models import Q

READ_TIMEOUT_S: Final = 120  # one full reading of the largest fabric
SOONEST_RETRY_S: Final = 5
LATEST_RETRY_S: Final = 60
LOST_IN_THE_QUEUE: Final = timedelta(seconds=10)  # after this long, an unclaimed row is handed to the queue again

PROC = Path("/proc")


def new_holder() -> str:
    """A name for one run in this process: kernel boot, process namespace, process id, its start, and a random word."""
    return " ".join([_here(), str(os.getpid()), _started(os.getpid()) or "-", secrets.token_hex(4)])


def is_gone(holder: str) -> bool:
    """Whether the process that `holder` names is certainly dead. False when it is alive, or when we cannot tell.

    Only a process of this kernel boot and this process namespace can be judged: elsewhere the same number may
    belong to somebody else.
    """
    parts = holder.split(" ")
    if len(parts) != 5 or " ".join(parts[:2]) != _here() or "-" in (parts[0], parts[1], parts[3]):
        return False
    return _started(int(parts[2])) != parts[3]


def uptime_s() -> float:
    """Seconds since the machine booted, its sleep included. Every process of one kernel sees the same."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def length() -> timedelta:
    """How long a worker is believed to live without a word: longer than the longest stretch between two of them."""
    return timedelta(seconds=settings.PROOF_DEADLINE_S + READ_TIMEOUT_S + 60)


def ended(now: datetime) -> Q:
    """The rows that nobody holds, or whose holder's time is up."""
    boot = _here().split(" ")[0]
    by_uptime = Q(claimed_until_up__isnull=False) & Q(claimed_by__startswith=f"{boot} ")
    # Elsewhere only the wall clock can tell; one that was set back must not prolong a lease by as much.
    by_clock = Q(claimed_until__lte=now) | Q(claimed_until__gt=now + 2 * length())
    if boot == "-":
        return Q(claimed_until__isnull=True) | by_clock
    return Q(claimed_until__isnull=True) | (by_uptime & Q(claimed_until_up__lte=uptime_s())) | (~by_uptime & by_clock)


def due(now: datetime) -> Q:
    """The rows whose time to be looked at has come; one further away than any pause was set by another clock."""
    return (
        Q(next_try_at__isnull=True)
        | Q(next_try_at__lte=now)
        | Q(next_try_at__gt=now + timedelta(seconds=2 * LATEST_RETRY_S))
    )


def pause(tries: int) -> timedelta:
    """How long to wait after so many tries in vain."""
    return timedelta(seconds=min(SOONEST_RETRY_S * 2 ** min(tries, 10), LATEST_RETRY_S))


@cache
def _here() -> str:
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        space = str((PROC / "self/ns/pid").readlink())
    except OSError:
        return "- -"
    return f"{boot} {space}"


def _started(pid: int) -> str | None:
    """When process `pid` started, in clock ticks after the boot (field 22 of its stat); None when there is none."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before it may hold blanks and parentheses
    return None if fields[0] in {"Z", "X"} else fields[19]
