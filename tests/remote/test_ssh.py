"""SSHShell against a real sshd, and against machines that misbehave: each failure has its own name and its time."""

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import paramiko
import pytest

from remote.errors import AccessRefused, CallTimedOut, HostKeyMismatch, RemoteError, Unreachable
from remote.shell import command_line
from remote.ssh import MAX_CHANNELS, SSHShell
from tests.remote.sites import Host, Sshd, children, install, looks_like_opensm, make_key, sha256, wait_until

# A reader that notes its start and end, to be slow on purpose.
SLOW = "echo start >>{notes}; sleep {seconds}; echo end >>{notes}; printf 'port_guid=0x0210fa10000a0001\\nlid=1\\n'"


@pytest.fixture
def shell(sshd: Sshd, key_file: Path) -> Iterator[SSHShell]:
    shell = sshd.shell(key_file)
    yield shell
    shell.close()


@contextlib.contextmanager
def listener(*, greeting: bytes = b"") -> Iterator[int]:
    """A loopback port that accepts, says `greeting` and stays silent."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        links: list[socket.socket] = []

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    link, _ = server.accept()
                    links.append(link)
                    link.sendall(greeting)

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            for link in links:
                link.close()


class Mute(paramiko.ServerInterface):
    """Lets anybody in and opens a session; then it takes the command and never answers."""

    def __init__(self) -> None:
        self.was_asked, self.is_over = threading.Event(), threading.Event()

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self.was_asked.set()
        self.is_over.wait()
        return False


@contextlib.contextmanager
def mute(host_key: Path) -> Iterator[tuple[int, Mute, list[paramiko.Transport]]]:
    """The port of an SSH server that stops between opening a session and answering what it is asked there."""
    server = Mute()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        transports: list[paramiko.Transport] = []

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    transport = paramiko.Transport(listening.accept()[0])
                    transports.append(transport)
                    transport.add_server_key(paramiko.Ed25519Key.from_private_key_file(str(host_key)))
                    transport.start_server(server=server)

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield listening.getsockname()[1], server, transports
        finally:
            server.is_over.set()
            listening.shutdown(socket.SHUT_RDWR)
            for transport in transports:
                transport.close()


class TestHostKey:
    def test_another_key_stops_everything(self, sshd: Sshd, key_file: Path, tmp_path: Path) -> None:
        shell = sshd.shell(key_file, host_key=make_key(tmp_path / "other"))
        with pytest.raises(HostKeyMismatch, match="not the machine that was enrolled") as caught:
            shell.call("identify", timeout_s=10)
        assert not caught.value.transient
        assert "Accepted publickey" not in sshd.log.read_text().splitlines()[-1]

    def test_a_machine_without_a_key_of_the_pinned_kind_is_another_machine(
        self, prepared: Host, key_file: Path, tmp_path: Path
    ) -> None:
        server = Sshd(tmp_path / "ecdsa", host_key_kind="ecdsa")
        try:
            server.let_in(prepared.authorized_keys)
            with pytest.raises(HostKeyMismatch):
                server.shell(key_file, host_key=make_key(tmp_path / "pinned")).call("identify", timeout_s=10)
        finally:
            server.stop()

    @pytest.mark.parametrize("text", ["", "ssh-ed25519", "ssh-ed25519 !!!", "ssh-rsa AAAA", "ssh-ed25519 AAAA"])
    def test_a_pin_that_is_no_key_is_refused_before_connecting(self, key_file: Path, text: str) -> None:
        with pytest.raises(RemoteError, match="Enrol the host again"):
            SSHShell("127.0.0.1", 1, "nobody", key_file, text).call("identify", timeout_s=5)


class TestAccess:
    def test_a_key_that_sshd_does_not_know_is_refused(self, sshd: Sshd, tmp_path: Path) -> None:
        make_key(tmp_path / "stranger")
        with pytest.raises(AccessRefused, match="authorized_keys") as caught:
            sshd.shell(tmp_path / "stranger").call("identify", timeout_s=10)
        assert not caught.value.transient

    def test_an_own_key_that_cannot_be_read_is_named(self, sshd: Sshd, tmp_path: Path) -> None:
        with pytest.raises(AccessRefused, match="no-such-key"):
            sshd.shell(tmp_path / "no-such-key").call("identify", timeout_s=10)

    def test_the_key_runs_verbs_and_nothing_else(self, sshd: Sshd, key_file: Path) -> None:
        link = socket.create_connection(("127.0.0.1", sshd.port))
        with contextlib.closing(paramiko.Transport(link)) as transport:
            user = sshd.shell(key_file)._user
            transport.connect(username=user, pkey=paramiko.Ed25519Key.from_private_key_file(str(key_file)))
            for attempt in ("id; id", "cat /etc/passwd", "read $(id)", "read `id`", "read *", "read\nid", "read 'x'"):
                channel = transport.open_session(timeout=10)
                channel.exec_command(attempt)
                assert channel.recv_exit_status() == 64, attempt
                assert channel.recv(1000) == b""
            with pytest.raises(paramiko.SSHException):
                transport.open_channel("direct-tcpip", ("127.0.0.1", 22), ("127.0.0.1", 1), timeout=10)


class TestSilence:
    @pytest.mark.parametrize("greeting", [b"", b"SSH-2.0-Silent\r\n", b"HTTP/1.0 400 Bad Request\r\n\r\n"])
    def test_a_machine_that_accepts_and_says_no_more_is_unreachable_in_time(
        self, key_file: Path, tmp_path: Path, greeting: bytes
    ) -> None:
        with listener(greeting=greeting) as port:
            shell = SSHShell("127.0.0.1", port, "nobody", key_file, make_key(tmp_path / "pin"))
            began = time.monotonic()
            with pytest.raises(Unreachable) as caught:
                shell.call("identify", timeout_s=1)
            assert time.monotonic() - began < 8
            assert caught.value.transient

    @pytest.mark.parametrize("way", ["call", "open_channel"])
    def test_a_server_that_takes_the_command_and_never_answers_ends_at_the_deadline(
        self, key_file: Path, tmp_path: Path, way: str
    ) -> None:
        """Paramiko waits for that answer without any time-out: the one worker of all rollouts would wait for ever."""
        pinned = make_key(tmp_path / "pin")
        raised: list[BaseException] = []
        with mute(tmp_path / "pin") as (port, server, transports):
            shell = SSHShell("127.0.0.1", port, "nobody", key_file, pinned)

            def ask() -> None:
                try:
                    getattr(shell, way)("identify", timeout_s=1.5)
                except Exception as error:
                    raised.append(error)

            asking = threading.Thread(target=ask, daemon=True)
            asking.start()
            assert server.was_asked.wait(10)
            asking.join(8)
            assert not asking.is_alive(), "it waits for ever"
            ask()  # by a connection of its own, which may have another sshd behind it
            assert len(transports) == 2
            shell.close()
        assert [type(one) for one in raised] == [CallTimedOut, CallTimedOut]
        assert raised[0].transient

    def test_a_port_nobody_listens_on_is_unreachable(self, key_file: Path, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with pytest.raises(Unreachable, match="Is sshd running"):
            SSHShell("127.0.0.1", port, "nobody", key_file, make_key(tmp_path / "pin")).call("identify", timeout_s=5)

    def test_a_connection_that_freezes_under_a_call_ends_at_the_deadline(self, sshd: Sshd, shell: SSHShell) -> None:
        before = set(sshd.sessions())
        shell.call("identify", timeout_s=10)
        [session] = set(sshd.sessions()) - before
        # Newer sshd serve a session by a child of its own, whoever signs in.
        processes = [session, *children(session)]
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            with pytest.raises((CallTimedOut, Unreachable)) as caught:
                shell.call("identify", timeout_s=1)
            assert time.monotonic() - began < 8
            assert caught.value.transient
        finally:
            for pid in processes:
                os.kill(pid, signal.SIGCONT)


class TestLostConnection:
    def test_a_connection_found_dead_is_made_anew_for_any_verb(self, sshd: Sshd, shell: SSHShell) -> None:
        assert shell.call("identify", timeout_s=10).exit_status == 0
        sshd.drop_sessions()
        # Nothing was sent yet, so even a reload may go out over the new connection; no OpenSM runs here (81).
        assert shell.call("reload", timeout_s=10).exit_status == 81

    def test_an_idempotent_verb_cut_under_way_is_run_again(
        self, prepared: Host, sshd: Sshd, shell: SSHShell, tmp_path: Path
    ) -> None:
        notes = tmp_path / "notes"
        prepared.replace_reader(SLOW.format(notes=notes, seconds=1))
        shell.call("identify", timeout_s=10)
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(shell.call, "sm_state", timeout_s=20)
            wait_until(notes.exists)
            sshd.drop_sessions()
            assert answer.result().exit_status == 0
        assert notes.read_text().count("start") == 2

    def test_a_reload_cut_under_way_is_not_run_again(
        self, prepared: Host, sshd: Sshd, shell: SSHShell, tmp_path: Path
    ) -> None:
        notes = tmp_path / "notes"
        prepared.replace_reader(SLOW.format(notes=notes, seconds=1))
        shell.call("identify", timeout_s=10)
        with looks_like_opensm(
            tmp_path / "sm", "-g", "0x0210fa10000a0001", "-P", str(prepared.partitions), simulator=prepared.simulator
        ):
            with ThreadPoolExecutor(1) as pool:
                answer = pool.submit(shell.call, "reload", timeout_s=20)
                wait_until(notes.exists)
                sshd.drop_sessions()
                with pytest.raises(Unreachable, match="lost during reload"):
                    answer.result()
            assert notes.read_text().count("start") == 1

    def test_a_stage_cut_under_way_leaves_nothing(self, prepared: Host, sshd: Sshd, key_file: Path) -> None:
        data = b"x" * 100_000
        link = socket.create_connection(("127.0.0.1", sshd.port))
        transport = paramiko.Transport(link)
        transport.connect(
            username=sshd.shell(key_file)._user, pkey=paramiko.Ed25519Key.from_private_key_file(str(key_file))
        )
        channel = transport.open_session(timeout=10)
        channel.exec_command(command_line("stage", [sha256(data), str(len(data))]))
        channel.sendall(data[:60_000])
        wait_until(lambda: any(".staging." in name for name in prepared.leftovers()))
        transport.close()
        wait_until(lambda: prepared.leftovers() == [])
        assert not prepared.partitions.exists()


class TestTraffic:
    def test_a_verb_that_ends_without_reading_its_stdin_is_heard(self, shell: SSHShell) -> None:
        reply = shell.call("stage", ["not-a-digest", "1"], os.urandom(5_000_000), timeout_s=20)
        assert reply.exit_status == 64
        assert b"stage takes a SHA-256" in reply.stderr

    def test_both_directions_flow_at_once(self, prepared: Host, shell: SSHShell) -> None:
        # A verb that echoes everything, and says as much on stderr, blocks whoever sends first and reads later.
        prepared.wrapper.write_text("#!/bin/sh\ntee /dev/stderr\n")
        data = os.urandom(3_000_000)
        reply = shell.call("read", [], data, timeout_s=30)
        assert reply.stdout == data
        assert reply.stderr == data

    def test_a_verb_that_takes_too_long_ends_at_the_deadline(
        self, prepared: Host, shell: SSHShell, tmp_path: Path
    ) -> None:
        prepared.replace_reader(SLOW.format(notes=tmp_path / "notes", seconds=3))
        began = time.monotonic()
        with pytest.raises(CallTimedOut, match="sm_state"):
            shell.call("sm_state", timeout_s=1)
        assert time.monotonic() - began < 2.5

    def test_no_more_than_four_verbs_run_at_a_time(self, prepared: Host, shell: SSHShell, tmp_path: Path) -> None:
        notes = tmp_path / "notes"
        # Each verb waits until four have begun, so that a slow machine cannot make them miss one another.
        prepared.replace_reader(
            f"echo start >>{notes}; tries=0; while [ $(grep -c start {notes}) -lt 4 ] && [ $tries -lt 200 ]; "
            f"do sleep 0.05; tries=$((tries + 1)); done; sleep 0.3; echo end >>{notes}"
        )
        with ThreadPoolExecutor(7) as pool:
            replies = list(pool.map(lambda _: shell.call("sm_state", timeout_s=30), range(7)))
        assert [reply.exit_status for reply in replies] == [0] * 7
        running = most = 0
        for word in notes.read_text().split():
            running += 1 if word == "start" else -1
            most = max(most, running)
        assert most == MAX_CHANNELS == 4

    def test_calls_share_one_connection_and_close_ends_it(self, sshd: Sshd, shell: SSHShell) -> None:
        before = set(sshd.sessions())
        for _ in range(3):
            shell.call("identify", timeout_s=10)
        assert len(set(sshd.sessions()) - before) == 1
        shell.close()
        wait_until(lambda: set(sshd.sessions()) <= before)
        assert shell.call("identify", timeout_s=10).exit_status == 0

    @pytest.mark.parametrize("word", ["", "a b", "$(id)", "a;b", "a\nb", "ä", "a'b", "*"])
    def test_what_the_wrapper_would_refuse_is_not_even_sent(self, key_file: Path, word: str) -> None:
        with pytest.raises(ValueError, match="cannot be sent"):
            SSHShell("127.0.0.1", 1, "nobody", key_file, "").call("read", [word], timeout_s=1)


def test_both_managers_of_one_machine_are_told_apart(
    sshd: Sshd, key_file: Path, prepared: Host, tmp_path: Path
) -> None:
    """Two folders, two keys, one account: the key decides which partition file a verb sees."""
    make_key(tmp_path / "second")
    other = install(tmp_path / "other", tmp_path / "second.pub")
    sshd.let_in(prepared.authorized_keys + "\n" + other.authorized_keys)
    prepared.partitions.write_bytes(b"first")
    other.partitions.write_bytes(b"second")
    shells = [sshd.shell(key_file), sshd.shell(tmp_path / "second")]
    assert [shell.call("read", timeout_s=10).stdout for shell in shells] == [b"first", b"second"]
    for shell in shells:
        shell.close()
