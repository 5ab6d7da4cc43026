"""The wrapper by itself: what it lets through, and that each verb ends without its caller."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from remote.errors import CallTimedOut
from remote.local import LocalShell
from tests.remote.sites import Host, run_wrapper, sha256, wait_until

GOOD = "a" * 64


@pytest.mark.parametrize(
    "command",
    [
        "", " ", "id", "sh", "read; id", "read && id", "read | id", "read $(id)", "read `id`", "read $HOME", "read >x",
        "read *", "read ?", "read [a]", "read {a,b}", "read ~", "read 'a'", 'read "a"', "read \\a", "read\nid",
        "read\tx", "read #", "read !", "read %", "read a=b", "read /etc/passwd", "READ", "read x", "identify x",
        "end 0", "describe 1", "find_opensm", "reader", "reader tables", "write_durably a b", "is_number 1", "eval",
        "exec id",
        "stage", "stage a 1", f"stage {GOOD}", f"stage {GOOD} -1", f"stage {GOOD} x", f"stage {GOOD.upper()} 1",
        f"stage {GOOD}a 1", f"stage ..{GOOD[2:]} 1", f"place {GOOD} 1.5", f"place {GOOD} 99999999999999999999",
        f"place {GOOD} 9999999999999999999", "read_tables x 0 1", "read_tables list 0", "barrier 1 2 3 4", "é",
        "barrier 1 2 3 --4 5", "log_since 1", "log_since -n 1", "--help", "-c id",
    ],
)  # fmt: skip
def test_refuses_what_is_no_verb(prepared: Host, command: str) -> None:
    prepared.partitions.write_bytes(b"secret")
    done = run_wrapper(prepared, command)
    assert done.returncode == 64
    assert done.stdout == b""
    assert done.stderr.startswith(b"fabricui-host: ")
    assert sorted(path.name for path in prepared.partitions.parent.iterdir()) == ["partitions.conf"]


def test_a_newline_in_the_command_cannot_add_a_second_one(prepared: Host, tmp_path: Path) -> None:
    run_wrapper(prepared, f"read\ntouch {tmp_path}/made")
    assert not (tmp_path / "made").exists()


def test_without_a_folder_it_says_where_to_name_it(prepared: Host) -> None:
    done = subprocess.run([prepared.wrapper], env={"SSH_ORIGINAL_COMMAND": "read"}, capture_output=True, check=False)
    assert done.returncode == 64
    assert b"authorized_keys" in done.stderr


def test_an_incomplete_host_env_is_named(prepared: Host) -> None:
    prepared.set("LOG=")
    done = run_wrapper(prepared, "read")
    assert done.returncode == 78
    assert b"does not set LOG" in done.stderr


def test_a_verb_runs_under_a_timer_and_cleans_up_when_it_rings(prepared: Host) -> None:
    environment = {"PATH": "/usr/bin:/bin", "SSH_ORIGINAL_COMMAND": f"stage {sha256(b'x')} 1"}
    command = [prepared.wrapper, prepared.conf]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_until(prepared.leftovers)
        # The process that sshd started has become the timer; TERM is what it does to the verb when it rings.
        assert Path(f"/proc/{process.pid}/cmdline").read_bytes().startswith(b"timeout\0-k\0")
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(10) in (124, 143, -15)
        wait_until(lambda: prepared.leftovers() == [])


@pytest.mark.parametrize("forged", ["1", "yes", "$$"])
def test_no_environment_from_outside_takes_the_timer_away(prepared: Host, forged: str) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "SSH_ORIGINAL_COMMAND": f"stage {sha256(b'x')} 1",
        "FABRICUI_BOUNDED": forged,
    }
    command = [prepared.wrapper, prepared.conf]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_until(prepared.leftovers)
        assert Path(f"/proc/{process.pid}/cmdline").read_bytes().startswith(b"timeout\0-k\0")


def test_a_local_call_that_takes_too_long_ends_what_it_started(prepared: Host, tmp_path: Path) -> None:
    prepared.replace_reader(f"echo $$ >{tmp_path}/pid; exec sleep 60")
    shell = LocalShell(prepared.wrapper, prepared.conf)
    with pytest.raises(CallTimedOut):
        shell.call("sm_state", timeout_s=1)
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


def test_the_reader_gets_host_env_and_a_folder_of_its_own(prepared: Host) -> None:
    prepared.set("MKEY=0x17")
    prepared.replace_reader("echo mkey=$MKEY; echo cwd=$PWD; echo arguments=$*")
    answer = run_wrapper(prepared, "read_tables discovery 2000 30").stdout.decode()
    assert "mkey=0x17" in answer
    assert f"cwd={prepared.conf}/run" in answer
    assert "--topology discovery --smps-per-s 2000 --deadline 30" in answer
    assert f"--list {prepared.list_file}" in answer


def test_placing_twice_at_the_same_time_leaves_one_whole_file(prepared: Host) -> None:
    """Two controllers with neighbouring generations: whoever comes, the newer one's bytes stay."""
    for text in (b"one" * 1000, b"two" * 1000):
        assert run_wrapper(prepared, f"stage {sha256(text)} {len(text)}", text).returncode == 0
    older, newer = (
        subprocess.Popen(
            [prepared.wrapper, prepared.conf],
            env={"PATH": "/usr/bin:/bin", "SSH_ORIGINAL_COMMAND": f"place {sha256(text)} {generation}"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for text, generation in ((b"one" * 1000, 1), (b"two" * 1000, 2))
    )
    statuses = older.wait(20), newer.wait(20)
    # The one that came second found its staged file gone (66) only if the other had placed; 80: it was the older one.
    assert statuses in {(0, 0), (80, 0), (0, 66)}
    expected = b"one" * 1000 if statuses == (0, 66) else b"two" * 1000
    assert prepared.partitions.read_bytes() == expected
