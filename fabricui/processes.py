"""The processes of a running FabricUI: what each is called and how it is started. `./run up` and the demo use it."""

import ctypes
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from honcho.manager import Manager

from fabricui.broker import Broker

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Addresses:
    """Where the two doors listen, and the listener for monitoring (0: the web door has it)."""

    host: str
    web_port: int
    register_port: int
    metrics_port: int = 0


def commands(
    *, addresses: Addresses, broker: Broker, probes_at_once: int = 8, register_workers: int = 1
) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Each process's argv and its own environment, by name.

    The workers of the queues `rollout` and `observe` are the only ones that are given the managers' key, and the one
    of the queue `probe`, which runs `probes_at_once` pairs at a time, the only one that is given the probe hosts'. The
    registration door has `register_workers` processes behind its one address.
    """
    python = sys.executable
    uvicorn = [python, "-m", "uvicorn", "fabricui.asgi:application", "--host", addresses.host, "--no-access-log",
               "--timeout-graceful-shutdown", "3"]  # fmt: skip
    celery = [python, "-m", "celery", "-A", "fabricui.celery", "--quiet"]
    worker = [*celery, "worker", "--without-gossip", "--without-mingle", "--loglevel", "WARNING"]
    table: dict[str, tuple[list[str], dict[str, str]]] = {}
    if broker.command:
        table["broker"] = (list(broker.command), {})
    # httptools sets no bound to what a header may hold, and at the door anybody's server may write one. Pages need no
    # loop in C; the door takes uvloop by itself where it is installed (ADR 38).
    uvicorn += ["--http", "h11"]
    web = [*uvicorn, "--port", str(addresses.web_port), "--loop", "asyncio"]
    table["web"] = (web, {"FABRICUI_LISTENER": "web"})
    if addresses.metrics_port:
        monitoring = [*uvicorn, "--port", str(addresses.metrics_port), "--loop", "asyncio"]
        table["metrics"] = (monitoring, {"FABRICUI_LISTENER": "metrics"})
    # What a tenant's server writes into X-Forwarded-For is nobody's address (docs/registration.md).
    door = [*uvicorn, "--port", str(addresses.register_port), "--no-proxy-headers", "--workers", str(register_workers)]
    table["register"] = (door, {"FABRICUI_LISTENER": "register"})
    for queue in ("rollout", "observe", "webhooks", "housekeeping"):
        table[queue] = ([*worker, "--pool", "solo", "-Q", queue, "-n", f"{queue}@fabricui"], {})
    # Probes wait for their hosts nearly all the time, so one process runs many of them at once.
    several = ["--pool", "threads", "--concurrency", str(probes_at_once)]
    table["probe"] = ([*worker, *several, "-Q", "probe", "-n", "probe@fabricui"], {})
    # The schedule is code and every tick is idempotent: nothing of it needs to be kept on disk.
    table["beat"] = ([*celery, "beat", "--loglevel", "WARNING", "--scheduler", "fabricui.beat:TellingScheduler"], {})
    return table


# Only these see where a private key lies: that of the manager hosts, of the probe hosts, and that signs the trail.
_MAY_SEE = {
    "FABRICUI_MANAGER_KEY_FILE": {"rollout", "observe"},
    "FABRICUI_PROBE_KEY_FILE": {"probe"},
    "FABRICUI_AUDIT_SIGNING_KEY_FILE": {"housekeeping"},
}


def run(table: Mapping[str, tuple[list[str], dict[str, str]]], *, environment: Mapping[str, str]) -> int:
    """Run all processes until one ends or a signal comes; end them all; return the exit status.

    Ends itself when its parent dies, so that a killed launcher leaves nothing behind.
    """
    end_with_parent()
    signing_key = environment.get("FABRICUI_AUDIT_SIGNING_KEY_FILE")
    if signing_key:  # its public half is for all of them
        environment = {"FABRICUI_AUDIT_PUBLIC_KEY_FILE": f"{signing_key}.pub", **environment}
    manager = Manager()
    for name, (argv, extra) in table.items():
        values = {**environment, **extra}
        for key_file, readers in _MAY_SEE.items():
            if name not in readers:
                values.pop(key_file, None)
        manager.add_process(name, _quoted(argv), env=values, cwd=str(Path.cwd()))
    manager.loop()
    return manager.returncode or 0


def end_with_parent() -> None:
    """Ask the kernel for SIGTERM when the parent dies (prctl(2), PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() == 1:  # it died before the call
        os.kill(os.getpid(), signal.SIGTERM)


def _quoted(argv: list[str]) -> str:
    """One string for honcho, which gives it to a shell; `exec` so that signals reach the program itself."""
    return "exec " + " ".join("'" + part.replace("'", "'\\''") + "'" for part in argv)
