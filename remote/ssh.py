"""SSHShell: one account on one machine, over one kept SSH connection, with the machine's host key pinned.

The account's key may only run the wrapper (forced command), so all that goes out is a verb with its arguments.
"""

import contextlib
import select
import socket
import threading
import time
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Sequence
from pathlib import Path

import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from remote.errors import AccessRefused, CallTimedOut, HostKeyMismatch, RemoteError, Unreachable
from remote.shell import IDEMPOTENT_VERBS, Reply, command_line

# sshd's MaxSessions is 10 by default, and other programs may use the account (ground truth: real parts, 1).
MAX_CHANNELS = 4
CONNECT_S = 10.0  # TCP connect, banner, key exchange and authentication, each
KEEPALIVE_S = 15
_CHUNK = 32768


class _ConnectionLost(Exception):
    """The connection ended under a call; `was_sent` says whether the verb may have begun."""

    def __init__(self, why: str, *, was_sent: bool) -> None:
        super().__init__(why)
        self.was_sent = was_sent


class SSHShell:
    """Connects when first asked, keeps the connection, and connects once more when it is found dead.

    `host_key` is the pinned key as in known_hosts ("ssh-ed25519 AAAA…"); no other key is ever accepted. `key_file`
    holds our own Ed25519 key. Calls may come from several threads; at most MAX_CHANNELS run at a time.
    """

    def __init__(self, address: str, port: int, user: str, key_file: Path, host_key: str) -> None:
        self._address, self._port, self._user, self._key_file = address, port, user, key_file
        self._host_key = host_key
        self._channels = threading.BoundedSemaphore(MAX_CHANNELS)
        self._connecting = threading.Lock()
        self._transport: paramiko.Transport | None = None

    def call(self, verb: str, arguments: Sequence[str] = (), stdin: bytes = b"", *, timeout_s: float) -> Reply:
        """Run one verb; the connection's own set-up counts into `timeout_s`.

        A verb that had not gone out when the connection was found dead is sent again over a new one; so is an
        idempotent verb whose answer was lost. Nothing is tried more than twice.
        """
        command = command_line(verb, arguments)
        deadline = time.monotonic() + timeout_s
        if not self._channels.acquire(timeout=timeout_s):
            raise CallTimedOut(f"{verb} found {self._where} busy with {MAX_CHANNELS} other calls for {timeout_s:g} s.")
        try:
            transport, is_fresh = self._connection(deadline)
            try:
                return self._run(transport, verb, command, stdin, deadline)
            except _ConnectionLost as lost:
                self._drop(transport)
                if is_fresh or (lost.was_sent and verb not in IDEMPOTENT_VERBS):
                    raise Unreachable(f"The connection to {self._where} was lost during {verb}: {lost}.") from lost
            transport, _ = self._connection(deadline)
            try:
                return self._run(transport, verb, command, stdin, deadline)
            except _ConnectionLost as lost:
                self._drop(transport)
                raise Unreachable(f"The connection to {self._where} was lost twice during {verb}: {lost}.") from lost
        finally:
            self._channels.release()

    def open_channel(self, verb: str, arguments: Sequence[str] = (), *, timeout_s: float) -> paramiko.Channel:
        """Start one verb and return its channel, for a conversation; the caller closes it.

        Raises what `call` raises. A kept connection that is found dead is replaced once: nothing had begun on it.
        """
        command = command_line(verb, arguments)
        deadline = time.monotonic() + timeout_s
        for _ in range(2):
            transport, is_fresh = self._connection(deadline)
            try:
                channel = transport.open_session(timeout=max(0.1, min(CONNECT_S, deadline - time.monotonic())))
                channel.settimeout(max(0.1, deadline - time.monotonic()))
                _begin(channel, command, deadline)
            except TimeoutError as error:
                self._drop(transport)
                raise CallTimedOut(f"{verb} did not begin at {self._where} within {timeout_s:g} s.") from error
            except (paramiko.SSHException, EOFError, OSError) as error:
                self._drop(transport)
                if is_fresh:
                    raise Unreachable(
                        f"The connection to {self._where} was lost before {verb} began: {error}."
                    ) from error
            else:
                return channel
        raise Unreachable(f"The connection to {self._where} was lost before {verb} began.")

    def close(self) -> None:
        """End the connection, if there is one."""
        with self._connecting:
            if self._transport is not None:
                self._transport.close()
                self._transport = None

    @property
    def _where(self) -> str:
        return f"{self._user}@{self._address}:{self._port}"

    def _connection(self, deadline: float) -> tuple[paramiko.Transport, bool]:
        """The kept connection, or a new one (True)."""
        with self._connecting:
            if self._transport is not None and self._transport.is_active():
                return self._transport, False
            self._transport = self._connect(deadline)
            return self._transport, True

    def _drop(self, transport: paramiko.Transport) -> None:
        with self._connecting:
            transport.close()
            if self._transport is transport:
                self._transport = None

    def _connect(self, deadline: float) -> paramiko.Transport:
        pinned = _parse_host_key(self._host_key)
        key = _load_key(self._key_file)
        patience = max(0.1, min(CONNECT_S, deadline - time.monotonic()))
        try:
            link = socket.create_connection((self._address, self._port), timeout=patience)
        except OSError as error:
            raise Unreachable(
                f"No connection to {self._where}: {error.strerror or error}. Is sshd running there?"
            ) from error
        transport: paramiko.Transport | None = None
        try:
            # Without it each call waits some 40 ms for a delayed acknowledgement.
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            transport = paramiko.Transport(link)
            transport.banner_timeout = transport.handshake_timeout = transport.auth_timeout = patience
            # Ask for a key of the pinned kind only: a machine may hold several.
            transport.get_security_options().key_types = (pinned.get_name(),)
            self._handshake(transport, pinned, key, patience)
        except BaseException:
            if transport is not None:
                transport.close()
            link.close()
            raise
        transport.set_keepalive(KEEPALIVE_S)
        return transport

    def _handshake(
        self, transport: paramiko.Transport, pinned: paramiko.PKey, key: paramiko.PKey, patience: float
    ) -> None:
        """Agree on keys, compare the host's with the pinned one, and log in; each step is bounded by `patience`."""
        try:
            transport.start_client(timeout=patience)
            if transport.get_remote_server_key() != pinned:
                raise self._wrong_host_key("it shows another key")
            transport.auth_publickey(self._user, key)
        except IncompatiblePeer as error:
            if "host key" in str(error):
                raise self._wrong_host_key(f"it holds no {pinned.get_name()} key") from error
            raise AccessRefused(f"{self._where} and FabricUI share no SSH algorithm: {error}.") from error
        except paramiko.AuthenticationException as error:
            if not transport.is_active() or "timeout" in str(error).lower():
                raise Unreachable(f"{self._where} ended the login: {error}.") from error
            raise AccessRefused(
                f"{self._where} does not take FabricUI's key. Put the line that install prints into authorized_keys."
            ) from error
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise Unreachable(
                f"{self._where} accepted a connection but did not speak SSH: {str(error) or 'it hung up'}."
            ) from error

    def _wrong_host_key(self, what: str) -> HostKeyMismatch:
        return HostKeyMismatch(
            f"{self._where} is not the machine that was enrolled: {what}. "
            "If it was set up anew, pin its new host key (manage.py repin_manager_host or repin_probe_host). "
            "Else find out what answers there."
        )

    def _run(self, transport: paramiko.Transport, verb: str, command: str, stdin: bytes, deadline: float) -> Reply:
        """One verb over one channel."""
        try:
            channel = transport.open_session(timeout=max(0.1, min(CONNECT_S, deadline - time.monotonic())))
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise _ConnectionLost(str(error) or "closed", was_sent=False) from error
        begun = False
        with contextlib.closing(channel):
            try:
                channel.settimeout(max(0.1, deadline - time.monotonic()))
                _begin(channel, command, deadline)
                begun = True
                return _exchange(channel, stdin, deadline)
            except TimeoutError as error:
                if not begun:  # this sshd process may stay mute; another connection gets another one
                    self._drop(transport)
                raise CallTimedOut(
                    f"{verb} at {self._where} was not over in its time. It ends by itself on the host."
                ) from error
            except (paramiko.SSHException, EOFError, OSError) as error:
                raise _ConnectionLost(str(error) or "closed", was_sent=True) from error


def _begin(channel: paramiko.Channel, command: str, deadline: float) -> None:
    """Have the far sshd start `command`. Raises TimeoutError when it has not said by the deadline that it did.

    Paramiko itself waits for that answer without any time-out; only the end of the channel ends its wait.
    """
    is_late, is_over = threading.Event(), threading.Event()

    def give_up() -> None:
        is_late.set()
        while not is_over.wait(0.1):  # closing once may come a moment before paramiko begins to wait
            with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
                channel.close()
            channel.event.set()

    timer = threading.Timer(max(0.1, deadline - time.monotonic()), give_up)
    timer.daemon = True
    timer.start()
    try:
        channel.exec_command(command)
    except (paramiko.SSHException, EOFError, OSError) as error:
        if is_late.is_set():
            raise TimeoutError from error
        raise
    finally:
        is_over.set()
        timer.cancel()


def _exchange(channel: paramiko.Channel, stdin: bytes, deadline: float) -> Reply:
    """Send stdin and collect stdout and stderr at the same time, so that neither side can block the other.

    Raises TimeoutError at the deadline, EOFError when the connection ended without an exit status.
    """
    stdout, stderr = bytearray(), bytearray()
    rest = memoryview(stdin)
    is_open = True  # our direction
    ready = channel.fileno()
    while True:
        moved = False
        while channel.recv_ready():
            stdout += channel.recv(_CHUNK)
            moved = True
        while channel.recv_stderr_ready():
            stderr += channel.recv_stderr(_CHUNK)
            moved = True
        if rest and channel.send_ready():
            try:
                rest = rest[channel.send(bytes(rest[:_CHUNK])) :]
            except OSError:
                # The verb ended without reading it all; its exit status says why.
                rest = rest[:0]
            moved = True
        if is_open and not rest:
            with contextlib.suppress(OSError):
                channel.shutdown_write()
            is_open = False
        if moved:
            continue
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if not channel.eof_received and not channel.closed:
            # Nothing tells when the peer's window opens again, so a blocked send is tried every 5 ms.
            select.select([ready], [], [], min(left, 0.005) if rest else left)
            continue
        if not channel.status_event.wait(left):
            raise TimeoutError
        if channel.recv_ready() or channel.recv_stderr_ready():
            continue
        if channel.exit_status < 0:
            raise EOFError("it ended without an exit status")
        return Reply(channel.exit_status, bytes(stdout), bytes(stderr))


def _parse_host_key(text: str) -> paramiko.PKey:
    """The pinned key of a known_hosts or .pub line. Raises RemoteError when it is none."""
    words = text.split()
    try:
        if words[:1] != ["ssh-ed25519"] or len(words) < 2:
            raise ValueError("only Ed25519 keys are pinned (ssh_host_ed25519_key.pub)")
        return paramiko.PKey.from_type_string(words[0], b64decode(words[1], validate=True))
    except (ValueError, Base64Error, paramiko.SSHException) as error:
        raise RemoteError(
            f"The pinned host key “{text[:40]}” is no SSH public key: {error}. Enrol the host again."
        ) from error


def _load_key(file: Path) -> paramiko.PKey:
    """Our own private key. Raises AccessRefused when it cannot be read."""
    try:
        return paramiko.Ed25519Key.from_private_key_file(str(file))
    except (OSError, paramiko.SSHException) as error:
        raise AccessRefused(f"FabricUI's own key {file} cannot be read: {error}.") from error
