"""FabricUI's own processes as they are run, on a database and a broker of their own; no lab, no manager host."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fabricui import broker as brokers
from fabricui import processes

ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def until[Found](find: Callable[[], Found], seconds: float = 60) -> Found:
    """What `find` gives once it is true; fails after a while."""
    deadline = time.monotonic() + seconds
    while not (found := find()):
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)
    return found


class Running:
    """Processes by name, each with a log; end them by `stop`."""

    def __init__(self, **environment: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fui-run-"))
        self.port, self.register_port = free_port(), free_port()
        broker = brokers.choose(redis_url="", directory=self.folder)
        addresses = processes.Addresses("127.0.0.1", self.port, self.register_port)
        self.table = processes.commands(addresses=addresses, broker=broker, probes_at_once=1)
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "fabricui.settings",
            "FABRICUI_DATA_DIR": str(self.folder),
            "DATABASE_URL": f"sqlite://{self.folder / 'db.sqlite3'}",
            "REDIS_URL": broker.url,
            **environment,
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        (self.folder / "staticfiles").mkdir()

    def python(self, program: str) -> str:
        """What a program of Django's prints."""
        done = subprocess.run(
            [sys.executable, "-c", f"import django\ndjango.setup()\n{program}"],
            cwd=ROOT, env=self.environment, check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, name: str, *more: str, **environment: str) -> None:
        argv, extra = self.table[name]
        with self.log(name).open("ab") as output:
            self.processes[name] = subprocess.Popen(
                [*argv, *more], cwd=ROOT, env={**self.environment, **extra, **environment},
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def signal(self, name: str, number: int) -> None:
        """Send it a signal: SIGSTOP makes it hang with all its threads."""
        self.processes[name].send_signal(number)

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def logs(self) -> str:
        return "\n".join(file.read_text(errors="replace") for file in sorted(self.folder.glob("*.log")))

    def get(self, path: str, token: str = "", host: str = "127.0.0.1") -> tuple[int, str]:
        """Status and text of an answer; (0, "") while nobody listens."""
        door = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Host": host} | ({"Authorization": f"Bearer {token}"} if token else {})
        try:
            door.request("GET", path, headers=headers)
            answer = door.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""
        finally:
            door.close()

    def words(self, token: str) -> dict[str, str]:
        """The word of each check."""
        said = json.loads(self.get("/readyz", token)[1] or "{}")
        return {check["name"]: check["word"] for check in said.get("checks", [])}

    def stop(self) -> None:
        for name in list(self.processes):
            self.kill(name)
        shutil.rmtree(self.folder, ignore_errors=True)
