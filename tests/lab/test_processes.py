"""Which process is the lab's: never by number alone."""

import os
import signal
import subprocess
import sys

import pytest

from lab.processes import MARK, ProcessID, descendants, kill_all, marked

CHILD = (
    "import subprocess, sys; subprocess.Popen(['sleep', '60'], env={}); print('ready', flush=True); sys.stdin.read()"
)


@pytest.fixture
def parent():
    """A marked process with a child that does not carry the mark."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        env={**os.environ, MARK: "test-of-processes"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"ready\n"
    below = descendants([process.pid])
    yield process
    for pid in below | {process.pid}:
        identity = ProcessID.of(pid)
        if identity:
            identity.send(signal.SIGKILL)
    process.communicate()


def test_a_marked_process_is_found_with_its_unmarked_child(parent):
    found = marked("test-of-processes")
    assert parent.pid in found
    assert len(found) == 2
    assert marked("another-lab") == set()


def test_a_process_with_another_start_time_is_not_signalled(parent):
    identity = ProcessID.of(parent.pid)
    assert identity.is_alive
    stranger = ProcessID(parent.pid, identity.started - 1)
    assert not stranger.is_alive
    assert not stranger.send(signal.SIGKILL)
    assert parent.poll() is None


def test_a_zombie_is_not_alive():
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert ProcessID.of(process.pid) is None
    process.wait()


def test_killing_goes_on_until_nothing_is_found(parent):
    assert kill_all(lambda: marked("test-of-processes") - {os.getpid()}, timeout_s=5)
    assert parent.wait(timeout=5) == -signal.SIGKILL
    assert marked("test-of-processes") == set()
