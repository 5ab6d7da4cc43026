"""A registration door as it runs in production, on a database of its own, with a count of what it costs."""

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fabricui import broker, processes
from fabricui.environment import REGISTER_WORKERS
from lab.errors import LabError
from lab.free_ports import free_port
from lab.layout import repository

SUBNET = "storm"
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class RegisterDoor:
    """A running door: where it listens, a token for any number of servers, and the processes that do its work."""

    port: int
    token: str
    roots: tuple[int, ...]  # PIDs; their descendants count too

    def cpu_s(self) -> float:
        """Processor seconds that the door, its broker and its database have used until now."""
        return sum(_cpu_s(root) for root in self.roots)


@contextlib.contextmanager
def door(database_url: str, *, uses: int, database_pid: int | None = None) -> Iterator[RegisterDoor]:
    """Make the schema in `database_url`, start broker and door as `./run up` does, and end them afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="fabricui-door-"))
    running: list[subprocess.Popen[bytes]] = []
    try:
        chosen = broker.choose(redis_url="", directory=folder)
        environment = os.environ | {
            "DATABASE_URL": database_url,
            "FABRICUI_DATA_DIR": str(folder),
            "FABRICUI_SECRET_KEY": secrets.token_urlsafe(40),
            "FABRICUI_LOG_LEVEL": "WARNING",
            "REDIS_URL": chosen.url,
        }
        _manage(environment, "migrate", "-v0")
        _manage(environment, "create_subnet", SUBNET)
        token = _manage(environment, "enrolment_token", SUBNET, "storm", "--uses", str(uses))
        port = free_port()
        table = processes.commands(
            addresses=processes.Addresses("127.0.0.1", 0, port),
            broker=chosen,
            register_workers=REGISTER_WORKERS[database_url.partition(":")[0]],
        )
        with (folder / "log").open("wb") as log:
            for name in ("broker", "register"):
                argv, extra = table[name]
                running.append(
                    subprocess.Popen(argv, cwd=repository(), env={**environment, **extra}, stdout=log, stderr=log)
                )
        _await(port, running[-1], folder / "log")
        roots = [process.pid for process in running] + ([database_pid] if database_pid else [])
        yield RegisterDoor(port=port, token=token, roots=tuple(roots))
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _manage(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "manage.py", *arguments, "--skip-checks"]
    done = subprocess.run(command, cwd=repository(), env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"manage.py {arguments[0]} failed: {done.stderr.strip()[-500:]}")
    return done.stdout.strip()


def _await(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None or time.monotonic() > deadline:
            raise LabError(f"The registration door does not listen: {log.read_text(errors='replace')[-500:]}")
        time.sleep(0.05)


def _cpu_s(root: int) -> float:
    """Processor seconds of `root`, its descendants, and those of them that have ended (proc(5), stat)."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
                ticks[int(entry.name)] = sum(map(int, fields[11:15]))
    wanted, grows = {root}, True
    while grows:
        more = {pid for pid, parent in parents.items() if parent in wanted} - wanted
        wanted |= more
        grows = bool(more)
    return sum(ticks.get(pid, 0) for pid in wanted) * _TICK_S
