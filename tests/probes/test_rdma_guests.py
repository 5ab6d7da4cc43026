"""Real verbs between two real kernels: transfers that are believed, and everything that must not pass for one."""

import threading
import time

import pytest

from probes.terms import Kind, Mode, Outcome, PortChoice, Profile, Verb
from tests.probes import guest_faults as faults
from tests.probes.ends import ROOT

pytestmark = pytest.mark.rdma

MIB = 1 << 20
WRITE = Profile("link", Verb.WRITE, 256 * 1024, 4, Mode.CONTIGUOUS, 2 * MIB)
READ = Profile("kv-pull", Verb.READ, 16384, 32, Mode.SCATTER, MIB)
SMALL = Profile("small", Verb.WRITE, 4096, 16, Mode.SCATTER, 65536)
LATENCY = Profile("lat", Verb.WRITE, 64, 16, Mode.LATENCY, 64 * 16 * 12)
LONG = Profile("long", Verb.WRITE, MIB, 4, Mode.CONTIGUOUS, 2000 * MIB)


@pytest.fixture(autouse=True)
def _nothing_is_left(guests):
    yield
    for guest in guests.guests:
        faults.wait_until_nothing_runs(guest)


def refused(result, outcome):
    assert (result.outcome, result.figures) == (outcome, {}), result.reason
    assert result.advice
    return result


@pytest.mark.parametrize("profile", [WRITE, READ, LATENCY], ids=["write", "read", "latency"])
def test_a_real_transfer_is_believed_with_its_evidence(probe, guests, profile):
    result = probe(profile)
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    assert result.kind is Kind.RDMA
    evidence, figures = result.evidence, result.figures
    for end, guest in zip(("sender", "target"), guests.guests, strict=True):
        assert evidence[end]["node_guid"] == guest.node_guid
        assert evidence[end]["backend"] == "pyverbs"
        assert evidence[end]["pkey_entry"] == 0xFFFF
        assert evidence[end]["uverbs"].startswith("/dev/infiniband/uverbs")
        assert evidence[end]["completions"] == "CQEX"
    assert evidence["checksum"]["sent"] == evidence["checksum"]["held"]
    assert evidence["checksum"]["held_by"] == ("sender" if profile is READ else "target")
    assert evidence["mtu"] == 4096
    source, sink = ("target", "sender") if profile is READ else ("sender", "target")
    for end, name in ((source, "sent_pkts"), (sink, "rcvd_pkts")):
        moved = evidence[end]["counters_after"][name] - evidence[end]["counters_before"][name]
        assert moved * 4096 >= evidence["carried"]
    assert "software" in evidence["label"]
    assert "pct_line" not in figures
    assert figures["bytes"] == profile.total_bytes
    assert sum(count for _, count in figures["histogram"]) == figures["samples"]
    assert 0 < figures["min_ns"] <= figures["p50_ns"] <= figures["p99_ns"] <= figures["max_ns"]


def test_several_queue_pairs_share_the_pieces(probe):
    result = probe(Profile("kv-64k", Verb.WRITE, 65536, 16, Mode.SCATTER, 2 * MIB, queue_pairs=4))
    assert result.outcome is Outcome.OK
    assert len(result.evidence["sender"]["qpns"]) == 4


def test_the_smaller_mtu_of_the_two_is_used(probe, guests):
    with faults.card(guests.guests[1], "mtu 1500"):
        result = probe(SMALL)
    assert (result.outcome, result.evidence["mtu"], result.evidence["mtu_active"]) == (Outcome.OK, 1024, [5, 3])


def test_another_version_of_the_bindings_and_plain_completions_will_do(probe, guests):
    # As in rdma-core 59: the enums have another name; as on some devices: no extended completion queues.
    text = """import sys
import pyverbs.cq, pyverbs.enums, pyverbs.pyverbs_error
sys.modules["pyverbs.libibverbs_enums"] = pyverbs.enums
sys.modules["pyverbs.enums"] = None
def refuse(*arguments): raise pyverbs.pyverbs_error.PyverbsRDMAError("Failed to create CQ", 95)
pyverbs.cq.CQEX = refuse"""
    first = guests.guests[0]
    faults.put(first, "/opt/older/sitecustomize.py", text)
    with faults.python(first, 'PYTHONPATH=/opt/older exec /usr/bin/python3 "$@"'):
        result = probe(SMALL)
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    assert [result.evidence[end]["completions"] for end in ("sender", "target")] == ["CQ", "CQEX"]


def test_a_wrong_clock_of_a_host_changes_nothing(probe, guests):
    with faults.clock(guests.guests[1], "2001-02-03 04:05:06"), faults.clock(guests.guests[0], "2038-01-01"):
        result = probe(SMALL)
    assert (result.outcome, result.reason) == (Outcome.OK, "")


def test_memory_that_was_altered_at_the_target_is_corrupt(probe, guests):
    def alter(session, step):
        if step == "verify":
            faults.alter_memory(guests.guests[1], session.setups["target"]["memory"] + 5000)

    refused(probe(SMALL, before=alter), Outcome.CORRUPT)


def test_a_preloaded_stand_in_is_no_rdma(probe, guests):
    text = (ROOT / "tests/probes/stand_in/pyverbs.py").read_text(encoding="utf-8")
    first, second = guests.guests
    for guest in guests.guests:
        faults.put(guest, "/opt/stand-in/pyverbs.py", text)
    body = 'PYTHONPATH=/opt/stand-in exec /usr/bin/python3 "$@"'
    with faults.python(first, body), faults.python(second, body):
        refused(probe(SMALL), Outcome.STUB_DEVICE)
    # A careful one, that opens the kernel's device file: nothing arrives in the target's memory.
    body = f"STAND_IN_OPENS=1 {body}"
    with faults.python(first, body), faults.python(second, body):
        result = refused(probe(SMALL), Outcome.CORRUPT)
    assert "never written" in result.reason


def test_a_device_that_was_deleted_is_named(probe, guests):
    with faults.without_device(guests.guests[1]):
        result = refused(probe(SMALL), Outcome.NO_DEVICE)
    assert result.at == "target"


def test_another_device_than_the_registered_one_is_refused(probe):
    refused(probe(SMALL, target=PortChoice(node_guid="0x0002c903000a0001")), Outcome.WRONG_DEVICE)


def test_a_port_that_goes_down_during_the_transfer_is_named_at_once(probe, guests):
    # Soft-RoCE cannot be deleted under a process that uses it; a pulled cable can be played.
    second = guests.guests[1]
    with (
        faults.mended_card(second),
        during("go", second, lambda: second.admin(f"ip link set {faults.CARD} down")) as when,
    ):
        result = refused(probe(LONG, before=when), Outcome.PORT_DOWN)
        assert time.monotonic() - when.done_at < 10
    assert (result.at, "during the run" in result.reason) == ("target", True)


@pytest.mark.parametrize("act", [faults.kill_program, faults.cut_ssh], ids=["killed", "ssh-cut"])
@pytest.mark.parametrize("end", [0, 1], ids=["sender", "target"])
def test_an_end_that_is_lost_during_the_transfer_ends_the_run_within_10_s(probe, guests, act, end):
    with during("go", guests.guests[1], lambda: act(guests.guests[end])) as when:
        result = probe(LONG, before=when)
    assert time.monotonic() - when.done_at < 10
    refused(result, Outcome.PEER_LOST)
    assert result.at == ("sender", "target")[end]


def test_a_host_without_bindings_says_what_to_install(probe, guests):
    with faults.python(guests.guests[1], 'exec /usr/bin/python3 -S "$@"'):
        result = refused(probe(SMALL), Outcome.NO_RDMA)
    assert "No module named 'pyverbs'" in result.reason
    assert "python3-pyverbs" in result.advice


def test_a_port_without_a_link_is_down(probe, guests):
    with faults.card(guests.guests[1], "down"):
        result = refused(probe(SMALL), Outcome.PORT_DOWN)
    assert "DOWN" in result.reason


def test_an_account_that_may_not_pin_memory(probe, guests):
    with faults.memory_limit(guests.guests[0], 64):
        result = refused(probe(WRITE), Outcome.MEMLOCK)
    assert (result.at, result.evidence["failure"]["memlock"]) == ("sender", 65536)


def test_a_port_that_another_probe_holds_is_busy(probe, guests):
    first = guests.guests[0]
    where = f"/sys/class/infiniband/{first.device}/ports/1"
    first.admin(f"flock {where} sleep 100 >/dev/null 2>&1 </dev/null & echo $! >/run/holder\n")
    try:
        refused(probe(SMALL), Outcome.BUSY)
    finally:
        first.admin("pkill -P $(cat /run/holder); true")


def test_a_port_through_which_others_send_much_is_busy_and_a_quiet_one_is_not(probe, guests):
    first, second = guests.guests
    with faults.speed_of_card(second, 100):  # Mb/s, as a negotiated card says; the emulated one has none of its own
        quiet = probe(SMALL, busy_above_pct=20)
        assert quiet.outcome is Outcome.OK, quiet.reason
        assert quiet.evidence["target"]["load_pct"] < 20
        assert "not known" in quiet.evidence["sender"]["load"]
        with faults.traffic(first, second):
            loaded = refused(probe(SMALL, busy_above_pct=20), Outcome.BUSY)
    assert loaded.at == "target"
    assert loaded.evidence["failure"]["load_pct"] > 20
    assert f"through {second.device}/1" in loaded.reason


def test_a_host_that_talks_too_much_is_cut_off(probe, guests):
    with faults.python(guests.guests[1], 'while :; do echo \'{"did": "hello", "protocol": 1}\'; done'):
        refused(probe(SMALL), Outcome.PROTOCOL)
    with faults.python(guests.guests[1], "exec yes nothing-ends-this-line | tr -d '\\n'"):
        refused(probe(SMALL), Outcome.OVERFLOW)


def test_the_agent_finds_the_guests_device(guests):
    first = guests.guests[0]
    report = first.run_agent("--dry-run", "--machine-id", "0" * 32)
    assert first.name in report
    assert first.node_guid in report


def test_a_tcp_baseline_over_a_named_interface_is_another_kind(probe):
    choice = PortChoice(interface=faults.CARD)
    result = probe(WRITE, kind=Kind.TCP, sender=choice, target=choice)
    assert (result.outcome, result.kind) == (Outcome.TCP_OK, Kind.TCP)
    assert result.evidence["target"]["address"] == "192.168.77.2"
    assert "uverbs" not in result.evidence["sender"]


class during:
    """Do something while a step's packets flow into a guest; `done_at` is when it was done."""

    def __init__(self, step, guest, act):
        self.step, self.guest, self.act = step, guest, act
        self.done_at = 0.0
        self.failure = None
        self._thread = threading.Thread(target=self._do)

    def __enter__(self):
        return self

    def __call__(self, session, step):
        if step == self.step:
            self._thread.start()

    def _do(self):
        try:
            faults.wait_until_packets_flow(self.guest)
            self.act()
        except Exception as failure:
            self.failure = failure
        self.done_at = time.monotonic()

    def __exit__(self, kind, error, trace):
        if self._thread.ident is not None:
            self._thread.join()
        if self.failure is not None and error is None:
            raise self.failure
