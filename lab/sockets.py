"""What the lab needs to know about sockets and logs: short paths, listeners, names of processes."""

import contextlib
import os
from pathlib import Path


def read_text(path: Path) -> str:
    """What a log file holds; nothing when it does not exist yet."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def command_name(pid: int) -> str:
    """The name of a process's program as the kernel knows it."""
    return read_text(Path(f"/proc/{pid}/comm")).strip()


def is_listening(address: str, port: int) -> bool:
    """Whether something listens there, without connecting to it."""
    wanted = f"{bytes(reversed([int(part) for part in address.split('.')])).hex().upper()}:{port:04X}"
    rows = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    return any(row.split()[1] == wanted and row.split()[3] == "0A" for row in rows)


class short_path(contextlib.AbstractContextManager[str]):
    """A path to `path` that fits a socket address (107 bytes), however deep the folder is."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder = -1

    def __enter__(self) -> str:
        self._folder = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._folder}/{self._path.name}"

    def __exit__(self, *_: object) -> None:
        os.close(self._folder)
