"""What an SM asks another is asked again and timed out, and everything else passes untouched."""

import contextlib
import os
import socket
import struct
import subprocess
import sys
import time

import pytest

from lab import breaking
from lab.layout import MOST_WATCHED_PORTS, State
from lab.simulator import CONNECT, DISCONNECT, abstract_address, datagram_socket
from lab.transactions import READY, TIMEOUT_S, TRIES, is_request, key_of, timed_out
from tests.lab.traces import until

GET, SET, ANSWER, TRAP, TRAP_REPRESS = 0x01, 0x02, 0x81, 0x05, 0x07
NOTICE, PORT_INFO, SM_INFO = 0x02, 0x15, 0x20
SENT = 1 + TRIES


def packet(
    method: int, attribute: int, *, number: int = 7, slot: int = 0, smp_class: int = 0x01, status: int = 0
) -> bytes:
    """One datagram of ibsim's (struct sim_request); `slot` is what ibsim writes into the transaction ID."""
    mad = struct.pack(">BBBBHHQHHI", 1, smp_class, 1, method, 0, 0, slot << 48 | number, attribute, 0, 0).ljust(
        256, b"\x5a"
    )
    return struct.pack("=IIII", 1, 2, 0, 0) + struct.pack("!I4x", status) + struct.pack("!Q", 256) + mad


class Simulator:
    """ibsim's side of the sockets: who enters gets the next slot; what arrives there is for the test to answer."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.control = datagram_socket(f"{name}:ctl")
        self.slots: list[socket.socket] = []

    def answer(self, expected: int) -> None:
        """Answer one request of the control protocol."""
        asked, sender = self.control.recvfrom(512)
        magic, slot, kind, length, data = struct.unpack("=IIII64s", asked)
        assert kind == expected
        if kind == CONNECT:
            place = datagram_socket(f"{self._name}:out{len(self.slots)}")
            place.connect(abstract_address(f"{self._name}:in{struct.unpack_from('=I', data)[0]}"))
            data = struct.pack("=I", len(self.slots)) + data[4:]
            self.slots.append(place)
        self.control.sendto(struct.pack("=IIII64s", magic, slot, kind, length, data), sender)


class SM:
    """An SM's side, as libumad2sim opens it."""

    def __init__(self, simulator: Simulator, name: str, pid: int) -> None:
        self.control = datagram_socket(f"{name}:ctl{pid}")
        self.control.connect(abstract_address(f"{name}:ctl"))
        self.data = datagram_socket(f"{name}:in{pid}")
        self.ask(simulator, CONNECT, struct.pack("=I", pid))
        self.slot = len(simulator.slots) - 1
        self.data.connect(abstract_address(f"{name}:out{self.slot}"))

    def ask(self, simulator: Simulator, kind: int, data: bytes) -> None:
        self.control.send(struct.pack("=IIII64s", 0xDEADBEEF, 0, kind, len(data), data))
        simulator.answer(kind)
        assert struct.unpack("=IIII64s", self.control.recv(512))[2] == kind


@pytest.fixture
def names():
    own = f"fabricui-test-{os.getpid()}-{time.monotonic_ns()}"
    return own, f"{own}:sm"


@pytest.fixture
def simulator(names):
    watch = subprocess.Popen([sys.executable, "-m", "lab.transactions", *names], stdout=subprocess.PIPE, text=True)
    made = Simulator(names[0])
    try:
        assert watch.stdout.readline().strip() == READY
        yield made
        assert watch.poll() is None
    finally:
        watch.kill()
        watch.wait()
        watch.stdout.close()
        for each in (made.control, *made.slots):
            each.close()


@pytest.fixture
def other():
    """Another process that can be a second SM."""
    process = subprocess.Popen(["/bin/sleep", "600"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def sm(simulator, names):
    return SM(simulator, names[1], os.getpid())


def assert_never_times_out(sm):
    """The transaction is over; on a busy machine it may have been asked again before, so copies of it prove nothing."""
    sm.data.settimeout((SENT + 2) * TIMEOUT_S)
    with pytest.raises(TimeoutError):
        sm.data.recv(512)


@pytest.mark.parametrize("smp_class", [0x01, 0x81])
@pytest.mark.parametrize("method", [GET, SET])
def test_what_no_sm_answers_is_asked_again_and_comes_back_timed_out(simulator, sm, method, smp_class):
    asked = packet(method, SM_INFO, smp_class=smp_class)
    sm.data.send(asked)
    assert [simulator.slots[0].recv(512) for _ in range(SENT)] == [asked] * SENT
    assert sm.data.recv(512) == timed_out(asked) == packet(method, SM_INFO, smp_class=smp_class, status=110)
    simulator.slots[0].settimeout(0.5)
    with pytest.raises(TimeoutError):
        simulator.slots[0].recv(512)


def test_an_answer_is_handed_on_once_and_nothing_is_asked_again(simulator, sm):
    sm.data.send(packet(GET, SM_INFO))
    assert simulator.slots[0].recv(512) == packet(GET, SM_INFO)
    answer = packet(ANSWER, SM_INFO, slot=3)
    simulator.slots[0].send(answer)
    simulator.slots[0].send(answer)  # to the request that was sent again meanwhile
    simulator.slots[0].send(packet(ANSWER, PORT_INFO))
    assert sm.data.recv(512) == answer
    assert sm.data.recv(512) == packet(ANSWER, PORT_INFO)
    assert_never_times_out(sm)


def test_what_the_simulator_hands_back_ends_the_transaction(simulator, sm):
    sm.data.send(packet(GET, SM_INFO))
    simulator.slots[0].recv(512)
    simulator.slots[0].send(packet(GET, SM_INFO, status=110))
    assert sm.data.recv(512) == packet(GET, SM_INFO, status=110)
    sm.data.settimeout(1.5)
    with pytest.raises(TimeoutError):
        sm.data.recv(512)


def test_a_node_of_the_simulator_is_asked_once(simulator, sm):
    sm.data.send(packet(GET, PORT_INFO))
    assert simulator.slots[0].recv(512) == packet(GET, PORT_INFO)
    simulator.slots[0].settimeout(0.5)
    with pytest.raises(TimeoutError):
        simulator.slots[0].recv(512)


def test_a_trap_is_repressed_by_the_sm_that_got_it(simulator, sm, names, other):
    master = SM(simulator, names[1], other.pid)
    sm.data.send(packet(TRAP, NOTICE))
    simulator.slots[1].send(simulator.slots[0].recv(512))
    assert master.data.recv(512) == packet(TRAP, NOTICE)
    master.data.send(packet(TRAP_REPRESS, NOTICE, slot=1))
    assert sm.data.recv(512) == packet(TRAP_REPRESS, NOTICE, slot=1)
    assert_never_times_out(sm)
    simulator.slots[1].settimeout(0.1)
    with pytest.raises(TimeoutError):  # the simulator is not told what it would drop
        simulator.slots[1].recv(512)


def test_packets_for_an_sm_that_stands_still_wait_for_it(simulator, sm):
    most = 3000  # more than any queue of a socket takes
    for number in range(most):
        simulator.slots[0].send(packet(ANSWER, PORT_INFO, number=number))
    found = [sm.data.recv(512) for _ in range(most)]
    assert found == [packet(ANSWER, PORT_INFO, number=number) for number in range(most)]


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "leaves"])
def test_an_sm_that_is_gone_is_gone_for_the_simulator(simulator, names, other, is_killed):
    sm = SM(simulator, names[1], other.pid)
    simulator.slots[0].send(packet(ANSWER, PORT_INFO))
    sm.data.recv(512)
    if is_killed:
        other.kill()
        other.wait()
    else:
        sm.ask(simulator, DISCONNECT, b"")

    def is_refused() -> bool:
        with contextlib.suppress(TimeoutError):
            try:
                simulator.slots[0].send(packet(GET, SM_INFO))
            except ConnectionRefusedError:
                return True
        return False

    until(is_refused)


def test_an_sm_that_died_while_it_came_ends_nothing(simulator, names, other):
    other.kill()
    other.wait()
    with datagram_socket(f"{names[1]}:ctl{other.pid}") as control:
        control.connect(abstract_address(f"{names[1]}:ctl"))
        control.send(struct.pack("=IIII64s", 0xDEADBEEF, 0, CONNECT, 4, struct.pack("=I", other.pid)))
    SM(simulator, names[1], os.getpid())  # the next one is served


def test_a_simulator_that_says_nothing_keeps_one_sm_out_and_not_the_next(simulator, names, other):
    with datagram_socket(f"{names[1]}:ctl{other.pid}") as control:
        control.connect(abstract_address(f"{names[1]}:ctl"))
        control.send(struct.pack("=IIII64s", 0xDEADBEEF, 0, CONNECT, 4, struct.pack("=I", other.pid)))
        simulator.control.recv(512)
    simulator.control.settimeout(20.0)  # it waits for this one's answer first
    SM(simulator, names[1], os.getpid())


def test_what_is_watched():
    assert key_of(packet(GET, SM_INFO, slot=0)) == key_of(packet(ANSWER, SM_INFO, slot=9)) is not None
    assert key_of(packet(GET, SM_INFO, number=8)) != key_of(packet(GET, SM_INFO))
    assert key_of(packet(GET, SM_INFO, smp_class=0x04)) is None
    assert key_of(packet(GET, NOTICE)) is None
    assert is_request(packet(TRAP, NOTICE))
    assert not is_request(packet(TRAP_REPRESS, NOTICE))


def test_a_large_lab_goes_without():
    sizes = {"hcas": 8, "servers": MOST_WATCHED_PORTS // 8}
    large = State("x", "", made_directory=False, sizes=sizes)
    small = State("x", "", made_directory=False, sizes={**sizes, "servers": 2})
    assert large.sm_socket_name == large.socket_name
    assert small.sm_socket_name == f"{small.socket_name}:sm"


@pytest.mark.contract
def test_the_master_ends_its_sweep_although_the_standby_never_answers(site):
    listing = site.manager("sm-a").list_file
    breaking.freeze_opensm(site, "sm-b")
    try:
        before = listing.stat().st_mtime_ns
        breaking.reload_opensm(site, "sm-a")
        until(lambda: listing.stat().st_mtime_ns != before)
    finally:
        breaking.unfreeze_opensm(site, "sm-b")
