"""What the watch's verbs take and what their answers become, without a fabric."""

import subprocess

import pytest

from remote.errors import VerbFailed
from remote.manager_host import ManagerHost
from remote.shell import Reply
from subnet.guid import GUID
from tests.remote.sites import Host

ONE, LEAF = "0x0002c90300000001", "0x0002c90300aa0001"


class Answering:
    """A shell that answers `identify` with the pinned digests, and everything else with `answer`."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def call(self, verb, arguments=(), stdin=b"", *, timeout_s):
        text = "wrapper_digest=w\nreader_digest=r\nopensm_version=3\npartition_file=/p\nlist_file=/l\n"
        text += "log_file=/g\ngeneration=0\n"
        return Reply(0, (text if verb == "identify" else self.answer).encode(), b"")

    def close(self):
        pass


def host(answer: str) -> ManagerHost:
    return ManagerHost("m1", Answering(answer), "w", "r")


def test_a_census_is_values():
    answer = f"topology=list\nlist_mtime_ns=7\nports=3\nfollows=2 3 {ONE}\nsm={ONE} 2 MASTER 5 99 {LEAF} 4\n"
    census = host(answer + f"sm={LEAF} 0 - 0 0 - 0\n").census(smps_per_s=0, timeout_s=1)
    master, silent = census.sms
    assert (master.guid, master.state, master.priority, master.leaf, master.leaf_port) == (ONE, "MASTER", 5, LEAF, 4)
    assert (silent.state, silent.leaf) == ("", "")
    assert census.follows == {2: (3, ONE)}


@pytest.mark.parametrize("line", ["sm=x", f"sm={ONE} two MASTER 5 9 - 0", f"follows=1 {ONE}", "follows=a 1 b"])
def test_nonsense_is_a_sentence_that_names_the_host(line):
    with pytest.raises(VerbFailed, match="Manager host m1: census answered nonsense"):
        host(f"topology=list\nlist_mtime_ns=7\nports=3\n{line}\n").census(smps_per_s=0, timeout_s=1)


def test_a_scan_without_an_end_is_no_reading():
    with pytest.raises(VerbFailed, match="scan answered no reading"):
        host('{"kind":"end"}\n').scan(after="0x0", most=1, smps_per_s=0, timeout_s=1)


def test_of_an_option_that_comes_twice_the_last_counts():
    options = host("config=/c\nstale=no\noption=qos TRUE\noption=qos FALSE\nkey=m_key set\n").options()
    assert (options.in_file, options.keys, options.is_stale) == ({"qos": "FALSE"}, {"m_key": True}, False)


def test_a_second_reader_says_what_it_read_and_what_it_did_not():
    two = GUID("0x0002c90300000002")
    said = host(f'port={ONE} {{"0":"0x7fff","3":"0x8010"}}\nport={two} - timed out\n')
    assert said.read_ports({ONE: 5, two: 6}, timeout_s=1) == {ONE: {0: 0x7FFF, 3: 0x8010}, two: None}
    for nonsense in (f"port={ONE} nothing", f'port={ONE} {{"a":"0x1"}}', "port=x {}"):
        with pytest.raises(VerbFailed, match="read_ports answered nonsense"):
            host(f"{nonsense}\n").read_ports({ONE: 5}, timeout_s=1)
    with pytest.raises(ValueError, match="1 to 64 ports"):
        said.read_ports({}, timeout_s=1)


@pytest.mark.parametrize(
    "words",
    ["census", "census 1", "census x 5", f"scan {ONE} 5 0", f"scan {ONE}0 5 0 5", f"scan {ONE[:-1]}g 5 0 5",
     f"scan {ONE} -5 0 5", f"scan {ONE.upper()} 5 0 5", "options x", "read_ports 5",
     f"read_ports 5 {ONE}:5", f"read_ports x {ONE}:{ONE}"],
)  # fmt: skip
def test_the_wrapper_takes_nothing_else(prepared: Host, words: str) -> None:
    done = subprocess.run(
        [prepared.wrapper, prepared.conf], env={"SSH_ORIGINAL_COMMAND": words}, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (64, b""), done.stderr
