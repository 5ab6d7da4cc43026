"""One POST to an address that somebody else chose: resolved once, judged, and that very address connected to.

Whoever may name a URL could make us ask our own network for them (SSRF): its hosts, its metadata service, the manager
hosts. So a name is resolved once, every address it has is judged, the connection goes to the address that was judged
(the name stays in TLS), nothing redirects, and time and size are bounded. No Django, no rows.
"""

import http.client
import ipaddress
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from remote.errors import RemoteError

LONGEST_URL: Final = 500
LONGEST_BODY: Final = 64 * 1024
TOTAL_S: Final = 6.0  # for everything, the look-up of the name as well

type Address = ipaddress.IPv4Address | ipaddress.IPv6Address
type Network = ipaddress.IPv4Network | ipaddress.IPv6Network
type Resolve = Callable[[str, int], Sequence[str]]

_HOST: Final = re.compile(
    r"(?=.{1,253}\Z)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.?\Z"
)
# What looks like a number in its last label is read as one by many a resolver: 127.1, 2130706433, 0x7f.0.0.1.
_NUMERIC: Final = re.compile(r"(.*\.)?(\d+|0x[0-9a-f]*)\.?\Z")
# Global by their registration, and a way to somewhere else all the same.
_REFUSED: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "168.63.129.16/32",  # the metadata and wire server of one cloud
        "64:ff9b::/96", "64:ff9b:1::/48",  # NAT64: an IPv4 address inside
        "2002::/16",  # 6to4: the same
        "2001::/32",  # Teredo: the same
        "::/96",  # IPv4-compatible, long given up
        "fec0::/10",  # site-local, long given up
    )
)  # fmt: skip


class BadTarget(ValueError):
    """A URL that we never ask; the sentence is for who wrote it."""


class NotPosted(RemoteError):
    """It was not taken; the sentence says how far it came, and nothing of what was answered but its status."""

    transient = True


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that was judged: where to connect and what to ask for."""

    host: str  # as in the URL, for TLS and the Host header
    port: int
    path: str  # with its query
    is_tls: bool

    @property
    def literal(self) -> Address | None:
        """The address, when the URL names one."""
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None

    @property
    def host_header(self) -> str:
        """As HTTP wants it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_tls else 80) else f"{host}:{self.port}"


def parse(url: str, *, allowed: Sequence[Network] = ()) -> Target:
    """The target that `url` names. Raises BadTarget for everything that is spelled oddly or is no place to ask.

    Nothing is resolved. Plain http is for hosts in the `allowed` networks, named by their address.
    """
    if len(url) > LONGEST_URL:
        raise BadTarget(f"The address has {len(url)} characters, and {LONGEST_URL} are the most.")
    if not url.isascii() or re.search(r"[\s\x00-\x20\x7f\\]", url):
        raise BadTarget(
            "The address holds a space, a backslash or a letter outside of ASCII. Write it as https://host/…"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadTarget("This is no address. Write it as https://host/path.") from error
    if parts.scheme not in ("https", "http"):
        raise BadTarget("The address does not begin with https://.")
    if "@" in parts.netloc or parts.fragment or url.endswith("#"):
        raise BadTarget("The address holds a user, a password or a fragment. Leave them out.")
    host = (parts.hostname or "").lower()
    is_literal = _literal(host, parts.netloc)
    if not is_literal and not _HOST.match(host):
        raise BadTarget("The address names no host. Write it as https://host.example/path.")
    if port == 0:
        raise BadTarget("Port 0 is none.")
    is_tls = parts.scheme == "https"
    target = Target(
        host, port or (443 if is_tls else 80), (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), is_tls
    )
    address = target.literal
    if address is not None:
        why = why_not(address, allowed)
        if why:
            raise BadTarget(why)
    if not is_tls and (address is None or not _is_in(address, allowed)):
        raise BadTarget("The address does not begin with https://. Without TLS everybody on the way reads it.")
    return target


def why_not(address: Address, allowed: Sequence[Network]) -> str:
    """Why nothing is ever sent to `address`; "" when it may be."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    if mapped is not None:
        return f"{address} hides the IPv4 address {mapped}. Write that one."
    if _is_in(address, allowed):
        return ""
    is_public = address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)
    if not is_public or _is_in(address, _REFUSED):
        return (
            f"{address} is an address of an inner network, and nothing is sent there. An administrator of FabricUI can "
            "allow its network (FABRICUI_WEBHOOK_NETWORKS)."
        )
    return ""


def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses that the machine's resolver gives for a name. Raises NotPosted."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    except (OSError, UnicodeError) as error:
        raise NotPosted(f"The name {host} could not be resolved.") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def post(
    target: Target,
    body: bytes,
    headers: Mapping[str, str],
    *,
    allowed: Sequence[Network] = (),
    ca_file: str = "",
    total_s: float = TOTAL_S,
    resolver: Resolve = resolve,
) -> int:
    """Send `body` once and return the status, which is 2xx. Raises NotPosted, BadTarget for an address we never ask.

    A name of which any address is refused is refused whole: the others could be bait.
    """
    if len(body) > LONGEST_BODY:
        raise NotPosted(f"The message has {len(body)} bytes, and {LONGEST_BODY} are the most.")
    until = time.monotonic() + total_s
    texts = [target.host] if target.literal is not None else _resolved(resolver, target, total_s)
    addresses = [ipaddress.ip_address(text) for text in texts]
    for address in addresses:
        why = why_not(address, allowed)
        if why:
            raise BadTarget(f"{target.host}: {why}" if target.literal is None else why)
    if not addresses:
        raise NotPosted(f"The name {target.host} has no address.")
    if not target.is_tls and not _is_in(addresses[0], allowed):
        raise BadTarget("Without TLS nothing is sent outside of the allowed networks.")
    left_s = max(0.1, until - time.monotonic())
    return _exchange(target, str(addresses[0]), body, headers, ca_file=ca_file, total_s=left_s)


def _resolved(resolver: Resolve, target: Target, within_s: float) -> Sequence[str]:
    """What `resolver` finds in time. The machine's has no bound of its own: whoever runs a name's servers sets it."""
    found: list[Sequence[str]] = []
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            found.append(resolver(target.host, target.port))
        except BaseException as error:
            failed.append(error)

    asking = threading.Thread(target=ask, name="webhook-name", daemon=True)  # left behind when it does not come back
    asking.start()
    asking.join(within_s)
    if failed:
        raise failed[0]
    if not found:
        raise NotPosted(f"The name {target.host} was not resolved in {within_s:.0f} s.")
    return found[0]


def _exchange(
    target: Target, address: str, body: bytes, headers: Mapping[str, str], *, ca_file: str, total_s: float
) -> int:
    try:
        line = socket.create_connection((address, target.port), timeout=total_s)
    except OSError as error:
        raise NotPosted(f"No connection to {target.host}: {_said(error)}.") from error
    # Each read has its own time, so somebody could answer for ever, a byte at a time: this ends it.
    held = [line]
    ended = threading.Event()
    ending = threading.Timer(total_s, _end, (held, ended))
    ending.daemon = True
    ending.start()
    try:
        if target.is_tls:
            context = ssl.create_default_context(cafile=ca_file or None)
            secure = context.wrap_socket(line, server_hostname=target.host, do_handshake_on_connect=False)
            held[0] = line = secure
            secure.do_handshake()
        connection = http.client.HTTPConnection(target.host, target.port, timeout=total_s)
        connection.sock = line
        connection.request("POST", target.path, body, {"Host": target.host_header, "Connection": "close", **headers})
        status = connection.getresponse().status  # of the rest nothing is read
        if ended.is_set():
            raise TimeoutError
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotPosted(f"{target.host} did not answer properly: {_said(error)}.") from error
    finally:
        ending.cancel()
        line.close()
    if 300 <= status < 400:
        raise NotPosted(f"{target.host} answered {status}, and no redirect is followed. Give the address it leads to.")
    if not 200 <= status < 300:
        raise NotPosted(f"{target.host} answered {status}.")
    return status


def _end(held: list[socket.socket], ended: threading.Event) -> None:
    ended.set()
    try:
        held[0].shutdown(socket.SHUT_RDWR)
    except OSError:
        held[0].close()


def _said(error: Exception) -> str:
    """What went wrong, in our words: an answer's own text could be anybody's secret."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid ({error.verify_message})"
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, OSError) and error.strerror and not isinstance(error, ssl.SSLError):
        return error.strerror.lower()
    return "the connection ended or what came was no HTTP" if not isinstance(error, ssl.SSLError) else "no TLS"


def _literal(host: str, netloc: str) -> bool:
    """Whether the host is an address in its one proper spelling. Raises BadTarget for any other spelling of one."""
    is_bracketed = netloc.startswith("[")
    if is_bracketed or ":" in host:
        try:
            if "%" in host or ipaddress.IPv6Address(host).compressed != host:
                raise ValueError
        except ValueError as error:
            raise BadTarget("This IPv6 address is not in its shortest spelling, or names a zone.") from error
        return True
    if _NUMERIC.match(host):
        try:
            return str(ipaddress.IPv4Address(host)) == host
        except ValueError as error:
            raise BadTarget("This number is not an IPv4 address as it is written: four numbers, three dots.") from error
    return False


def _is_in(address: Address, networks: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
