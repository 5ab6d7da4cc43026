"""The caller's end of the supervisor's control socket, and `down`, which needs no supervisor."""

import contextlib
import json
import os
import shutil
import signal
import socket
import time
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.layout import SUPERVISOR, Layout, State, wait_until
from lab.processes import ProcessID, kill_all, listeners_and_sessions, marked
from lab.sockets import short_path

STOP_DEADLINE_S = 30.0


def order(layout: Layout, what: str, *, timeout_s: float = 90.0, **arguments: Any) -> Any:
    """Have the supervisor do `what` and return its result; raise LabError with its sentence when it cannot."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        try:
            with short_path(layout.control_socket) as path:
                connection.connect(path)
        except OSError:
            raise LabError(
                f"No lab runs in {layout.directory}. Start one with “./run lab up”; "
                "“./run lab down” clears away what a killed one left."
            ) from None
        connection.sendall(json.dumps({"do": what, **arguments}).encode() + b"\n")
        with connection.makefile("rb") as stream:
            line = stream.readline()
    if not line:
        raise LabError(f"The lab ended before it answered. See {layout.logs / 'supervisor.log'}.")
    reply = json.loads(line)
    if not reply["ok"]:
        raise LabError(reply["problem"])
    return reply["result"]


def down(layout: Layout, *, keep_files: bool = False) -> None:
    """End the lab and leave nothing of it: no process, socket, mount or file (the files stay with `keep_files`).

    Works as well when launcher or supervisor were killed: what carries the lab's random mark, what holds a socket at a
    manager host's address, and the recorded processes are ended. Raises LabError when something survives.
    """
    state = layout.read_state()
    _end_supervisor(layout, state)
    addresses = [record.address for record in state.managers]
    recorded = [ProcessID.from_json(value) for value in state.processes.values() if value]

    def remaining() -> set[int]:
        own = {identity.pid for identity in recorded if identity.is_alive}
        return (own | marked(state.lab) | _sshd_only(listeners_and_sessions(addresses))) - {os.getpid()}

    if not kill_all(remaining, timeout_s=10.0):
        raise LabError(f"Some processes of the lab could not be ended: {sorted(remaining())}.")
    if not keep_files:
        remove_files(layout, whole_directory=state.made_directory)


def _end_supervisor(layout: Layout, state: State) -> None:
    supervisor = state.process(SUPERVISOR)
    if supervisor is None or not supervisor.send(signal.SIGTERM):
        return
    deadline = time.monotonic() + STOP_DEADLINE_S
    while supervisor.is_alive and time.monotonic() < deadline:
        with contextlib.suppress(ChildProcessError):
            # The launcher itself may be asked to end the lab it started.
            os.waitpid(supervisor.pid, os.WNOHANG)
        time.sleep(0.02)


def _sshd_only(pids: set[int]) -> set[int]:
    """Those of `pids` that are the far end of a connection, not a client of ours that still holds one."""
    names = {pid: Path(f"/proc/{pid}/comm") for pid in pids}
    return {pid for pid, comm in names.items() if comm.exists() and comm.read_text().startswith("sshd")}


def remove_files(layout: Layout, *, whole_directory: bool) -> None:
    """Remove what the lab put into its directory, and the directory if the lab made it."""
    for path in layout.own():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if whole_directory:
        with contextlib.suppress(OSError):
            layout.directory.rmdir()


def wait_for_phase(layout: Layout, *, timeout_s: float) -> State:
    """The state once the lab is up; raise LabError with the cause when it failed."""

    def settled() -> State | None:
        state = layout.read_state()
        alive = state.process(SUPERVISOR) is not None or not state.processes
        return state if state.phase not in ("starting",) or not alive else None

    state: State = wait_until(settled, timeout_s=timeout_s, what="the lab to come up")
    if state.phase != "up":
        raise LabError(state.problem or f"The supervisor died. See {layout.logs / 'supervisor.log'}.")
    return state
