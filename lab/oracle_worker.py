"""The oracle's worker: parent of one simulator and one `opensm -o` at a time.

Run as `python -m lab.oracle_worker FOLDER LAB`; takes one JSON question a line on stdin and gives one JSON answer a
line on stdout. It ends when its stdin ends, so that not even `kill -9` of the one who asks leaves a process or a
file; its own children die with it.
"""

import json
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.layout import program, umad_library
from lab.processes import MARK, die_with_parent
from lab.simulator import client_environment
from lab.walk import Found, Walker

NET, CONF = "fabric.net", "opensm.conf"
REJECTED = "osm_prtn_make_partitions: Partition configuration in error; retrying with default config"
SWEPT = "SUBNET UP"
LEAVES = "Exiting SM"
_ECHO = b"#here"  # the simulator's console repeats a comment
# A sweep in which a table was not written or read proves nothing: timed out, refused, or not sent (ground truth: 3).
_FAILED = re.compile(r"ERR (3111|3113|3119|0506|0509|0511)\b|Errors during initialization")
_STAMP = re.compile(r"\A[A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d \d{6} \[[0-9A-F]+\] (0x[0-9a-f]{2}) -> ")
# The signals by which a program ends itself: it was the file that killed it, when it happens twice.
_OWN_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL}
_HEAD = re.compile(rb'^(?:ca|hca)guid=(0x[0-9a-fA-F]+)[^\n]*\n(?:Hca|Ca)\s+(\d+)\s+"([^"\n]+)"', re.MULTILINE)
_SIZES = re.compile(rb"^(Switch|Hca|Ca|Rt)\s+(\d+)", re.MULTILINE)


class HalfAnswer(LabError):
    """A run that proves nothing; another may."""


class AskerGone(Exception):
    """Nobody waits for the answer any more."""


class Worker:
    """Answers questions about one simulated fabric, each on a simulator of its own."""

    def __init__(self, folder: Path, lab: str) -> None:
        self.folder, self.lab = folder, lab
        net = (folder / NET).read_bytes()
        self._nodes: list[tuple[int, int, str]] = [
            (int(guid, 16), int(ports), node.decode()) for guid, ports, node in _HEAD.findall(net)
        ]
        sizes = [(kind, int(ports)) for kind, ports in _SIZES.findall(net)]
        switches = sum(kind == b"Switch" for kind, _ in sizes)
        most_ports = sum(ports + 1 for _, ports in sizes)
        self._limits = ["-N", str(len(sizes) + 8), "-S", str(switches + 2), "-P", str(most_ports + 64)]
        self._simulator, self._opensm, self._library = program("ibsim"), program("opensm"), umad_library()
        self._ports: dict[str, dict[int, Found]] = {}
        self._run = 0

    def answer(self, data: bytes, *, sm_port: int, options: list[str], deadline_s: float) -> dict[str, Any]:
        """What OpenSM made of `data`; a half answer is tried once more, and so is a run that OpenSM died in."""
        node_id = self._node_of(sm_port)
        deadline = time.monotonic() + deadline_s
        died = 0
        while True:
            try:
                outcome = self._once(data, node_id=node_id, sm_port=sm_port, options=options, deadline=deadline)
            except HalfAnswer:
                if died or time.monotonic() > deadline:
                    raise
                died = -1
                continue
            if outcome["died"] and outcome["died"] != died:
                if died:
                    raise LabError(f"OpenSM ended differently in two runs on one file: {died} and {outcome['died']}.")
                died = outcome["died"]
                continue
            return outcome

    def _node_of(self, sm_port: int) -> str:
        for node_guid, ports, node_id in self._nodes:
            if node_guid < sm_port <= node_guid + ports:
                return node_id
        raise LabError(f"No HCA of the fabric has the port 0x{sm_port:016x} (node GUID + port number).")

    def _once(self, data: bytes, *, node_id: str, sm_port: int, options: list[str], deadline: float) -> dict[str, Any]:
        self._run += 1
        socket_name = f"fabricui-oracle-{self.lab}-{self._run}"
        folder = self.folder / "run"
        folder.mkdir()
        simulator = self._start_simulator(socket_name, folder)
        try:
            _await_ready(simulator, deadline)
            with Walker(socket_name=socket_name, node_id=node_id) as walker:
                if node_id not in self._ports:
                    self._ports[node_id] = walker.end_ports()
            status = self._sweep(data, folder, socket_name, node_id, [f"0x{sm_port:016x}", *options], deadline)
            log = _lines(folder / "log")
            was_leaving = bool(log) and log[-1] == LEAVES and SWEPT in log
            if status < 0 and not was_leaving:
                return {"died": -status, "died_leaving": 0, "log": log, "rejected": False, "tables": {}}
            _believe(max(status, 0), log)
            with Walker(socket_name=socket_name, node_id=node_id) as walker:
                tables = walker.tables(self._ports[node_id])
        finally:
            simulator.kill()
            simulator.wait()
            for pipe in (simulator.stdin, simulator.stdout):
                if pipe is not None:
                    pipe.close()
            shutil.rmtree(folder)
        died_leaving = max(-status, 0)
        return {
            "died": 0, "died_leaving": died_leaving, "log": log, "rejected": REJECTED in log, "tables": tables,
        }  # fmt: skip

    def _start_simulator(self, socket_name: str, folder: Path) -> "subprocess.Popen[bytes]":
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", MARK: self.lab, "IBSIM_SOCKNAME": socket_name}
        return subprocess.Popen(
            [self._simulator, "-s", *self._limits, str(self.folder / NET)],
            cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True, preexec_fn=_dying_with(os.getpid()),
        )  # fmt: skip

    def _sweep(
        self, data: bytes, folder: Path, socket_name: str, node_id: str, arguments: list[str], deadline: float
    ) -> int:
        """Let OpenSM sweep once and leave; its exit status, or the negative number of a signal it caused itself."""
        (folder / "partitions.conf").write_bytes(data)
        seat = client_environment(lab=self.lab, socket_name=socket_name, library=self._library, node_id=node_id)
        command = [self._opensm, "-o", "-F", str(self.folder / CONF), "-P", "partitions.conf", "-f", "log", "-g"]
        opensm = subprocess.Popen(
            [*command, *arguments],
            cwd=folder, env={**seat, "OSM_TMP_DIR": ".", "OSM_CACHE_DIR": "."}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=_dying_with(os.getpid()),
        )  # fmt: skip
        try:
            descriptor = os.pidfd_open(opensm.pid)
            try:
                ready = select.select([descriptor, sys.stdin], [], [], max(deadline - time.monotonic(), 0))[0]
            finally:
                os.close(descriptor)
        finally:
            ended = opensm.poll() is not None
            if not ended:
                opensm.kill()
                opensm.wait()
        if not ended and sys.stdin in ready:
            raise AskerGone
        if not ended:
            raise HalfAnswer("OpenSM did not end its one sweep in time.")
        if opensm.returncode < 0 and -opensm.returncode not in _OWN_FAULTS:
            raise HalfAnswer(f"Somebody killed OpenSM with signal {-opensm.returncode}.")
        return opensm.returncode


def _dying_with(parent: int) -> Any:
    def before_exec() -> None:
        die_with_parent(parent)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return before_exec


def _await_ready(simulator: "subprocess.Popen[bytes]", deadline: float) -> None:
    """Return once the simulator takes clients: it reads its console after it has made its sockets."""
    if simulator.stdin is None or simulator.stdout is None:
        raise ValueError("the simulator's console must be pipes")
    os.write(simulator.stdin.fileno(), _ECHO + b"\n")
    heard = b""
    while _ECHO not in heard:
        if not select.select([simulator.stdout], [], [], max(deadline - time.monotonic(), 0))[0]:
            raise HalfAnswer("The simulator did not load the fabric in time.")
        said = os.read(simulator.stdout.fileno(), 65536)
        if not said:
            raise LabError(f"The simulator refuses the fabric: {heard.decode(errors='replace')[-300:]}")
        heard += said


def _lines(log: Path) -> list[str]:
    """What OpenSM logged, without time, thread and level."""
    try:
        text = log.read_bytes().decode("latin-1")
    except FileNotFoundError:
        return []
    return [_STAMP.sub("", line) for line in text.split("\n") if line]


def _believe(status: int, log: list[str]) -> None:
    """Raise HalfAnswer unless the one sweep went through without an error of the fabric's."""
    failed = [line for line in log if _FAILED.search(line)]
    if status or failed or SWEPT not in log:
        last = failed or log[-3:]
        raise HalfAnswer(f"OpenSM's sweep proves nothing: exit status {status}; its log: {last}")


def main(folder: Path, lab: str) -> None:
    """Answer until nobody asks any more, then leave nothing behind."""
    try:
        worker: Worker | None = None
        for line in sys.stdin:
            question: Mapping[str, Any] = json.loads(line)
            try:
                worker = worker or Worker(folder, lab)
                answer = worker.answer(
                    bytes.fromhex(question["data"]), sm_port=question["sm_port"], options=question["options"],
                    deadline_s=question["deadline_s"],
                )  # fmt: skip
            except LabError as problem:
                answer = {"problem": str(problem)}
            print(json.dumps(answer), flush=True)
    except (AskerGone, BrokenPipeError):
        pass
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
