"""ManagerHost turns answers into values and exit statuses into typed errors; no machine is needed for that."""

import ast
import re
import subprocess
from collections.abc import Sequence

import pytest

from remote import errors
from remote.errors import CallTimedOut, RemoteError, Unreachable, VerbFailed
from remote.manager_host import ManagerHost, ReloadMark
from remote.shell import Reply
from tests.remote.sites import SOURCES

IDENTITY = (
    b"wrapper_digest=w\nreader_digest=r\nopensm_version=3.3.23\npartition_file=/p\nlist_file=/l\nlog_file=/g\n"
    b"generation=0\n"
)


class Scripted:
    """A shell that answers identify well, and any other verb as told."""

    def __init__(self, reply: Reply | RemoteError, identity: bytes = IDENTITY) -> None:
        self.reply, self.identity = reply, identity
        self.asked: list[tuple[str, tuple[str, ...], float]] = []

    def call(self, verb: str, arguments: Sequence[str] = (), stdin: bytes = b"", *, timeout_s: float) -> Reply:
        self.asked.append((verb, tuple(arguments), timeout_s))
        if verb == "identify":
            return Reply(0, self.identity, b"")
        if isinstance(self.reply, RemoteError):
            raise self.reply
        return self.reply

    def close(self) -> None:
        pass


def host(reply: Reply | RemoteError, identity: bytes = IDENTITY) -> ManagerHost:
    return ManagerHost("sm1", Scripted(reply, identity), "w", "r")


CASES = {
    64: (errors.VerbRefused, False), 65: (errors.DigestMismatch, True), 66: (errors.FileMissing, False),
    67: (errors.FileUnreadable, False), 73: (errors.FileNotWritable, False), 75: (errors.HostBusy, True),
    78: (VerbFailed, False), 80: (errors.StaleGeneration, False), 81: (errors.OpenSMNotRunning, False),
    82: (errors.OpenSMDiffers, False), 83: (errors.BarrierTimedOut, True), 84: (errors.ReaderFailed, False),
    85: (errors.TablesMoved, True), 86: (errors.NotMaster, False), 1: (VerbFailed, False),
}  # fmt: skip


@pytest.mark.parametrize("status", CASES)
def test_each_exit_status_has_its_error(status: int) -> None:
    kind, transient = CASES[status]
    said = b"noise of a library\nfabricui-tables: first\nfabricui-host: This is the sentence.\n"
    with pytest.raises(VerbFailed) as caught:
        host(Reply(status, b"", said)).read()
    assert type(caught.value) is kind
    assert caught.value.transient is transient
    assert caught.value.exit_status == status
    assert str(caught.value) == "Manager host sm1: This is the sentence."
    assert caught.value.host == "sm1"


def test_every_documented_exit_status_of_the_wrapper_is_among_the_cases() -> None:
    head = (SOURCES / "fabricui-host").read_text().partition("\nset -")[0]
    documented = {
        int(number) for number in re.findall(r"(?<=[ ,])(\d{2,3})(?=[ ,])", head.partition("exit status:")[2])
    }
    assert documented == {status for status in CASES if status != 1} | {124, 137}


@pytest.mark.parametrize("status", [124, 137])
def test_a_verb_that_was_stopped_on_the_host_timed_out(status: int) -> None:
    with pytest.raises(CallTimedOut) as caught:
        host(Reply(status, b"", b"")).read()
    assert caught.value.transient


def test_a_failure_without_a_sentence_still_says_something() -> None:
    with pytest.raises(VerbFailed, match="read ended with status 3"):
        host(Reply(3, b"", b"")).read()
    with pytest.raises(VerbFailed, match="sh: not found"):
        host(Reply(127, b"", b"sh: not found\n")).read()


def test_a_shells_own_error_is_given_the_hosts_name() -> None:
    with pytest.raises(Unreachable) as caught:
        host(Unreachable("gone")).read()
    assert caught.value.host == "sm1"


@pytest.mark.parametrize("answer", [b"", b"pid=1\n", b"pid=x\nstarted=1\n"])
def test_an_answer_that_lacks_a_value_is_a_failure_and_no_mark(answer: bytes) -> None:
    with pytest.raises(VerbFailed):
        host(Reply(0, answer, b"")).reload()


def test_digests_are_compared_once_and_again_after_close() -> None:
    shell = Scripted(Reply(0, b"x", b""))
    manager = ManagerHost("sm1", shell, "w", "r")
    manager.read()
    manager.read()
    manager.close()
    manager.read()
    assert [verb for verb, _, _ in shell.asked] == ["identify", "read", "read", "identify", "read"]


def test_the_caller_waits_longer_than_the_host_does() -> None:
    shell = Scripted(Reply(0, b"list_mtime_ns=1\nactivity=2\nwaited_s=0.5\n", b""))
    manager = ManagerHost("sm1", shell, "w", "r")
    settled = manager.barrier(ReloadMark(1, 2, 3, -1, 5, 6), timeout_s=7.5)
    assert (settled.list_mtime_ns, settled.activity, settled.waited_s) == (1, 2, 0.5)
    verb, words, patience = shell.asked[-1]
    # The wrapper adds 10 s to the 8 s before it stops the reader.
    assert (verb, words) == ("barrier", ("1", "2", "3", "-1", "8"))
    assert patience > 18


def test_sharing_is_a_problem_too() -> None:
    identity = host(Reply(0, b"", b""), IDENTITY + b"problem=One.\nsharing=Two.\n").identify()
    assert identity.sharing == ("Two.",)
    assert identity.problems == ("Manager host sm1: One.", "Manager host sm1: Two.")


def test_the_reader_is_written_for_python_3_6() -> None:
    ast.parse((SOURCES / "fabricui-tables").read_text(), feature_version=(3, 6))


def test_the_wrapper_is_dash() -> None:
    for script in ("fabricui-host", "install"):
        assert subprocess.run(["dash", "-n", SOURCES / script], check=False).returncode == 0
