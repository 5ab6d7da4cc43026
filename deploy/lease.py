"""Who runs a rollout: a name for this very process, and a way to see that another one on this machine is gone.

The lease itself is two columns of Rollout, changed by compare-and-swap (`deploy/story.py`). Time ends it; a process
that is known to be dead ends it sooner.
"""

import os
import secrets
from functools import cache
from pathlib import Path

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
