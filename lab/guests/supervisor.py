"""The parent of both guests: starts them, watches them, ends them. Run as `python -m lab.guests.supervisor DIRECTORY`.

It ends with its owner, and QEMU dies with it, so nothing is left after a kill either.
"""

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from lab.children import Children
from lab.errors import LabError
from lab.free_ports import free_port
from lab.guests.guests import GuestsState, read_state, remove_files, write_state
from lab.guests.kernel import Kernel, kernel
from lab.guests.machine import DATA_SOCKET, GuestRecord, command, console, pack
from lab.processes import MARK, ProcessID
from lab.sockets import read_text

_LOOK_S = 0.1
_UP_WITHIN_S = 240.0
_TRIES = 3  # another process may take a port between the look and QEMU's bind


class Stopping(Exception):
    """Somebody asked the guests to end, or their owner is gone."""


class Supervisor:
    """Both guests of one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.state: GuestsState = read_state(directory)
        self.children = Children()
        self.is_orphaned = False
        self._stop = False
        self._owner = None if self.state.owner is None else ProcessID.from_json(self.state.owner)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._ask_to_stop)

    def _ask_to_stop(self, *_: object) -> None:
        self._stop = True

    def run(self) -> None:
        """Bring both up, watch until asked to stop, take both down."""
        own = ProcessID.of(os.getpid())
        self.state.supervisor = own.to_json() if own else None
        self.save()
        try:
            self._bring_up()
            self.state.phase = "up"
            self.save()
            while True:
                self._turn(1.0)
        except Stopping:
            self.state.phase = "stopped"
        except LabError as problem:
            self.state.phase, self.state.problem = "failed", str(problem)
        finally:
            for name in list(self.children.identities()):
                self.children.stop(name, pump=self._pump, timeout_s=2.0)
            self.save()
        if self.is_orphaned:
            remove_files(self.state)

    def save(self) -> None:
        """Write the state with the processes that live now."""
        self.state.processes = {name: one.to_json() for name, one in self.children.identities().items()}
        write_state(self.state)

    def _bring_up(self) -> None:
        which = kernel()
        self.state.kernel = which.package
        for number, record in enumerate(self.state.guests):
            pack(record, which, self.directory)
            self.state.guests[number] = self._start(record, which)
            self.save()
        deadline = time.monotonic() + _UP_WITHIN_S
        while not all(self._is_ready(record) for record in self.state.guests):
            if time.monotonic() > deadline:
                raise LabError(f"Waited {_UP_WITHIN_S:.0f} s in vain for the guests to be ready.")
            self._turn(_LOOK_S)

    def _start(self, record: GuestRecord, which: Kernel) -> GuestRecord:
        """Start one guest on a free port; return its record with the port."""
        output = self.directory / f"{record.name}.qemu"
        for _ in range(_TRIES):
            placed = replace(record, ssh_port=free_port(record.address))
            self.children.start(
                record.name,
                command(placed, which),
                cwd=self.directory,
                output=output,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", MARK: self.state.mark},
            )
            # The console's file is made after the sockets are bound, and the next guest connects to this one's.
            made = self.directory / (DATA_SOCKET if record.number == 1 else console(record))
            deadline = time.monotonic() + 20
            while not made.exists() and self.children.identity(record.name) and time.monotonic() < deadline:
                self._pump()
            if self.children.identity(record.name) is not None:
                return placed
            if "forwarding" not in read_text(output):
                break
        raise LabError(f"QEMU does not start {record.name}: {read_text(output).strip()[-300:]}")

    def _is_ready(self, record: GuestRecord) -> bool:
        said = read_text(self.directory / console(record))
        if "guest: FAILED" in said:
            raise LabError(f"{record.name}: {said.partition('guest: FAILED')[2].strip()[:300]}")
        return "guest: READY" in said

    def _turn(self, pause_s: float) -> None:
        time.sleep(pause_s)
        for name in self.children.wait_for_ended():
            said = read_text(self.directory / f"{name}.qemu").strip()[-200:]
            raise LabError(f"The guest {name} ended (status {self.children.ended[name]}). {said}")
        if self._owner is not None and not self._owner.is_alive:
            self.is_orphaned = True
            raise Stopping
        if self._stop:
            raise Stopping

    def _pump(self) -> None:
        time.sleep(0.02)
        self.children.wait_for_ended()


if __name__ == "__main__":
    Supervisor(Path(sys.argv[1])).run()
