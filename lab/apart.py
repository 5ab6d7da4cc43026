"""Starting a supervisor in a session of its own, so that no signal of the launcher's terminal reaches it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from lab.errors import LabError
from lab.layout import python_environment, wait_until


def start_apart(
    module: str, directory: Path, *, mark: str, log: Path, cwd: Path, has_begun: Callable[[], bool]
) -> None:
    """Run `python -m module directory` and return once `has_begun`; it outlives the caller on purpose.

    Its output is appended to `log`. Raises LabError, with the end of the log, when it ends before it has begun.
    """
    with log.open("ab") as output:
        started = subprocess.Popen(
            [sys.executable, "-m", module, str(directory)],
            cwd=cwd,
            env=python_environment(mark),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    wait_until(lambda: has_begun() or started.poll() is not None, timeout_s=30.0, what=f"{module} to start")
    if not has_begun():
        said = log.read_text(encoding="utf-8", errors="replace")
        raise LabError(f"{module} ended at once: {said.strip()[-500:]}")
    started.returncode = 0  # whoever takes it down waits for it
