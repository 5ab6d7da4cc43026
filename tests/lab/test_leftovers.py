"""Nothing of a lab is left after `down`, whoever was killed before; shown by a listing before and after."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab import breaking
from lab.errors import LabError
from lab.layout import SUPERVISOR, Layout
from lab.site import Site
from tests.lab.traces import NOTHING, all_of, attached_client, killed_client, processes, until

pytestmark = pytest.mark.contract
SMALL = ["--servers", "2", "--hcas", "1"]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def directory(tmp_path):
    folder = tmp_path / "site"
    yield folder
    Site.remove(folder)


def lab(*words, directory, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "lab", *words, "--dir", str(directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def done(*words, directory):
    process = lab(*words, directory=directory)
    said, complaint = process.communicate(timeout=60)
    return process.returncode, said, complaint


def assert_up(state):
    traces = all_of(state)
    names = " ".join(traces["processes"].values())
    assert names.count("/opensm ") == 2
    assert "ibsim" in names
    assert names.count("sshd") >= 2
    assert any("@" + state.socket_name + ":ctl" in row for row in traces["sockets"])
    assert Layout(state.directory).control_socket.is_socket()
    assert len(traces["listeners"]) >= 2


def test_up_status_down_from_the_command_line_leave_nothing(directory):
    status, said, _ = done("up", *SMALL, directory=directory)
    assert status == 0
    assert "The lab is up" in said
    state = Layout(directory).read_state()
    assert_up(state)
    status, said, _ = done("status", directory=directory)
    assert "sm-a: OpenSM MASTER" in said
    assert "sm-b: OpenSM STANDBY" in said
    status, said, _ = done("break", "stop-sshd", "sm-b", directory=directory)
    assert status == 0
    status, said, _ = done("down", directory=directory)
    assert status == 0
    assert "nothing of it is left" in said
    assert all_of(state) == NOTHING
    assert not directory.exists()


def test_a_lab_that_is_broken_in_every_way_leaves_nothing(directory):
    site = Site.up(directory, servers=2, hcas=1)
    breaking.fill_disk(site, "sm-a")
    breaking.make_disk_read_only(site, "sm-b")
    breaking.slow_ssh(site, "sm-a", delay_ms=50)
    breaking.start_rogue(site)
    breaking.cut_link(site, site.fabric.servers[0].hcas[0])
    killed_client(site)
    client = attached_client(site)
    breaking.freeze_opensm(site, "sm-b")
    state = site.state
    site.down()
    assert client.wait(timeout=5) == -signal.SIGKILL
    assert all_of(state) == NOTHING


def test_a_killed_supervisor_takes_its_daemons_along_and_down_clears_the_rest(directory):
    site = Site.up(directory, servers=2, hcas=1)
    breaking.fill_disk(site, "sm-a")
    killed_client(site)
    state = site.state
    with waiting_verb(site) as session_and_verb:
        os.kill(state.process(SUPERVISOR).pid, signal.SIGKILL)
        until(lambda: not any("opensm" in command or "ibsim" in command for command in daemons(state)))
        assert session_and_verb <= set(processes(state))
        with pytest.raises(LabError, match="does not run"):
            Site.attach(directory)
        assert done("down", directory=directory)[0] == 0
        assert all_of(state) == NOTHING


def daemons(state):
    return [command for command in processes(state).values() if "fabricui-host" not in command]


@contextlib.contextmanager
def waiting_verb(site):
    """A verb that waits for its input on the host; yields the PIDs of its session and of all it runs."""
    manager = site.manager("sm-a")
    before = set(processes(site.state))
    options = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-i", str(site.manager_key)]
    command = ["ssh", *options, "-p", str(manager.ssh_port), f"{manager.user}@{manager.address}"]
    client = subprocess.Popen([*command, f"stage {'0' * 64} 1000000"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def started():
        now = {pid: command for pid, command in processes(site.state).items() if pid not in before | {client.pid}}
        return set(now) if any("head" in command for command in now.values()) else None

    try:
        yield until(started)
    finally:
        client.kill()
        client.communicate()


def test_a_killed_launcher_leaves_a_lab_that_down_clears(directory):
    launcher = lab("up", *SMALL, "--foreground", directory=directory)
    until(lambda: Layout(directory).state_file.exists() and Layout(directory).read_state().phase == "up")
    state = Layout(directory).read_state()
    launcher.kill()
    launcher.communicate()
    assert_up(state)
    assert done("down", directory=directory)[0] == 0
    assert all_of(state) == NOTHING


def test_a_launcher_killed_in_the_middle_of_up_leaves_what_down_clears(directory):
    launcher = lab("up", *SMALL, directory=directory)
    until(lambda: Layout(directory).state_file.exists())
    launcher.kill()
    launcher.communicate()
    state = Layout(directory).read_state()
    assert done("down", directory=directory)[0] == 0
    assert all_of(state) == NOTHING


def test_ctrl_c_of_a_foreground_launcher_ends_the_lab(directory):
    launcher = lab("up", *SMALL, "--foreground", directory=directory)
    until(lambda: Layout(directory).state_file.exists() and Layout(directory).read_state().phase == "up")
    state = Layout(directory).read_state()
    launcher.send_signal(signal.SIGINT)
    assert launcher.wait(timeout=30) == 130
    launcher.communicate()
    assert all_of(state) == NOTHING


def test_an_owned_lab_ends_with_its_owner(directory):
    program = (
        "import sys, time; from pathlib import Path; from lab.site import Site\n"
        "Site.up(Path(sys.argv[1]), servers=2, hcas=1, owned=True); print('up', flush=True); time.sleep(600)"
    )
    owner = subprocess.Popen([sys.executable, "-c", program, str(directory)], stdout=subprocess.PIPE)
    assert owner.stdout.readline() == b"up\n"
    state = Layout(directory).read_state()
    owner.kill()
    owner.communicate()
    until(lambda: not processes(state))
    Site.remove(directory)
    assert all_of(state) == NOTHING


def test_down_without_a_directory_ends_the_lab_of_a_demo_whose_launcher_was_killed(tmp_path):
    program = (
        "import sys, time; from pathlib import Path; from lab.launched import noted; from lab.site import Site\n"
        "demo = Path(sys.argv[1]); (demo / 'this-is-a-demo').touch()\n"
        "with noted(demo, keep=False), Site.up(demo / 'lab', servers=2, hcas=1):\n"
        "    print('up', flush=True); time.sleep(600)"
    )
    demo, checkout = tmp_path / "demo", tmp_path / "checkout"
    demo.mkdir()
    checkout.mkdir()
    here = {"cwd": checkout, "env": {**os.environ, "PYTHONPATH": str(ROOT)}}
    launcher = subprocess.Popen([sys.executable, "-c", program, str(demo)], stdout=subprocess.PIPE, **here)
    assert launcher.stdout.readline() == b"up\n"
    state = Layout(demo / "lab").read_state()

    def down():
        return subprocess.run([sys.executable, "-m", "lab", "down"], capture_output=True, text=True, check=True, **here)

    assert "was killed" not in down().stdout  # its launcher lives, so it is somebody's
    assert_up(state)
    launcher.kill()
    launcher.communicate()
    assert f"The demo in {demo} was killed" in down().stdout
    assert all_of(state) == NOTHING
    assert not demo.exists()
    assert not list((checkout / ".fabricui/launched").iterdir())


def test_a_second_demo_in_the_folder_of_a_living_one_is_refused(tmp_path):
    program = (
        "import time; from pathlib import Path; from lab.launched import noted\n"
        "with noted(Path('.fabricui/demo'), keep=True): print('noted', flush=True); time.sleep(600)"
    )
    demo = tmp_path / ".fabricui/demo"
    demo.mkdir(parents=True)
    (demo / "this-is-a-demo").touch()
    (demo / "database").touch()
    here = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(ROOT)}}
    first = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, **here)
    try:
        assert first.stdout.readline() == b"noted\n"
        refused, status = (
            subprocess.run([sys.executable, "-m", "lab", *words], capture_output=True, text=True, check=False, **here)
            for words in (["demo"], ["status"])
        )
    finally:
        first.kill()
        first.communicate()
    assert refused.returncode == 1
    assert f"A demo runs in {demo} (PID {first.pid}). End it with Ctrl-C there, or name" in refused.stderr
    assert (demo / "database").exists()
    assert status.returncode == 1
    assert f"--dir {demo / 'lab'}”" in status.stderr


def test_a_lab_that_does_not_come_up_says_why_and_leaves_nothing(directory, monkeypatch):
    monkeypatch.setattr("lab.site.net_text", lambda fabric: "Switch 2 nonsense\n")
    with pytest.raises(LabError, match=r"simulator|supervisor|in vain"):
        Site.up(directory, servers=2, hcas=1, timeout_s=20)
    assert not directory.exists()


def test_the_command_line_answers_in_sentences(directory):
    for words, sentence in (
        (("status",), "There is no lab in"),
        (("break", "kill-sm", "sm-a"), "There is no lab in"),
        (("up", "--servers", "0"), "A lab has 1 to"),
    ):
        status, _, complaint = done(*words, directory=directory)
        assert status == 1
        assert sentence in complaint
        assert "Traceback" not in complaint
    status, said, _ = done("down", directory=directory)
    assert (status, "nothing to do" in said) == (0, True)


def test_a_demo_with_a_port_that_is_no_guid_is_refused_before_anything_starts(tmp_path):
    words = [sys.executable, "-m", "lab", "demo", "--once", "--spoil-port", "17"]
    here = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(ROOT)}}
    refused = subprocess.run(words, capture_output=True, text=True, check=False, **here)
    assert refused.returncode == 2
    assert "“17” is not a GUID" in refused.stderr
    assert not list(tmp_path.iterdir())
