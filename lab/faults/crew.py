"""The workers of the lab: each a process of its own that runs the product's task, and can be stopped and killed.

The bench plays the broker: it starts a worker for a queued rollout, and another for each that `deploy`'s tick would
hand out again. Needs Django's settings in the environment.
"""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.faults.points import Point

STOP_WITHIN_S = 120.0
Line = Connection


@dataclass
class Worker:
    """One worker; `line` carries its stops."""

    process: Any  # multiprocessing's or subprocess's
    line: "Connection[Any, Any]"

    @property
    def pid(self) -> int:
        """Its process id."""
        return int(self.process.pid)

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        if isinstance(self.process, subprocess.Popen):
            return self.process.poll() is None
        return bool(self.process.is_alive())

    def next_stop(self, *, within_s: float = STOP_WITHIN_S) -> Point | None:
        """The moment at which it stops next; None when it ends without one."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            if self.line.poll(0.05):
                with contextlib.suppress(EOFError, OSError):
                    reached: Point = self.line.recv()
                    return reached
                return None
            if not self.is_alive and not self.line.poll():
                return None
        raise LabError(f"Worker {self.pid} neither stopped nor ended within {within_s:.0f} s.")

    def go(self, *, jump_s: float = 0.0) -> None:
        """Let it go on from where it stopped; its clock jumps by `jump_s`."""
        with contextlib.suppress(OSError):
            self.line.send(jump_s)

    def kill(self) -> None:
        """Kill it (SIGKILL), as the kernel does when memory runs out, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def wait(self, *, within_s: float = STOP_WITHIN_S) -> None:
        """Return once it has ended; raise LabError when it does not."""
        if isinstance(self.process, subprocess.Popen):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=within_s)
        else:
            self.process.join(within_s)
        if self.is_alive:
            raise LabError(f"Worker {self.pid} does not end.")


@dataclass
class Crew:
    """Starts workers. `hosts` are the manager hosts by role: {"master": "sm-a", "standby": "sm-b"}."""

    hosts: dict[str, str]
    log: Path
    _workers: list[Worker] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["lab.faults.warm"])

    def start(self, rollout_id: int, *stops: Point, jump_s: float = 0.0) -> Worker:
        """Start a worker on a rollout; its clock is `jump_s` away from the machine's."""
        ours, theirs = self._context.Pipe()
        arguments = (theirs, rollout_id, stops, self.hosts, jump_s, str(self.log))
        process = self._context.Process(target=_run, args=arguments, daemon=True)
        process.start()
        theirs.close()
        return self._keep(Worker(process, ours))

    def start_celery(self, *stops: Point) -> Worker:
        """Start a real Celery worker of the queue `rollout`; it takes what the broker hands it."""
        ours, theirs = multiprocessing.Pipe()
        words = [repr([asdict(stop) for stop in stops]), repr(self.hosts)]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "lab.faults.celery_worker", str(theirs.fileno()), *words],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[theirs.fileno()],
            )  # fmt: skip
        theirs.close()
        return self._keep(Worker(process, ours))

    def dismiss(self) -> None:
        """Kill every worker that still runs."""
        for worker in self._workers:
            if worker.is_alive:
                worker.kill()
        self._workers.clear()

    def _keep(self, worker: Worker) -> Worker:
        self._workers = [other for other in self._workers if other.is_alive]
        self._workers.append(worker)
        return worker


def _run(
    line: "Connection[Any, Any]",
    rollout_id: int,
    stops: Sequence[Point],
    hosts: dict[str, str],
    jump_s: float,
    log: str,
) -> None:
    """A worker's life: run the product's own task once."""
    from datetime import timedelta

    from deploy.models import Rollout
    from deploy.tasks import run_rollout
    from lab.faults.stops import Stops

    with Path(log).open("ab", buffering=0) as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    patches = Stops(line, stops, hosts)
    patches.shift = timedelta(seconds=jump_s)
    patches.install()
    with contextlib.suppress(Rollout.DoesNotExist):  # an older database was put back
        run_rollout(rollout_id=rollout_id)
