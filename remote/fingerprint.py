"""The fingerprint of a machine's SSH host key, and the key that a machine shows to whoever connects.

What a machine shows proves nothing by itself: a person compares its fingerprint with what the machine's own console
prints (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`), and only then is the key pinned.
"""

import binascii
import hashlib
import socket
from base64 import b64decode, b64encode
from typing import Final

import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from remote.errors import HostKeyMismatch, Unreachable

PATIENCE_S: Final = 10.0


def fingerprint(host_key: str) -> str:
    """`SHA256:…` of a key line such as “ssh-ed25519 AAAA…”, as ssh-keygen -l prints it; "" for no key line."""
    words = host_key.split()
    try:
        blob = b64decode(words[1], validate=True)
    except (IndexError, binascii.Error, ValueError):
        return ""
    return "SHA256:" + b64encode(hashlib.sha256(blob).digest()).decode("ascii").rstrip("=")


def presented_host_key(address: str, port: int) -> str:
    """The Ed25519 host key that the machine shows, as a line; nothing is sent but the handshake.

    Raises Unreachable, and HostKeyMismatch when it holds no key of that kind.
    """
    try:
        link = socket.create_connection((address, port), timeout=PATIENCE_S)
    except OSError as error:
        raise Unreachable(
            f"No connection to {address}:{port}: {error.strerror or error}. Is sshd running there?"
        ) from error
    transport: paramiko.Transport | None = None
    try:
        transport = paramiko.Transport(link)
        transport.banner_timeout = transport.handshake_timeout = PATIENCE_S
        transport.get_security_options().key_types = ("ssh-ed25519",)
        transport.start_client(timeout=PATIENCE_S)
        key = transport.get_remote_server_key()
    except IncompatiblePeer as error:
        raise HostKeyMismatch(
            f"{address}:{port} holds no Ed25519 host key. On it: ssh-keygen -A, and restart sshd."
        ) from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise Unreachable(f"{address}:{port} accepted a connection but did not speak SSH: {error}.") from error
    finally:
        if transport is not None:
            transport.close()
        link.close()
    return f"{key.get_name()} {key.get_base64()}"


def confirmed_host_key(address: str, port: int, *, expected: str) -> str:
    """The key that the machine shows, if its fingerprint is the one a person read there. Raises HostKeyMismatch."""
    key = presented_host_key(address, port)
    found = fingerprint(key)
    if found != expected.strip():
        raise HostKeyMismatch(
            f"{address}:{port} shows the key {found}, and {expected.strip()[:80]} was read on the machine. Something "
            "else answers there, or the line is of another key: compare with ssh-keygen -lf "
            "/etc/ssh/ssh_host_ed25519_key.pub. Nothing was pinned."
        )
    return key
