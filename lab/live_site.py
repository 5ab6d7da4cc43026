"""A web process with its broker and the worker that hands the trail on, on a database of its own: no fabric, no SSH.

For the benchmark of live hints and for the tests that end and start a web process under an open page.
"""

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from fabricui import broker, processes
from lab.errors import LabError
from lab.free_ports import free_port
from lab.layout import repository


class LiveSite:
    """The processes by name (`broker`, `web`, `housekeeping`), each of which can be ended and started again."""

    def __init__(self, folder: Path, database_url: str, secret_key: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        chosen = broker.choose(redis_url="", directory=folder)
        self.environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "fabricui.settings",
            "DATABASE_URL": database_url,
            "FABRICUI_DATA_DIR": str(folder),
            "FABRICUI_SECRET_KEY": secret_key,
            "FABRICUI_LOG_LEVEL": "WARNING",
            "REDIS_URL": chosen.url,
        }
        (folder / "staticfiles").mkdir(exist_ok=True)
        addresses = processes.Addresses("127.0.0.1", self.port, 0)
        self._table = processes.commands(addresses=addresses, broker=chosen)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._broker_socket = chosen.url.removeprefix("unix://")

    def start(self, *names: str) -> None:
        """Start these processes; return when the broker and the web process answer."""
        for name in names:
            argv, extra = self._table[name]
            with (self.folder / f"{name}.log").open("ab") as log:
                self._running[name] = subprocess.Popen(
                    argv, cwd=repository(), env={**self.environment, **extra}, stdout=log, stderr=log
                )
            if name == "broker":
                self._await(name, socket.AF_UNIX, self._broker_socket)
            if name == "web":
                self._await(name, socket.AF_INET, ("127.0.0.1", self.port))

    def stop(self, *names: str) -> None:
        """End these processes and wait for it."""
        for name in names:
            process = self._running.pop(name, None)
            if process is None:
                continue
            process.terminate()
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def stop_all(self) -> None:
        """End everything, the broker last."""
        self.stop(*reversed(list(self._running)))

    def pid(self, name: str) -> int:
        """The process id of a running process."""
        return self._running[name].pid

    def said(self, name: str) -> str:
        """What a process wrote."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def manage(self, *arguments: str) -> str:
        """Run a command of manage.py on the site's database; return what it printed."""
        command = [sys.executable, "manage.py", *arguments, "--skip-checks"]
        done = subprocess.run(
            command, cwd=repository(), env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LabError(f"manage.py {arguments[0]} failed: {done.stderr.strip()[-500:]}")
        return done.stdout.strip()

    def _await(self, name: str, family: int, address: object) -> None:
        deadline = time.monotonic() + 60
        while True:
            with socket.socket(family) as asked, contextlib.suppress(OSError):
                asked.settimeout(1)
                asked.connect(address)  # type: ignore[arg-type]  # what the family takes
                return
            if self._running[name].poll() is not None or time.monotonic() > deadline:
                raise LabError(f"The process {name} does not listen: {self.said(name)[-500:]}")
            time.sleep(0.02)


@contextlib.contextmanager
def live_site(*, database_url: str = "", environment: Mapping[str, str] | None = None) -> Iterator[LiveSite]:
    """A site with nothing started yet; without `database_url`, on an empty SQLite file without tables."""
    folder = Path(tempfile.mkdtemp(prefix="fui-live-"))  # short: a socket's path has at most 107 bytes
    key = (environment or {}).get("FABRICUI_SECRET_KEY") or secrets.token_urlsafe(40)
    site = LiveSite(folder, database_url or f"sqlite://{folder / 'live.sqlite3'}", key)
    site.environment.update(environment or {})
    try:
        yield site
    finally:
        site.stop_all()
        shutil.rmtree(folder, ignore_errors=True)
