"""The lab's one supervisor: parent of ibsim, both OpenSM and both sshd, holder of the simulator's console.

Run as `python -m lab.supervisor DIRECTORY`. It is detached from its launcher, answers one JSON line per connection on
its control socket, frees the simulator slots of dead clients and sweeps the folders they left. Its children die with
it.
"""

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from lab import transactions
from lab.children import Children
from lab.errors import LabError
from lab.fabric import simulator_limits
from lab.layout import SUPERVISOR, Layout, program, python_environment
from lab.namespaces import MountNamespace
from lab.orders import Orders
from lab.processes import MARK, ProcessID, adopt_orphans, descendants, kill_all, listeners_and_sessions, marked
from lab.simulator import Simulator, sweep_folders
from lab.sockets import read_text, short_path

SIMULATOR = "ibsim"
TRANSACTIONS = "transactions"
HOUSEKEEPING_S = 1.0
START_DEADLINE_S = 60.0


class Stopping(Exception):
    """Somebody asked the lab to end."""


class Supervisor:
    """Everything that runs in one lab; `self.state` is written to the state file after each change."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.state = layout.read_state()
        self.children = Children()
        self.simulator: Simulator | None = None
        self.orders = Orders(self)
        self.namespaces: dict[str, MountNamespace | None] = {}
        self.owner = None if self.state.owner is None else ProcessID.from_json(self.state.owner)
        self._stop = False
        self._control = self._listen()
        self._wake_read, self._wake_write = os.pipe()
        for descriptor in (self._wake_read, self._wake_write):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self._wake_write)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._ask_to_stop)
        self._next_housekeeping = 0.0

    def _ask_to_stop(self, *_: object) -> None:
        self._stop = True

    def _listen(self) -> socket.socket:
        control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.layout.control_socket.unlink(missing_ok=True)
        with short_path(self.layout.control_socket) as path:
            control.bind(path)
        self.layout.control_socket.chmod(0o600)
        control.listen(16)
        return control

    # The life of the lab

    def run(self) -> None:
        """Bring everything up, serve until asked to stop, take everything down."""
        adopt_orphans()
        own = ProcessID.of(os.getpid())
        self.state.processes[SUPERVISOR] = own.to_json() if own else {}
        self.save()
        try:
            self._bring_up()
            self.state.phase = "up"
            self.save()
            while True:
                self.pump(HOUSEKEEPING_S, serve=True)
        except Stopping:
            pass
        except LabError as problem:
            self.state.problem = str(problem)
        finally:
            self.state.phase = "failed" if self.state.problem else "stopping"
            self.save()
            self._take_down()
            if not self.state.problem:
                self.state.phase = "stopped"
            self.save()

    def _bring_up(self) -> None:
        fabric = self.state.fabric()
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", MARK: self.state.lab}
        process = self.children.start(
            SIMULATOR,
            [program("ibsim"), "-s", *simulator_limits(fabric), str(self.layout.net_file)],
            cwd=self.layout.run,
            output=self.layout.logs / "ibsim.log",
            env={**environment, "IBSIM_SOCKNAME": self.state.socket_name},
            console=True,
        )
        self.simulator = Simulator(process, self.state.socket_name)
        for record in self.state.managers:
            self.namespaces[record.name] = MountNamespace.create()
            self.orders.start_sshd(record.name)
        simulator = self.simulator
        self.until(lambda: simulator.is_ready, "the simulator to load the fabric")
        if self.state.are_transactions_watched:
            self._watch_transactions()
        # One after the other, so that the roles are the same in every lab.
        for record, line in zip(self.state.managers, ("SUBNET UP", "Entering STANDBY state"), strict=True):
            self.orders.start_opensm(record.name)
            log = self.layout.manager(record.name).log
            self.until(partial(_is_logged, log, line), f"“{line}” in {log}")

    def _watch_transactions(self) -> None:
        log = self.layout.logs / "transactions.log"
        log.unlink(missing_ok=True)
        self.children.start(
            TRANSACTIONS,
            [sys.executable, "-m", "lab.transactions", self.state.socket_name, self.state.sm_socket_name],
            cwd=self.layout.run,
            output=log,
            env=python_environment(self.state.lab),
        )
        self.until(partial(_is_logged, log, transactions.READY), "the SMs' place at the simulator")

    def _take_down(self) -> None:
        """End readers first, then the SMs, then the simulator: an OpenSM without one ignores SIGTERM for long."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self._stop = False
        daemons = {name: identity.pid for name, identity in self.children.identities().items()}
        keep = {pid for name, pid in daemons.items() if name in (SIMULATOR, TRANSACTIONS) or name.startswith("opensm")}
        addresses = [record.address for record in self.state.managers]

        def clients() -> set[int]:
            self.children.wait_for_ended()
            found = marked(self.state.lab) | listeners_and_sessions(addresses) | descendants({os.getpid()})
            return found - keep - {os.getpid()}

        kill_all(clients, timeout_s=5.0)
        for name in sorted(self.children.identities()):
            if name.startswith("opensm"):
                self.children.stop(name, pump=self.quietly, timeout_s=3.0)
        for name in (TRANSACTIONS, SIMULATOR):
            self.children.stop(name, pump=self.quietly, timeout_s=2.0)
        self.children.wait_for_ended()
        sweep_folders(self.layout.run)
        self._control.close()
        self.layout.control_socket.unlink(missing_ok=True)

    def save(self) -> None:
        """Write the state file with the processes that live now."""
        own = self.state.processes.get(SUPERVISOR, {})
        living = {name: identity.to_json() for name, identity in self.children.identities().items()}
        self.state.processes = {SUPERVISOR: own, **living}
        self.layout.write_state(self.state)

    # The loop

    def quietly(self) -> None:
        """One turn of the loop for callers that must not be interrupted, even once the lab is to end."""
        self._turn(0.02)

    def pump(self, timeout_s: float, *, serve: bool = False) -> None:
        """Wait up to `timeout_s` for something to do and do it; raise Stopping when the lab is to end."""
        if self._stop:
            raise Stopping
        self._turn(timeout_s, serve=serve)
        if self._stop:
            raise Stopping

    def _turn(self, timeout_s: float, *, serve: bool = False) -> None:
        watched: list[Any] = [self._wake_read]
        if serve:
            watched.append(self._control)
        if self.simulator is not None and self.children.identity(SIMULATOR) is not None:
            watched.append(self.simulator.out)
        ready = select.select(watched, [], [], timeout_s)[0]
        if self._wake_read in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 4096)
            gone = self.children.wait_for_ended()
            if gone:
                self._after_end(gone)
        if self.simulator is not None and self.simulator.out in ready:
            self.simulator.listen()
        if serve and self._control in ready:
            self._answer()
        if serve and time.monotonic() >= self._next_housekeeping:
            self._keep_house()

    def _after_end(self, gone: list[str]) -> None:
        if SIMULATOR in gone:
            self.simulator = None
            if self.state.phase in ("starting", "up"):
                self.state.problem = f"The simulator ended. Its last words are in {self.layout.logs / 'ibsim.log'}."
                self._stop = True
        if TRANSACTIONS in gone and self.state.phase in ("starting", "up"):
            log = self.layout.logs / "transactions.log"
            self.state.problem = f"The process at which the SMs sit ended. Its last words are in {log}."
            self._stop = True
        self._next_housekeeping = 0.0
        if self.state.phase == "up":
            self.save()

    def _keep_house(self) -> None:
        self._next_housekeeping = time.monotonic() + HOUSEKEEPING_S
        if self.simulator is not None:
            self.simulator.reap()
        sweep_folders(self.layout.run)
        sweep_folders(self.layout.directory / "managers")
        if self.owner is not None and not self.owner.is_alive:
            self._stop = True

    def until(self, claim: Any, what: str, *, timeout_s: float = START_DEADLINE_S) -> None:
        """Turn the loop until `claim()` holds; raise LabError saying what was waited for."""
        deadline = time.monotonic() + timeout_s
        while not claim():
            if time.monotonic() > deadline:
                raise LabError(f"Waited {timeout_s:.0f} s in vain for {what}.")
            if self.state.problem:
                raise LabError(self.state.problem)
            self.pump(0.05)

    # The control socket

    def _answer(self) -> None:
        connection, _ = self._control.accept()
        with connection:
            connection.settimeout(5.0)
            try:
                with connection.makefile("rb") as stream:
                    request = json.loads(stream.readline(1 << 20))
                result = self._obey(request.pop("do"), request)
                reply: dict[str, Any] = {"ok": True, "result": result}
            except LabError as problem:
                reply = {"ok": False, "problem": str(problem)}
            except (OSError, ValueError, KeyError, TypeError) as problem:
                reply = {"ok": False, "problem": f"The supervisor could not do that: {problem!r}"}
            with contextlib.suppress(OSError):
                connection.sendall(json.dumps(reply).encode() + b"\n")

    def _obey(self, what: str, arguments: dict[str, Any]) -> Any:
        if what.startswith("_") or not hasattr(Orders, what):
            raise LabError(f"The supervisor knows no order “{what}”.")
        result = getattr(self.orders, what)(**arguments)
        self.save()
        return result


def _is_logged(log: Path, line: str) -> bool:
    return line in read_text(log)


if __name__ == "__main__":
    Supervisor(Layout(Path(sys.argv[1]))).run()
