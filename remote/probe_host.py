"""ProbeHost: a server on which FabricUI may start one pinned program and talk with it. JSON lines, all bounded.

The key and the account are others than those of the manager hosts. What a server answers is a claim of its root; it
can therefore also be too much or nonsense, and both end the conversation.
"""

import contextlib
import json
import math
import select
import time
from collections.abc import Mapping
from typing import Any, Protocol

import paramiko

from remote.errors import NotUnderstood, RemoteError, StreamEnded, StreamOverflow, VerbFailed, WrapperMismatch
from remote.shell import Reply
from remote.ssh import SSHShell

LINE_BYTES = 256 * 1024
ALL_BYTES = 1024 * 1024
STDERR_BYTES = 256 * 1024
_SAID_CHARACTERS = 400
_IDENTIFY_S = 45.0
_CHUNK = 32768


class ProbeStream(Protocol):
    """A conversation with the program on one host."""

    def send(self, request: Mapping[str, Any]) -> None:
        """Send one request. Raises StreamEnded."""

    def poll(self, timeout_s: float) -> dict[str, Any] | None:
        """The next answer, None when none came in time. Raises StreamEnded, StreamOverflow, NotUnderstood."""

    def close(self) -> None:
        """End the conversation; the program ends with its stdin. Never raises."""


class ProbeShell(Protocol):
    """A way to one server's program."""

    @property
    def name(self) -> str:
        """The server's name."""

    def open(self, *, seconds: float, timeout_s: float) -> ProbeStream:
        """Start the program, bounded on the host to `seconds`. Raises RemoteError."""


class Lines:
    """Bytes in, JSON objects out; refuses what is too long."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._seen = 0

    def feed(self, data: bytes) -> None:
        """Take in what came. Raises StreamOverflow."""
        self._seen += len(data)
        self._held += data
        if self._seen > ALL_BYTES:
            raise StreamOverflow(f"it wrote more than {ALL_BYTES} bytes")

    def next(self) -> dict[str, Any] | None:
        """The next whole object. Raises StreamOverflow for an endless line, NotUnderstood for what is no object."""
        line, newline, rest = self._held.partition(b"\n")
        if len(line) > LINE_BYTES:
            raise StreamOverflow(f"it wrote a line of more than {LINE_BYTES} bytes")
        if not newline:
            return None
        self._held = rest
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise NotUnderstood(f"it wrote “{line[:80].decode('utf-8', 'replace')}”, which is no answer")
        return value


class SSHStream:
    """A conversation over one SSH channel."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel
        self._ready = channel.fileno()
        self._lines = Lines()
        self._stderr = bytearray()
        self._stderr_seen = 0

    def send(self, request: Mapping[str, Any]) -> None:
        """See ProbeStream."""
        try:
            self._channel.settimeout(10.0)
            self._channel.sendall(json.dumps(request).encode() + b"\n")
        except OSError:
            raise self._ended() from None

    def poll(self, timeout_s: float) -> dict[str, Any] | None:
        """See ProbeStream."""
        deadline = time.monotonic() + timeout_s
        while True:
            is_over = self._channel.eof_received or self._channel.closed
            self._take()
            found = self._lines.next()
            if found is not None:
                return found
            if is_over:
                raise self._ended()
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            select.select([self._ready], [], [], left)

    def _take(self) -> None:
        while self._channel.recv_ready():
            self._lines.feed(self._channel.recv(_CHUNK))
        while self._channel.recv_stderr_ready():
            data = self._channel.recv_stderr(_CHUNK)
            self._stderr_seen += len(data)
            self._stderr = (self._stderr + data)[-_SAID_CHARACTERS:]
            if self._stderr_seen > STDERR_BYTES:
                raise StreamOverflow(f"it wrote more than {STDERR_BYTES} bytes to stderr")

    def _ended(self) -> StreamEnded:
        status = -1
        if self._channel.status_event.wait(1.0):
            status = self._channel.exit_status
        with contextlib.suppress(RemoteError):
            self._take()
        return StreamEnded(status, self._stderr.decode("utf-8", "replace").strip())

    def close(self) -> None:
        """See ProbeStream."""
        with contextlib.suppress(Exception):
            self._channel.close()


class ProbeHost:
    """One server through SSH. `wrapper_digest` and `program_digest` are what `install-probe` printed, or our own."""

    def __init__(self, name: str, shell: SSHShell, wrapper_digest: str, program_digest: str) -> None:
        self._name = name
        self._shell = shell
        self._wrapper_digest, self._program_digest = wrapper_digest, program_digest
        self._is_checked = False

    @property
    def name(self) -> str:
        """See ProbeShell."""
        return self._name

    def identify(self, *, timeout_s: float = _IDENTIFY_S) -> dict[str, str]:
        """What is installed there: wrapper_digest, program_digest, python, python_version. Raises RemoteError."""
        reply = self._shell.call("identify", timeout_s=timeout_s)
        if reply.exit_status:
            raise self._failed(reply)
        pairs = (line.partition("=")[::2] for line in reply.stdout[:4096].decode("utf-8", "replace").splitlines())
        return dict(pairs)

    def open(self, *, seconds: float, timeout_s: float) -> ProbeStream:
        """See ProbeShell. The wrapper's digest is compared at the first time; the wrapper compares the program's."""
        deadline = time.monotonic() + timeout_s
        if not self._is_checked:
            found = self.identify(timeout_s=timeout_s).get("wrapper_digest", "")
            if found != self._wrapper_digest:
                raise WrapperMismatch(
                    f"the wrapper there has SHA-256 {found[:16] or 'none'}…, pinned is {self._wrapper_digest[:16]}…"
                )
            self._is_checked = True
        words = (self._program_digest, str(max(1, math.ceil(seconds))))
        left = max(0.5, deadline - time.monotonic())
        return SSHStream(self._shell.open_channel("run", words, timeout_s=left))

    def close(self) -> None:
        """Let go of the connection."""
        self._shell.close()

    def _failed(self, reply: Reply) -> VerbFailed:
        said = reply.stderr[-_SAID_CHARACTERS:].decode("utf-8", "replace").strip()
        return VerbFailed(reply.exit_status, said or f"identify ended with status {reply.exit_status}", host=self._name)
