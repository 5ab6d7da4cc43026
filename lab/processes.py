"""Processes as the lab names them: a PID together with its start time, and the mark every lab process carries.

A PID alone can belong to somebody else by the time it is used, so nothing is ever killed by PID alone.
"""

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MARK = "FABRICUI_LAB"
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class ProcessID:
    """A PID and the start time in clock ticks since boot (field 22 of /proc/PID/stat)."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> "ProcessID | None":
        """The identity of a running process; None when there is none, or only a zombie."""
        stat = _stat(pid)
        return None if stat is None else cls(pid, stat[1])

    @property
    def is_alive(self) -> bool:
        """Whether this very process still runs."""
        return ProcessID.of(self.pid) == self

    @property
    def is_stopped(self) -> bool:
        """Whether this very process is stopped by a signal."""
        try:
            text = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            return False
        return self.is_alive and text.rpartition(")")[2].split()[0] == "T"

    def send(self, signal_number: int) -> bool:
        """Signal this very process; False when it is gone."""
        if not self.is_alive:
            return False
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, signal_number)
            return True
        return False

    def to_json(self) -> dict[str, int]:
        """The identity as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "ProcessID":
        """The identity that `to_json` wrote."""
        return cls(int(value["pid"]), int(value["started"]))


def _stat(pid: int) -> tuple[int, int] | None:
    """(parent PID, start time) of a process that is no zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The command name may hold blanks and parentheses; the fields begin after the last ')'.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else (int(fields[1]), int(fields[19]))


def die_with_parent(parent: int) -> None:
    """Make the kernel kill the calling process when its parent dies; exit at once if it is already dead."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Make the calling process the parent of its orphaned descendants, so that it can wait for them."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def marked(lab: str) -> set[int]:
    """The PIDs of all live processes that carry the lab's mark in their environment, and of their descendants."""
    wanted = f"{MARK}={lab}".encode()
    parents: dict[int, int] = {}
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        pid = int(entry.name)
        stat = _stat(pid)
        if stat is None or pid == os.getpid():
            continue
        parents[pid] = stat[0]
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.add(pid)
    return found | _descendants(found, parents)


def descendants(pids: Collection[int]) -> set[int]:
    """The PIDs of all live processes below `pids`, the caller left out."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))) is not None:
            parents[int(entry.name)] = stat[0]
    return _descendants(pids, parents) - {os.getpid()}


def _descendants(roots: Collection[int], parents: dict[int, int]) -> set[int]:
    found: set[int] = set()
    frontier = set(roots)
    while frontier:
        frontier = {pid for pid, parent in parents.items() if parent in frontier and pid not in found}
        found |= frontier
    return found


def listeners_and_sessions(addresses: Collection[str]) -> set[int]:
    """The PIDs of all live processes that hold a TCP socket bound to one of the IPv4 `addresses`.

    An sshd overwrites its environment with its title, so its sessions are found by what they hold.
    """
    wanted = {bytes(reversed([int(part) for part in address.split(".")])).hex().upper() for address in addresses}
    inodes = set()
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        if fields[1].split(":")[0] in wanted:
            inodes.add(f"socket:[{fields[9]}]")
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if any(str(fd.readlink()) in inodes for fd in (entry / "fd").iterdir()):
                found.add(int(entry.name))
    return found


def kill_all(find: Callable[[], set[int]], *, timeout_s: float) -> bool:
    """Kill what `find` returns, again and again, until it finds nothing; False when something survived.

    Looks again because a process may have started another one between the look and the kill.
    """
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        found = find()
        if not found:
            return True
        for identity in [ProcessID.of(pid) for pid in found]:
            if identity is not None:
                identity.send(signal.SIGKILL)
        time.sleep(0.02)
    return not find()
