"""A running demo, one for all browser tests of a file: another file finds nothing of theirs staged."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.free_ports import free_port
from lab.site import Site

SERVERS, HCAS = 6, 2
READY_WITHIN_S = 240


class Demo:
    """A running `./run demo`, as it was printed to the person who started it."""

    def __init__(self, said: str, folder: Path) -> None:
        self.url = re.search(r"http://\S+", said)[0]
        self.password, self.admin_password = (re.search(rf"{name}\s+(\S+)", said)[1] for name in ("operator", "admin"))
        self.lab = folder / "lab"
        self.site = Site.attach(self.lab)


@contextmanager
def running_demo(folder: Path) -> Iterator[Demo]:
    """Start it in `folder`, which has a short path (a socket's has at most 107 bytes); end it by Ctrl-C."""
    said, log = folder.with_name("said"), folder.with_name("log")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DATABASE", "DJANGO"))}
    environment["FABRICUI_TENANT_ROLLOUTS_APART_S"] = "2"  # a tenant's rollout waits less than at a real site
    with said.open("wb") as output, log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "lab", "demo", "--servers", str(SERVERS), "--hcas", str(HCAS),
             "--port", str(free_port()), "--dir", str(folder)],
            stdout=output, stderr=errors, stdin=subprocess.DEVNULL, env=environment,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + READY_WITHIN_S
        while "Stop with Ctrl-C" not in said.read_text(encoding="utf-8"):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the demo did not come up: {log.read_text(encoding='utf-8')[-3000:]}")
            time.sleep(0.1)
        yield Demo(said.read_text(encoding="utf-8"), folder)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=90)
        shutil.rmtree(folder, ignore_errors=True)
    assert process.returncode == 130
