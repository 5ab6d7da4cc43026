"""Lines for a syslog server as RFC 5424 has them, over UDP, TCP, TLS or the local socket. No Django, no rows."""

import contextlib
import os
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from remote.errors import RemoteError

PORTS: Final = {"udp": 514, "tcp": 601, "tls": 6514}
TIMEOUT_S: Final = 2.0
LONGEST: Final = 2048  # bytes of a line that every receiver takes (RFC 5424, 6.1)
AUDIT: Final = 13  # the facility “log audit”
SD_ID: Final = "fabricui@32473"  # 32473 is the number for documentation (RFC 5612)


class NotLogged(RemoteError):
    """The server was not reached, or took no line."""

    transient = True


@dataclass(frozen=True, slots=True)
class Server:
    """Where the lines go."""

    kind: str  # local | udp | tcp | tls
    host: str  # a path for the local socket
    port: int = 0


def parse(text: str) -> Server:
    """`/dev/log`, `udp://host:port`, `tcp://…` or `tls://…`. Raises ValueError with a sentence."""
    if text.startswith("/"):
        return Server("local", text)
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError:
        host, port = None, None
        parts = urlsplit("")
    if parts.scheme not in PORTS or not host or parts.path or parts.query or parts.username:
        raise ValueError(
            f"“{text}” is no syslog server. Write /dev/log, udp://host:514, tcp://host:601 or tls://host:6514."
        )
    return Server(parts.scheme, host, port or PORTS[parts.scheme])


def line(*, severity: int, at: datetime, name: str, text: str, data: Mapping[str, str], host: str = "") -> bytes:
    """One line; `name` is the kind of message, `data` its structured part. Nothing in it breaks the line."""
    stamp = at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    head = f"<{AUDIT * 8 + severity}>1 {stamp} {_word(host or socket.gethostname(), 255)} fabricui {os.getpid()} "
    parts = "".join(f' {_word(key, 32)}="{_value(value)}"' for key, value in data.items() if value)
    whole = f"{head}{_word(name, 32)} [{SD_ID}{parts}] {_plain(text)}".encode()
    return whole[:LONGEST].decode("utf-8", "ignore").encode()


def send(server: Server, lines: Sequence[bytes], *, ca_file: str = "") -> None:
    """Hand all `lines` over. Raises NotLogged; then some of them may have gone out."""
    try:
        with _connected(server, ca_file) as (wire, is_stream):
            for one in lines:
                # A stream counts the bytes of each line (RFC 6587, 3.4.1; RFC 5425).
                wire.sendall(b"%d %s" % (len(one), one) if is_stream else one)
            if is_stream:
                _ended_well(wire)
    except (OSError, ValueError) as error:
        raise NotLogged(f"Syslog at {server.host} takes nothing ({error}). FABRICUI_SYSLOG names it.") from error


@contextlib.contextmanager
def _connected(server: Server, ca_file: str) -> Iterator[tuple[socket.socket, bool]]:
    if server.kind == "local":
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire:
            wire.settimeout(TIMEOUT_S)
            wire.connect(server.host)
            yield wire, False
        return
    if server.kind == "udp":
        family, *_, where = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as wire:
            wire.settimeout(TIMEOUT_S)
            wire.connect(where)
            yield wire, False
        return
    with socket.create_connection((server.host, server.port), timeout=TIMEOUT_S) as wire:
        if server.kind == "tcp":
            yield wire, True
            return
        context = ssl.create_default_context(cafile=ca_file or None)
        with context.wrap_socket(wire, server_hostname=server.host) as secure:
            yield secure, True


def _ended_well(wire: socket.socket) -> None:
    """See that the other side has not hung up: a syslog server answers nothing, so this is all there is to see."""
    wire.settimeout(0.05)
    try:
        if wire.recv(1) == b"":
            raise OSError("it hung up")
    except TimeoutError:
        pass
    except ssl.SSLWantReadError:
        pass
    finally:
        wire.settimeout(TIMEOUT_S)


def _word(text: str, longest: int) -> str:
    """PRINTUSASCII without what ends a name (RFC 5424, 6)."""
    kept = "".join(letter for letter in text if 33 <= ord(letter) <= 126 and letter not in '="]')
    return kept[:longest] or "-"


def _value(text: str) -> str:
    return _plain(text).replace("\\", "\\\\").replace('"', '\\"').replace("]", "\\]")


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
