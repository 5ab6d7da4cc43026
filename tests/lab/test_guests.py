"""The RDMA guests' own life: nothing of them is left, whoever is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.guests import guests
from lab.guests.guests import Guests, read_state, state_file
from lab.layout import wait_until
from lab.processes import ProcessID

pytestmark = pytest.mark.rdma

OWNER = "import sys\nfrom lab.guests.guests import Guests\nGuests.up(sys.argv[1], owned=True)\nsys.stdin.read()\n"
ROOT = Path(guests.__file__).resolve().parent.parent.parent


@pytest.fixture
def place(tmp_path):
    yield tmp_path / "g"
    guests.down(tmp_path / "g")


def qemus(place):
    """Both QEMU once they run, None before."""
    if not state_file(place).exists():
        return None
    found = [ProcessID.from_json(value) for value in read_state(place).processes.values()]
    return found if len(found) == 2 else None


@pytest.fixture
def owner(place):
    """A process that starts guests of its own; they are on their way."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, place], cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    yield process
    process.kill()
    process.communicate()


def all_gone(processes):
    return not any(process.is_alive for process in processes)


def test_nothing_is_left_when_the_owner_is_killed(place, owner):
    running = wait_until(lambda: qemus(place), timeout_s=60, what="both guests to start")
    owner.kill()
    wait_until(lambda: all_gone(running), timeout_s=30, what="both guests to end")
    wait_until(lambda: not place.exists(), timeout_s=30, what="their folder to go")


def test_nothing_is_left_when_the_supervisor_is_killed(place, owner):
    running = wait_until(lambda: qemus(place), timeout_s=60, what="both guests to start")
    os.kill(read_state(place).supervisor["pid"], signal.SIGKILL)
    wait_until(lambda: all_gone(running), timeout_s=30, what="both guests to end")
    wait_until(lambda: not place.exists(), timeout_s=30, what="their owner to clear away")


def test_guests_that_cannot_start_say_why_and_leave_nothing(place, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        guests, "python_environment", lambda mark: {**os.environ, "PYTHONPATH": str(ROOT), "HOME": "/x"}
    )
    (tmp_path / "cache").write_text("in the way")
    with pytest.raises(LabError, match="did not come up"):
        Guests.up(place, timeout_s=60)
    assert not place.exists()
