"""The RDMA guests' own life: nothing of them is left, whoever is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab import apart
from lab.errors import LabError
from lab.guests import guests
from lab.guests.guests import Guests, read_state, state_file
from lab.layout import Layout, wait_until
from lab.processes import ProcessID
from tests.lab.traces import NOTHING, all_of

pytestmark = pytest.mark.rdma

OWNER = "import sys\nfrom lab.guests.guests import Guests\nGuests.up(sys.argv[1], owned=True)\nsys.stdin.read()\n"
DEMO = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
from lab.data_plane import beside
from lab.launched import noted
from lab.site import Site
demo = Path(sys.argv[1])
(demo / "this-is-a-demo").touch()
with noted(demo, keep=False), Site.up(demo / "lab", servers=2, hcas=1) as site:
    with beside(SimpleNamespace(site=site), wanted=True):
        time.sleep(600)
"""
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
    monkeypatch.setattr(apart, "python_environment", lambda mark: {**os.environ, "PYTHONPATH": str(ROOT), "HOME": "/x"})
    (tmp_path / "cache").write_text("in the way")
    with pytest.raises(LabError, match="did not come up"):
        Guests.up(place, timeout_s=60)
    assert not place.exists()


def test_nothing_is_left_of_a_demo_whose_launcher_was_killed(tmp_path):
    demo, checkout = tmp_path / "demo", tmp_path / "checkout"
    demo.mkdir()
    checkout.mkdir()
    here = {"cwd": checkout, "env": {**os.environ, "PYTHONPATH": str(ROOT)}}
    layout = Layout(demo / "lab")
    launcher = subprocess.Popen([sys.executable, "-c", DEMO, demo], stdout=subprocess.DEVNULL, **here)
    try:
        running = wait_until(lambda: qemus(layout.guests), timeout_s=90, what="both guests to start beside the lab")
        state = layout.read_state()
        assert {process.pid for process in running} <= set(all_of(state)["processes"])
        launcher.kill()
        launcher.communicate()
        wait_until(lambda: all_gone(running), timeout_s=30, what="both guests to end by themselves")
    finally:
        launcher.kill()
        launcher.communicate()
        said = subprocess.run([sys.executable, "-m", "lab", "down"], capture_output=True, text=True, check=True, **here)
    assert f"The demo in {demo} was killed" in said.stdout
    assert all_of(state) == NOTHING
    assert not demo.exists()
