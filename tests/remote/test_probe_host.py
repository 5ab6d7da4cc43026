"""ProbeHost over a real sshd: pinned digests, conversations, and hosts that say too much or break off."""

import subprocess
import time
from pathlib import Path

import pytest

from remote.errors import NotUnderstood, StreamEnded, StreamOverflow, VerbFailed, WrapperMismatch
from remote.probe_host import ALL_BYTES, LINE_BYTES, Lines, ProbeHost
from tests.remote.sites import SOURCES, sha256, wait_until

PROGRAM = SOURCES.parent.parent / "probes" / "on_host.py"


@pytest.fixture
def folder(tmp_path, key_file, running_sshd):
    """A server prepared by `install-probe`, whose only authorised key may run the wrapper."""
    command = [SOURCES / "install-probe", "--to", tmp_path / "to", "--program", PROGRAM]
    command += ["--authorized-key", key_file.with_suffix(".pub")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    line = next(row for row in done.stdout.splitlines() if row.startswith("restrict,command="))
    running_sshd.let_in(line)
    return tmp_path / "to"


def digests(folder):
    return [sha256((folder / name).read_bytes()) for name in ("fabricui-probe", "on_host.py")]


@pytest.fixture
def host(folder, running_sshd, key_file):
    made = ProbeHost("srv-1", running_sshd.shell(key_file), *digests(folder))
    yield made
    made.close()


def replace_program(folder, text):
    """Put another program in the place of ours; return a ProbeHost's digest for it."""
    (folder / "on_host.py").write_text(text)
    return digests(folder)[1]


@pytest.fixture
def talking(folder, running_sshd, key_file):
    """Open a conversation with another program, which is pinned as well."""
    made = []

    def talking(text):
        replace_program(folder, text)
        made.append(ProbeHost("srv-1", running_sshd.shell(key_file), *digests(folder)))
        return made[-1].open(seconds=30, timeout_s=30)

    yield talking
    for one in made:
        one.close()


def answer(stream, within_s=20.0):
    found = stream.poll(within_s)
    assert found is not None
    return found


def test_a_conversation(host):
    stream = host.open(seconds=30, timeout_s=30)
    stream.send({"do": "hello"})
    assert answer(stream)["protocol"] == 1
    stream.send({"do": "bye"})
    assert answer(stream) == {"did": "bye"}
    with pytest.raises(StreamEnded) as ended:
        stream.poll(20)
    assert ended.value.exit_status == 0


def test_identify_names_the_python(host):
    assert host.identify()["python"] == "/usr/bin/python3"


def test_another_wrapper_than_the_pinned_one_is_not_used(folder, running_sshd, key_file):
    host = ProbeHost("srv-1", running_sshd.shell(key_file), "0" * 64, digests(folder)[1])
    with pytest.raises(WrapperMismatch):
        host.open(seconds=5, timeout_s=30)
    host.close()


def test_another_program_than_the_pinned_one_is_not_started(host, folder):
    replace_program(folder, "print('x')\n")
    with pytest.raises(StreamEnded, match="not the pinned one") as ended:
        host.open(seconds=5, timeout_s=30).poll(20)
    assert ended.value.exit_status == 65


def test_a_wrapper_that_is_gone_says_so(host, folder):
    (folder / "probe.env").unlink()
    with pytest.raises(VerbFailed) as failed:
        host.open(seconds=5, timeout_s=30)
    assert failed.value.exit_status == 78


def test_closing_the_conversation_ends_the_program(host):
    stream = host.open(seconds=300, timeout_s=30)
    stream.send({"do": "hello"})
    pid = answer(stream)["pid"]
    stream.close()
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), within_s=20)


def test_a_kept_connection_that_died_is_replaced(host, running_sshd):
    host.open(seconds=30, timeout_s=30).close()
    running_sshd.drop_sessions()
    stream = host.open(seconds=30, timeout_s=30)
    stream.send({"do": "hello"})
    assert answer(stream)["did"] == "hello"
    stream.close()


def test_nothing_within_the_time_is_none(talking):
    stream = talking("import time\ntime.sleep(20)\n")
    begun = time.monotonic()
    assert stream.poll(0.3) is None
    assert 0.25 < time.monotonic() - begun < 10
    stream.close()


def test_a_program_that_is_killed_ends_the_conversation(talking):
    stream = talking("import os\nos.kill(os.getpid(), 9)\n")
    with pytest.raises(StreamEnded):
        stream.poll(20)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("while True: print('{}')", StreamOverflow),
        ("while True: print('x' * 1000, end='')", StreamOverflow),
        ("import sys\nwhile True: sys.stderr.write('x' * 1000)", StreamOverflow),
        ("print('hello')", NotUnderstood),
        ("print('[1]')", NotUnderstood),
        ("import sys\nsys.stdout.buffer.write(b'\\xff\\xfe\\n')", NotUnderstood),
    ],
)
def test_too_much_or_nonsense_ends_it(talking, text, error):
    stream = talking(f"{text}\n")
    deadline = time.monotonic() + 30

    def read_on():
        while time.monotonic() < deadline:
            stream.poll(1)

    with pytest.raises(error):
        read_on()
    stream.close()


def test_lines_come_whole_however_they_arrive():
    lines = Lines()
    for byte in b'{"did": "a"}\n{"did": "b"}\n{"di':
        lines.feed(bytes([byte]))
    assert [lines.next(), lines.next(), lines.next()] == [{"did": "a"}, {"did": "b"}, None]


def test_lines_are_bounded():
    lines = Lines()
    lines.feed(b"x" * (LINE_BYTES + 1))
    with pytest.raises(StreamOverflow):
        lines.next()
    with pytest.raises(StreamOverflow):
        lines.feed(b"x" * ALL_BYTES)
