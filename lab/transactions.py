"""The kernel's part of a management transaction, for the SMs of a lab: asked again, and in the end timed out.

On real hardware ib_mad sends a request again when no answer comes and at last hands it back with status ETIMEDOUT. On
ibsim nobody does: a request that another SM drops (because it starts, ends or is stopped) is never asked again, and an
OpenSM that waits for its answer ends no sweep any more. ibsim drops TrapRepress too, for which the sender of a trap
waits, and it stands still while a stopped client's queue is full.

So the SMs of a lab sit at this process instead of at ibsim, under a socket name of their own, and it sits at ibsim for
each of them. What every node of the simulator answers by itself passes through; what another SM has to answer (SMInfo,
traps) is watched. Run as `python -m lab.transactions SIMULATOR OWN`, the two socket names; it prints READY and runs
until it is killed. Protocol: ibsim.h (struct sim_request, struct sim_ctl), umad2sim's sim_client.c for the names.
"""

import contextlib
import os
import select
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from lab.simulator import CONNECT, CONTROL, DISCONNECT, abstract_address, datagram_socket

READY = "transactions are watched"
# OpenSM's defaults (osm_subnet.c, transaction_timeout and transaction_retries), which umad2sim does not hand on.
TIMEOUT_S, TRIES = 0.2, 3
_TIMED_OUT = struct.pack("!I", 110)  # ETIMEDOUT, where ibsim itself writes it when no route leads anywhere
_STATUS, _MAD = 16, 32  # where they begin in struct sim_request
_CLASS, _METHOD, _TRANSACTION, _ATTRIBUTE = _MAD + 1, _MAD + 3, _MAD + 10, _MAD + 17
_SMP_CLASSES = (0x01, 0x81)
_TRAP, _TRAP_REPRESS, _RESPONSE = 0x05, 0x07, 0x80
_NOTICE, _SM_INFO = 0x02, 0x20
_WATCHED = (_NOTICE, _SM_INFO)
_LARGEST = 512

type Key = tuple[bytes, int]


def key_of(packet: bytes) -> Key | None:
    """What a request and its answer have in common, for what another SM answers; None for everything else.

    ibsim writes the asking client's slot into the upper 16 bits of the transaction ID.
    """
    attribute, method = packet[_ATTRIBUTE], packet[_METHOD]
    is_trap = attribute == _NOTICE and method in (_TRAP, _TRAP_REPRESS)
    if packet[_CLASS] not in _SMP_CLASSES or not (is_trap or attribute == _SM_INFO):
        return None
    return packet[_TRANSACTION : _TRANSACTION + 6], attribute


def is_request(packet: bytes) -> bool:
    """Whether somebody waits for an answer to it."""
    method = packet[_METHOD]
    return not method & _RESPONSE and method != _TRAP_REPRESS


def timed_out(packet: bytes) -> bytes:
    """The request as it comes back when nobody answered (`process_packet` of ibsim, `_dropped`)."""
    return packet[:_STATUS] + _TIMED_OUT + packet[_STATUS + 4 :]


@dataclass(slots=True)
class _Waiting:
    packet: bytes
    due: float
    tries: int


class _Line:
    """One datagram socket that never blocks: what its far end does not take waits its turn."""

    def __init__(self, watch: "Watch", client: "Client", own: str, hand_on: Callable[["Client", bytes], None]) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind(abstract_address(own))
        self._number = self.socket.fileno()
        self._client, self._hand_on = client, hand_on
        self._late: deque[bytes] = deque()
        self._watch = watch
        watch.add(self._number, self._happened)

    def connect(self, far: str) -> None:
        """Let `far` be the far end."""
        self.socket.connect(abstract_address(far))

    def send(self, packet: bytes) -> None:
        """Send, or keep for later; a far end that is gone gets nothing any more."""
        if self._late:
            self._late.append(packet)
        elif not self._took(packet):
            self._late.append(packet)
            self._watch.epoll.modify(self._number, select.EPOLLIN | select.EPOLLOUT)

    def close(self) -> None:
        """Give the name back."""
        self._watch.remove(self._number)
        self.socket.close()

    def _happened(self, events: int) -> None:
        if events & select.EPOLLOUT:
            while self._late and self._took(self._late[0]):
                self._late.popleft()
            if not self._late:
                self._watch.epoll.modify(self._number, select.EPOLLIN)
        if events & ~select.EPOLLOUT:
            try:
                packet = self.socket.recv(_LARGEST)
            except OSError:  # told that the far end is gone
                return
            self._hand_on(self._client, packet)

    def _took(self, packet: bytes) -> bool:
        try:
            self.socket.send(packet)
        except BlockingIOError:
            return False
        except OSError:  # nobody is there any more: ended, or killed
            pass
        return True


@dataclass(eq=False, slots=True)
class Client:
    """One SM that sits here: where it waits for what, and its two lines."""

    pid: int
    pidfd: int  # readable once the process has ended
    control: socket.socket  # to ibsim, in its name
    to_simulator: _Line = field(init=False)
    to_sm: _Line | None = None
    waiting: dict[Key, _Waiting] = field(default_factory=dict)


class Watch:
    """All SMs of the simulator of one socket name, which find it under another."""

    def __init__(self, simulator: str, own: str) -> None:
        self._simulator, self._own = simulator, own
        self.epoll = select.epoll()
        self._happened: dict[int, Callable[[int], None]] = {}
        self._clients: dict[int, Client] = {}
        self._control = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._control.bind(abstract_address(f"{self._own}:ctl"))
        self.add(self._control.fileno(), lambda _: self._answer_control())

    def add(self, number: int, happened: Callable[[int], None]) -> None:
        """Call `happened` with the events of the file descriptor `number`."""
        self._happened[number] = happened
        self.epoll.register(number, select.EPOLLIN)

    def remove(self, number: int) -> None:
        """Look at a file descriptor no more, not even for what was already seen."""
        del self._happened[number]
        self.epoll.unregister(number)

    def turn(self) -> None:
        """Wait for something to happen or to be due, and do it."""
        for number, events in self.epoll.poll(self._until_due()):
            happened = self._happened.get(number)
            if happened is not None:
                happened(events)
        self._ask_again()

    def _until_due(self) -> float | None:
        due = [waiting.due for client in self._clients.values() for waiting in client.waiting.values()]
        return max(0.0, min(due) - time.monotonic()) if due else None

    # What the SMs and the simulator say

    def _from_sm(self, client: Client, packet: bytes) -> None:
        if packet[_ATTRIBUTE] in _WATCHED:
            key = key_of(packet)
            if key is not None and is_request(packet):
                client.waiting[key] = _Waiting(packet, time.monotonic() + TIMEOUT_S, TRIES)
            elif key is not None and packet[_METHOD] == _TRAP_REPRESS:
                self._repress(key, packet)
                return
        client.to_simulator.send(packet)

    def _repress(self, key: Key, packet: bytes) -> None:
        """Hand a TrapRepress, which ibsim drops, to the SM that sent the trap."""
        for client in self._clients.values():
            if client.waiting.pop(key, None) is not None and client.to_sm is not None:
                client.to_sm.send(packet)

    def _from_simulator(self, client: Client, packet: bytes) -> None:
        if client.to_sm is None:
            return
        if packet[_ATTRIBUTE] in _WATCHED:
            key = key_of(packet)
            # An answer, or our own request back because no route leads there; the second answer to one is nobody's.
            is_end = not is_request(packet) or packet[_STATUS : _STATUS + 4] != bytes(4)
            if key is not None and is_end and client.waiting.pop(key, None) is None:
                return
        client.to_sm.send(packet)

    def _ask_again(self) -> None:
        now = 0.0
        for client in self._clients.values():
            if not client.waiting:
                continue
            now = now or time.monotonic()
            for key, waiting in list(client.waiting.items()):
                if waiting.due > now:
                    continue
                waiting.due, waiting.tries = now + TIMEOUT_S, waiting.tries - 1
                if waiting.tries >= 0:
                    client.to_simulator.send(waiting.packet)
                    continue
                del client.waiting[key]
                if client.to_sm is not None:
                    client.to_sm.send(timed_out(waiting.packet))

    # Who comes and goes

    def _answer_control(self) -> None:
        packet, sender = self._control.recvfrom(_LARGEST)
        pid = int(sender.strip(b"\0").rpartition(b":ctl")[2])
        kind = CONTROL.unpack(packet)[2]
        client = self._clients.get(pid)
        if kind == CONNECT:
            if client is not None:
                self._leave(client)
            client = self._enter(pid)
        if client is None:
            return
        try:
            client.control.send(packet)
            answer = client.control.recv(_LARGEST)
        except OSError:  # the simulator does not answer, or is gone: this one SM does not come in
            self._leave(client)
            return
        _, _, answered, _, data = CONTROL.unpack(answer)
        if kind == CONNECT and answered == CONNECT:
            slot = struct.unpack_from("=I", data)[0]
            client.to_simulator.connect(f"{self._simulator}:out{slot}")
            client.to_sm = _Line(self, client, f"{self._own}:out{slot}", self._from_sm)
            client.to_sm.connect(f"{self._own}:in{pid}")
        elif kind in (CONNECT, DISCONNECT):  # refused, or it goes
            self._leave(client)
        with contextlib.suppress(OSError):  # it did not wait for the answer
            self._control.sendto(answer, sender)

    def _enter(self, pid: int) -> Client | None:
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:  # killed between asking and now
            return None
        control = datagram_socket(f"{self._simulator}:ctl{pid}")
        control.connect(abstract_address(f"{self._simulator}:ctl"))
        client = self._clients[pid] = Client(pid, pidfd, control)
        # Before ibsim is told: it connects to this name at once, and ends when it cannot.
        client.to_simulator = _Line(self, client, f"{self._simulator}:in{pid}", self._from_simulator)
        self.add(client.pidfd, lambda _: self._leave(client))
        return client

    def _leave(self, client: Client) -> None:
        """Close everything of one SM; ibsim finds out, as it does when an SM is killed."""
        del self._clients[client.pid]
        self.remove(client.pidfd)
        os.close(client.pidfd)
        client.control.close()
        client.to_simulator.close()
        if client.to_sm is not None:
            client.to_sm.close()


def main(simulator: str, own: str) -> None:
    """Watch the transactions of all SMs until killed."""
    watch = Watch(simulator, own)
    print(READY, flush=True)
    while True:
        watch.turn()


if __name__ == "__main__":
    main(*sys.argv[1:])
