"""The real OpenSM as an oracle: what it makes of any bytes of a partitions.conf, freshly started on a fresh fabric.

Each answer comes from a simulator of its own, one sweep of `opensm -o`, and every end port's P_Key table read after
it. A run whose sweep failed proves nothing and raises LabError.
"""

import json
import os
import re
import secrets
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from lab.errors import LabError
from lab.layout import python_environment
from lab.oracle_worker import CONF, NET
from subnet.guid import GUID

_PARSE_ERROR = re.compile(r"parse_part_conf: PARSE ERROR: line (\d+): (.*)\Z")
# Hermetic: what this machine's /etc/opensm says must not reach the answer.
_OPTIONS = {
    "console": "off",
    "sweep_interval": "0",
    "per_module_logging_file": "/dev/null",
    "prefix_routes_file": "/dev/null",
    "qos_policy_file": "/dev/null",
}
_START_S = 20.0


@dataclass(frozen=True, slots=True)
class OracleAnswer:
    """What OpenSM did: whether it rejected the file, what it logged, and each end port's index → 16-bit entry.

    `died` is the signal by which the file killed OpenSM in its sweep (twice out of twice), else 0; then there are no
    tables. `died_leaving` is the signal that ended it after the sweep, while it was on its way out.
    """

    rejected: bool
    log_lines: tuple[str, ...]
    tables: Mapping[GUID, Mapping[int, int]]
    died: int = 0
    died_leaving: int = 0

    @property
    def rejection(self) -> tuple[int | None, str] | None:
        """(line, message) as OpenSM logs it; the line is None when the file holds no definition."""
        if not self.rejected:
            return None
        for line in self.log_lines:
            match = _PARSE_ERROR.match(line)
            if match:
                return int(match[1]), match[2]
        return None, "no definition found"


class Oracle:
    """Asks about one simulated fabric, given in the simulator's language; a context manager.

    Its worker process and folder go away with it, however it ends.
    """

    def __init__(self, net: str) -> None:
        self._net = net
        self._folder: Path | None = None
        self._worker: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Oracle":
        self._folder = Path(tempfile.mkdtemp(prefix="fabricui-oracle-"))
        (self._folder / NET).write_text(self._net, encoding="utf-8")
        options = "".join(f"{name} {value}\n" for name, value in _OPTIONS.items())
        (self._folder / CONF).write_text(options, encoding="ascii")
        lab = secrets.token_hex(8)
        self._worker = subprocess.Popen(
            [sys.executable, "-m", "lab.oracle_worker", str(self._folder), lab],
            env=python_environment(lab), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker, which ends its children, and remove the folder."""
        worker, folder = self._worker, self._folder
        self._worker = self._folder = None
        if worker is not None:
            for pipe in (worker.stdin, worker.stdout):
                if pipe is not None:
                    pipe.close()
            try:
                worker.wait(10)
            except subprocess.TimeoutExpired:
                worker.kill()  # its children die with it
                worker.wait()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def run(self, data: bytes, *, sm_port: GUID, options: Sequence[str] = (), deadline_s: float = 20.0) -> OracleAnswer:
        """What OpenSM with `options` on `sm_port` makes of `data`.

        Raises LabError when no run within `deadline_s` seconds gave a whole answer.
        """
        answer = self._ask(
            {"data": data.hex(), "sm_port": sm_port.number, "options": list(options), "deadline_s": deadline_s},
            within_s=2 * deadline_s + _START_S,
        )
        if "problem" in answer:
            raise LabError(answer["problem"])
        return OracleAnswer(
            rejected=answer["rejected"],
            log_lines=tuple(answer["log"]),
            tables={
                GUID(f"0x{int(guid):016x}"): {int(index): entry for index, entry in table.items()}
                for guid, table in answer["tables"].items()
            },
            died=answer["died"],
            died_leaving=answer["died_leaving"],
        )

    def _ask(self, question: dict[str, Any], *, within_s: float) -> dict[str, Any]:
        worker = self._worker
        if worker is None or worker.stdin is None or worker.stdout is None:
            raise LabError("The oracle is closed.")
        try:
            worker.stdin.write(json.dumps(question).encode() + b"\n")
            worker.stdin.flush()
        except BrokenPipeError:
            raise LabError("The oracle's worker is gone.") from None
        descriptor = worker.stdout.fileno()
        heard = b""
        deadline = time.monotonic() + within_s
        while not heard.endswith(b"\n"):
            if not select.select([descriptor], [], [], max(deadline - time.monotonic(), 0))[0]:
                self.close()
                raise LabError(f"The oracle did not answer within {within_s:.0f} s.")
            said = os.read(descriptor, 1 << 16)
            if not said:
                self.close()
                raise LabError("The oracle's worker is gone.")
            heard += said
        answer: dict[str, Any] = json.loads(heard)
        return answer
