"""The oracle: it asks the real OpenSM, believes no half answer, and leaves nothing behind however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.oracle import Oracle
from lab.walk import Walker
from subnet.guid import GUID
from tests.lab.cases_of_a import FOLDER
from tests.lab.traces import until

pytestmark = pytest.mark.contract
NET = (FOLDER / "oracle.net").read_text(encoding="utf-8")
SM_PORT, OTHER = GUID("0x0210fa0300a10001"), GUID("0x0210fa0300a20001")
GOOD = b"A=0x10: 0x0210fa0300a20001=full;\n"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def oracle():
    with Oracle(NET) as oracle:
        yield oracle


def test_a_good_file_gives_every_end_ports_table(oracle):
    answer = oracle.run(GOOD, sm_port=SM_PORT)
    assert (answer.rejected, answer.rejection, answer.died) == (False, None, 0)
    assert len(answer.tables) == 8
    assert answer.tables[SM_PORT] == {0: 0xFFFF}
    assert answer.tables[OTHER] == {0: 0x7FFF, 1: 0x8010}


def test_each_answer_is_of_a_fresh_fabric(oracle):
    """A table of the one before would keep its indexes in the next."""
    oracle.run(b"A=0x10: ALL; B=0x11: ALL;", sm_port=SM_PORT)
    assert oracle.run(b"B=0x11: ALL;", sm_port=SM_PORT).tables[OTHER] == {0: 0x7FFF, 1: 0x11}


def test_options_and_sm_port_reach_opensm(oracle):
    both = b"A=0x10: 0x0210fa0300a20001=both;"
    assert oracle.run(both, sm_port=SM_PORT).tables[OTHER] == {0: 0x7FFF, 1: 0x8010}
    with_both = oracle.run(both, sm_port=OTHER, options=["-W"])
    assert sorted(with_both.tables[OTHER].values()) == [0x10, 0x8010, 0xFFFF]
    assert 0xFFFF not in with_both.tables[SM_PORT].values()


@pytest.mark.parametrize(
    ("data", "rejection"),
    [
        (b"A=0x10: ALL;\nB=0x11: nobody;\n", (2, "bad PortGUID")),
        (b"A=x: ALL;\n", (1, "bad partition definition")),
        (b"A=0x10\n: ALL;\n", (1, "no partition definition found")),
        (b"# nothing\n", (None, "no definition found")),
        (b"", (None, "no definition found")),
    ],
)
def test_a_rejected_file_shows_line_message_and_the_open_fabric(oracle, data, rejection):
    answer = oracle.run(data, sm_port=SM_PORT)
    assert answer.rejected
    assert answer.rejection == rejection
    assert all(table == {0: 0xFFFF} for table in answer.tables.values())


def test_words_of_the_file_in_the_log_are_no_rejection(oracle):
    """OpenSM logs an mgid it dislikes as it stands in the file."""
    shout = b"A=0x10:\nmgid=PARSE ERROR: line 9: Partition configuration in error, retrying with default config\n17;\n"
    answer = oracle.run(shout, sm_port=SM_PORT)
    assert any("Partition configuration in error" in line for line in answer.log_lines)
    assert not answer.rejected


def test_a_file_that_kills_opensm_is_told_so(oracle):
    answer = oracle.run(b"A=0x10: mgid;\n", sm_port=SM_PORT)
    assert answer.died == signal.SIGSEGV
    assert not answer.tables
    assert oracle.run(GOOD, sm_port=SM_PORT).tables[OTHER][1] == 0x8010, "the next question suffers"


def test_a_file_that_kills_opensm_on_its_way_out_has_its_tables(oracle):
    """One group of two P_Keys, stored under another scope than spelled: OpenSM frees it twice when it ends."""
    shared = b"A=0x10:mgid=ff15::2,\n0x0210fa0300a20001;\nB=0x11:mgid=ff15::2,\n0x0210fa0300a20001;\n"
    answer = oracle.run(shared, sm_port=SM_PORT)
    assert (answer.died, answer.died_leaving > 0) == (0, True)
    assert answer.tables[OTHER] == {0: 0x7FFF, 1: 0x10, 2: 0x11}
    assert oracle.run(GOOD, sm_port=SM_PORT).died_leaving == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"options": ["--no-such-option"]}, "proves nothing"),
        ({"deadline_s": 0.001}, "in time"),
        ({"sm_port": GUID("0x0210fa0300e10000")}, "No HCA of the fabric"),
    ],
)
def test_no_half_answer_is_given(oracle, arguments, sentence):
    with pytest.raises(LabError, match=sentence):
        oracle.run(GOOD, **{"sm_port": SM_PORT, **arguments})
    assert oracle.run(GOOD, sm_port=SM_PORT).tables[OTHER][1] == 0x8010, "the next question suffers"


def test_a_fabric_that_the_simulator_refuses_is_an_error():
    twice = NET.replace("caguid=0x210fa0300a10000", "caguid=0x210fa0300a20000")
    with Oracle(twice) as oracle, pytest.raises(LabError):
        oracle.run(GOOD, sm_port=OTHER)


def marked(mark):
    """Live processes whose environment or command line holds `mark`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                    continue
                if mark in (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return [pid for pid in found if pid != os.getpid()]


# Asks again and again, so that a simulator and an OpenSM run whenever it is killed.
ASKER = f"""
import sys
from lab.oracle import Oracle
from subnet.guid import GUID
with Oracle(open({str(FOLDER / "oracle.net")!r}).read()) as oracle:
    print(oracle._worker.pid, oracle._folder, flush=True)
    while True:
        oracle.run({GOOD!r}, sm_port=GUID({str(SM_PORT)!r}))
        print("asked", flush=True)
"""


@pytest.fixture
def asker():
    """A process that asks without end, its worker's PID, and its folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", ASKER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    pid, folder = process.stdout.readline().split()
    for _ in range(2):
        assert process.stdout.readline() == "asked\n"
    yield process, int(pid), Path(folder)
    process.kill()
    process.wait()
    process.stdout.close()


def in_mid_run(folder):
    """A simulator runs, so that killing now would leave it."""
    return (folder / "run").exists() and len(marked(str(folder).encode())) >= 2


def assert_nothing_left(folder, pid):
    until(lambda: not marked(str(folder).encode()) and not Path(f"/proc/{pid}").exists())
    until(lambda: not folder.exists())
    assert folder.name not in Path("/proc/net/unix").read_text()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_the_asker_is_killed(asker, number):
    process, pid, folder = asker
    until(lambda: in_mid_run(folder))
    process.send_signal(number)
    process.wait(20)
    assert_nothing_left(folder, pid)


def test_nothing_is_left_when_the_worker_is_killed(asker):
    process, pid, folder = asker
    until(lambda: in_mid_run(folder))
    os.kill(pid, signal.SIGKILL)
    assert process.wait(20), "the asker learns of it"
    assert_nothing_left(folder, pid)


def test_nothing_is_left_after_an_exception():
    seen = []

    def fails():
        with Oracle(NET) as oracle:
            oracle.run(GOOD, sm_port=SM_PORT)
            seen.extend((oracle, oracle._folder, oracle._worker.pid))
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    oracle, folder, pid = seen
    assert_nothing_left(folder, pid)
    with pytest.raises(LabError, match="closed"):
        oracle.run(GOOD, sm_port=SM_PORT)


def test_the_walk_sees_what_the_labs_own_reader_sees(site):
    """In a running lab: the same ports, the same tables, by LID and libibmad and by directed routes."""
    read = site.read_ports()
    seat = site.fabric.managers[0].hcas[0].node_id
    with Walker(socket_name=site.state.socket_name, node_id=seat) as walker:
        ports = walker.end_ports()
        tables = walker.tables(ports)
    for guid, port in read.items():
        assert {str(index): entry for index, entry in tables[guid.number].items()} == port["pkeys"], guid
        assert ports[guid.number].capacity == port["capacity"]
    switches = {switch.guid.number for switch in site.fabric.switches}
    assert set(ports) == {guid.number for guid in read} | switches
