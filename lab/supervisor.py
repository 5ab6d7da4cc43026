"""The lab's one supervisor: parent of ibsim, both OpenSM and both sshd, holder of the simulator's console.

Run as `python -m lab.supervisor DIRECTORY`. It is detached from its launcher, answers one JSON line per connection on
its control socket, frees the simulator slots of dead clients and sweeps the folders they left. Its children die with it.
"""

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from lab.children import Children
from lab.errors import LabError
from lab.fabric import simulator_limits
from lab.layout import SUPERVISOR, Layout, ManagerRecord, program
from lab.managers import (
    opensm_command,
    opensm_environment,
    rogue_command,
    sshd_command,
    write_sshd_config,
)
from lab.namespaces import MountNamespace
from lab.processes import (
    MARK,
    ProcessID,
    adopt_orphans,
    descendants,
    kill_all,
    listeners_and_sessions,
    marked,
)
from lab.simulator import Simulator, sweep_folders

SIMULATOR = "ibsim"
ROGUE = "opensm-rogue"
HOUSEKEEPING_S = 1.0
START_DEADLINE_S = 60.0


class Stopping(Exception):  # noqa: N818 - not an error
    """Somebody asked the lab to end."""


class Supervisor:
    """Everything that runs in one lab; `self.state` is written to the state file after each change."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.state = layout.read_state()
        self.children = Children()
        self.simulator: Simulator | None = None
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
            self.start_sshd(record.name)
        self.until(lambda: self.simulator is not None and self.simulator.is_ready, "the simulator to load the fabric")
        # One after the other, so that the roles are the same in every lab.
        for record, line in zip(self.state.managers, ("SUBNET UP", "Entering STANDBY state"), strict=True):
            self.start_opensm(record.name)
            log = self.layout.manager(record.name).log
            self.until(lambda log=log, line=line: line in read_text(log), f"“{line}” in {log}")  # type: ignore[misc]

    def _take_down(self) -> None:
        """End readers first, then the SMs, then the simulator: an OpenSM without one ignores SIGTERM for long."""
        self._stop = False
        daemons = {name: identity.pid for name, identity in self.children.identities().items()}
        keep = {pid for name, pid in daemons.items() if name == SIMULATOR or name.startswith("opensm")}
        addresses = [record.address for record in self.state.managers]

        def clients() -> set[int]:
            self.children.wait_for_ended()
            found = marked(self.state.lab) | listeners_and_sessions(addresses) | descendants({os.getpid()})
            return found - keep - {os.getpid()}

        kill_all(clients, timeout_s=5.0)
        for name in sorted(self.children.identities()):
            if name.startswith("opensm"):
                self.children.stop(name, pump=self._quietly, timeout_s=3.0)
        self.children.stop(SIMULATOR, pump=self._quietly, timeout_s=2.0)
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

    def _quietly(self) -> None:
        """One turn of the loop for callers that must not be interrupted."""
        with contextlib.suppress(Stopping):
            self.pump(0.02)

    def pump(self, timeout_s: float, *, serve: bool = False) -> None:
        """Wait up to `timeout_s` for something to do and do it; raise Stopping when the lab is to end."""
        if self._stop:
            raise Stopping
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
        if self._stop:
            raise Stopping

    def _after_end(self, gone: list[str]) -> None:
        if SIMULATOR in gone:
            self.simulator = None
            if self.state.phase in ("starting", "up"):
                self.state.problem = f"The simulator ended. Its last words are in {self.layout.logs / 'ibsim.log'}."
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
        orders = {
            "console": self.console,
            "reap": self.reap,
            "start_opensm": self.start_opensm,
            "end_opensm": self.end_opensm,
            "start_sshd": self.start_sshd,
            "end_sshd": self.end_sshd,
            "delay_ssh": self.delay_ssh,
            "disk": self.disk,
            "start_rogue": self.start_rogue,
            "end_rogue": self.end_rogue,
            "note_link": self.note_link,
        }
        result = orders[what](**arguments)
        self.save()
        return result

    def console(self, line: str) -> str:
        """Type a line on the simulator's console."""
        if self.simulator is None:
            raise LabError("The simulator is gone.")
        return self.simulator.ask(line)

    def reap(self) -> list[int]:
        """Free dead clients' slots now; the PIDs that held them."""
        return [] if self.simulator is None else self.simulator.reap()

    def note_link(self, node_id: str, port: int, cut: bool) -> None:
        """Remember in the state file that a link is cut, or is whole again."""
        others = [link for link in self.state.cut_links if link != [node_id, port]]
        self.state.cut_links = [*others, [node_id, port]] if cut else others

    def start_opensm(self, manager: str, partitions: str | None = None) -> None:
        """Start a manager host's OpenSM with `-P partitions` (default: the file FabricUI writes)."""
        record = self.state.manager(manager)
        name = f"opensm-{manager}"
        if self.children.identity(name) is not None:
            raise LabError(f"OpenSM of {manager} already runs.")
        place = self.layout.manager(manager)
        record.partitions = partitions or str(place.partitions)
        self.children.start(
            name,
            opensm_command(place, record),
            cwd=self.layout.run,
            output=place.output,
            env=opensm_environment(self.state, node_id=record.node_id, dump=place.dump, cache=place.cache),
            namespace=self.namespaces[manager],
        )

    def end_opensm(self, manager: str, kill: bool = False) -> None:
        """End a manager host's OpenSM, by SIGTERM or by SIGKILL."""
        self.state.manager(manager)
        name = f"opensm-{manager}"
        if self.children.identity(name) is None:
            raise LabError(f"OpenSM of {manager} does not run.")
        self.children.stop(name, pump=self._quietly, kill=kill)
        self.reap()

    def start_sshd(self, manager: str) -> None:
        """Start a manager host's sshd, and its relay if the connection is to be slow."""
        record = self.state.manager(manager)
        name = f"sshd-{manager}"
        if self.children.identity(name) is not None:
            raise LabError(f"sshd of {manager} already runs.")
        place = self.layout.manager(manager)
        behind = record.ssh_port if not record.ssh_delay_ms else free_port_beside(record)
        write_sshd_config(self.state, place, record, port=behind)
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", MARK: self.state.lab}
        self.children.start(
            name, sshd_command(place), cwd=self.layout.run, output=place.sshd_log, env=environment,
            namespace=self.namespaces[manager],
        )  # fmt: skip
        self._until_listening(record, behind, name)
        if record.ssh_delay_ms:
            relay = f"relay-{manager}"
            numbers = [str(record.ssh_port), str(behind), str(record.ssh_delay_ms)]
            command = [sys.executable, "-m", "lab.relay", record.address, *numbers]
            self.children.start(
                relay, command, cwd=self.layout.run, output=place.sshd_log,
                env={**environment, "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
            )  # fmt: skip
            self._until_listening(record, record.ssh_port, relay)

    def _until_listening(self, record: ManagerRecord, port: int, name: str) -> None:
        place = self.layout.manager(record.name)

        def listening() -> bool:
            if self.children.identity(name) is None:
                raise LabError(f"{name} ended at once. Its log: {read_text(place.sshd_log)[-500:].strip()}")
            return is_listening(record.address, port)

        self.until(listening, f"{name} to listen on {record.address}:{port}", timeout_s=15.0)

    def end_sshd(self, manager: str) -> None:
        """End a manager host's sshd with all its sessions and what they run: open sessions outlive a listener."""
        record = self.state.manager(manager)
        listener = self.children.identity(f"sshd-{manager}")
        relay = self.children.identity(f"relay-{manager}")
        mine = {identity.pid for identity in (listener, relay) if identity is not None}

        def everything() -> set[int]:
            self.children.wait_for_ended()
            holders = listeners_and_sessions([record.address]) - {os.getpid()}
            mine.update(pid for pid in holders if command_name(pid).startswith("sshd"))
            mine.update(descendants(mine))
            mine.intersection_update(pid for pid in mine if ProcessID.of(pid) is not None)
            return set(mine)

        if not kill_all(everything, timeout_s=5.0):
            raise LabError(f"sshd of {manager} could not be ended.")
        sweep_folders(self.layout.run)
        self.reap()

    def delay_ssh(self, manager: str, delay_ms: int) -> None:
        """Make every byte to and from a manager host's sshd `delay_ms` late; 0 makes it fast again."""
        record = self.state.manager(manager)
        self.end_sshd(manager)
        record.ssh_delay_ms = delay_ms
        self.start_sshd(manager)

    def disk(self, manager: str, condition: str) -> None:
        """Make the disk under a manager host's partition file `full`, `read-only` or `whole` again."""
        from lab.namespaces import fill, make_read_only, mend

        record = self.state.manager(manager)
        namespace = self.namespaces[manager]
        if namespace is None:
            raise LabError(
                "This machine allows the lab no mount namespace, so no disk can be filled. Run the lab as root, or "
                "allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone)."
            )
        folder = self.layout.manager(manager).etc
        namespace.run(lambda: mend(folder))
        if condition == "full":
            namespace.run(lambda: fill(folder))
        elif condition == "read-only":
            namespace.run(lambda: make_read_only(folder))
        record.disk = condition

    def start_rogue(self, node_id: str, port_guid: str, priority: int) -> None:
        """Start a third OpenSM on a server's HCA."""
        if self.children.identity(ROGUE) is not None:
            raise LabError("A rogue SM already runs. Stop it first.")
        folder = self.layout.rogue
        (folder / "cache").mkdir(parents=True, exist_ok=True)
        self.children.start(
            ROGUE,
            rogue_command(folder, port_guid=port_guid, priority=priority),
            cwd=self.layout.run,
            output=folder / "opensm.out",
            env=opensm_environment(self.state, node_id=node_id, dump=folder, cache=folder / "cache"),
        )

    def end_rogue(self, kill: bool = False) -> None:
        """End the rogue SM."""
        if self.children.identity(ROGUE) is None:
            raise LabError("No rogue SM runs.")
        self.children.stop(ROGUE, pump=self._quietly, kill=kill)
        self.reap()


def read_text(path: Path) -> str:
    """What a log file holds; nothing when it does not exist yet."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def command_name(pid: int) -> str:
    """The name of a process's program as the kernel knows it."""
    return read_text(Path(f"/proc/{pid}/comm")).strip()


def free_port_beside(record: ManagerRecord) -> int:
    """A free port at a manager's address for an sshd that stands behind a relay."""
    from lab.managers import free_port

    return free_port(record.address)


def is_listening(address: str, port: int) -> bool:
    """Whether something listens there, without connecting to it."""
    wanted = f"{bytes(reversed([int(part) for part in address.split('.')])).hex().upper()}:{port:04X}"
    rows = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    return any(row.split()[1] == wanted and row.split()[3] == "0A" for row in rows)


class short_path(contextlib.AbstractContextManager[str]):  # noqa: N801 - reads as a function
    """A path to `path` that fits a socket address (107 bytes), however deep the folder is."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder = -1

    def __enter__(self) -> str:
        self._folder = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._folder}/{self._path.name}"

    def __exit__(self, *_: object) -> None:
        os.close(self._folder)


if __name__ == "__main__":
    Supervisor(Layout(Path(sys.argv[1]))).run()
