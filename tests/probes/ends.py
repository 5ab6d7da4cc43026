"""Ends of a session for tests: ones that answer from a script, and the real program in a local process."""

import contextlib
import hashlib
import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from remote.errors import RemoteError, StreamEnded
from remote.probe_host import Lines

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM_DIGEST = hashlib.sha256((ROOT / "probes/on_host.py").read_bytes()).hexdigest()

Answer = Mapping[str, Any] | RemoteError | None
Script = dict[str, Answer | Callable[[Mapping[str, Any]], Answer]]


def port(number: int, **changes: Any) -> dict[str, Any]:
    """What an InfiniBand port of a healthy server shows."""
    facts = {
        "device": "mlx5_0", "port": 1, "state": "4: ACTIVE", "phys_state": "5: LinkUp", "link_layer": "InfiniBand",
        "rate": "400 Gb/sec (4X NDR)", "node_guid": f"0x{number:016x}", "port_guid": f"0x{number + 1:016x}",
        "is_software": False,
    }  # fmt: skip
    return {**facts, **changes}


def setup(number: int, **changes: Any) -> dict[str, Any]:
    """A healthy end's answer to `setup`."""
    facts: dict[str, Any] = {
        "did": "setup", "port": port(number), "verbs": {"backend": "pyverbs", "library": "libibverbs.so.1.14.44.0"},
        "uverbs": "/dev/infiniband/uverbs0 231:192", "pkey_index": 3, "pkey_entry": 0x8010, "mtu": 5, "lid": number,
        "gids": [], "qpns": [100 + number], "psns": [7], "rkey": 1, "memory": 4096, "bytes": 1 << 22,
        "rd_atomic": 16, "chain": 1,
    }  # fmt: skip
    return {**facts, **changes}


RESULT: dict[str, Any] = {
    "did": "go", "bytes": 1 << 24, "carried": (1 << 24) + (1 << 22), "pieces": 16, "seconds": 0.001, "samples": 16,
    "chains": 16, "chain": 1, "p50_ns": 30_000, "p90_ns": 31_000, "p99_ns": 32_000, "p999_ns": 32_000, "min_ns": 21_000,
    "max_ns": 32_000, "histogram": [[100, 16]], "post_ns": 400.0, "post_share": 0.01,
}  # fmt: skip


def script(number: int, **changes: Answer | Callable[[Mapping[str, Any]], Answer]) -> Script:
    """All answers of a healthy end; `changes` replace some."""
    before = {"port_xmit_data": 1000, "port_rcv_data": 1000}
    after = {name: value + (RESULT["carried"] // 4) for name, value in before.items()}
    answers: Script = {
        "hello": {"did": "hello", "protocol": 1, "host": f"srv-{number}"},
        "setup": setup(number),
        "connect": {"did": "connect", "counters": before, "bad_pkey": 0},
        "go": RESULT,
        "counters": {"did": "counters", "counters": after, "bad_pkey": 0, "pkey_index": 3, "pkey_entry": 0x8010},
        "verify": {"did": "verify", "digest": "ab" * 32, "is_untouched": False},
        "bye": {"did": "bye"},
    }
    return {**answers, **changes}


class Scripted:
    """A ProbeShell and ProbeStream in one that answers from a script; an error stands for the way failing there."""

    def __init__(self, name: str, answers: Script, *, delay_s: float = 0.0) -> None:
        self.name = name
        self.asked: list[Mapping[str, Any]] = []
        self.is_closed = False
        self._answers, self._delay_s = answers, delay_s
        self._waiting: list[tuple[float, Answer]] = []

    def open(self, *, seconds: float, timeout_s: float) -> "Scripted":
        answer = self._answers.get("open")
        if isinstance(answer, RemoteError):
            raise answer
        return self

    def send(self, request: Mapping[str, Any]) -> None:
        self.asked.append(request)
        answer = self._answers[request["do"]]
        if callable(answer) and not isinstance(answer, RemoteError):
            answer = answer(request)
        self._waiting.append((time.monotonic() + self._delay_s, answer))

    def poll(self, timeout_s: float) -> dict[str, Any] | None:
        idle = self._answers.get("idle")
        # It answered `connect`, and goes while the other end transfers.
        if isinstance(idle, RemoteError) and self.asked and self.asked[-1]["do"] == "connect" and not self._waiting:
            raise idle
        if not self._waiting or self._waiting[0][0] > time.monotonic() or self._waiting[0][1] is None:
            time.sleep(timeout_s)
            return None
        answer = self._waiting.pop(0)[1]
        if isinstance(answer, RemoteError):
            raise answer
        return dict(answer or {})

    def close(self) -> None:
        self.is_closed = True


class LocalEnd:
    """The real program behind the real wrapper, in a process of this machine."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []

    def open(self, *, seconds: float, timeout_s: float) -> "LocalStream":
        process = subprocess.Popen(
            [self._folder / "fabricui-probe", self._folder],
            env={"SSH_ORIGINAL_COMMAND": f"run {PROGRAM_DIGEST} {int(seconds) + 1}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.processes.append(process)
        return LocalStream(process)


class LocalStream:
    """A conversation over pipes."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self._lines = Lines()

    def send(self, request: Mapping[str, Any]) -> None:
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise self._ended() from None

    def poll(self, timeout_s: float) -> dict[str, Any] | None:
        deadline = time.monotonic() + timeout_s
        while True:
            found = self._lines.next()
            if found is not None:
                return found
            if not select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                return None
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise self._ended()
            self._lines.feed(data)

    def _ended(self) -> StreamEnded:
        self.process.wait(10)
        return StreamEnded(self.process.returncode, self.process.stderr.read().decode())

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()
        self.process.stderr.close()
