"""Loopback ports that nobody uses, so that parallel runs never meet."""

import socket


def free_port(address: str = "127.0.0.1") -> int:
    """A TCP port that was free on `address` a moment ago."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def is_free(port: int, address: str = "127.0.0.1") -> bool:
    """Whether nothing listens on this port of `address`."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
