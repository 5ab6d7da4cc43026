"""LocalShell: the wrapper on this machine, without SSH: for tests, and for a manager host that runs FabricUI itself."""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from remote.errors import CallTimedOut, Unreachable
from remote.shell import Reply, command_line


class LocalShell:
    """Starts `wrapper` with `conf_dir`, the folder of its host.env, as sshd would."""

    def __init__(self, wrapper: Path, conf_dir: Path) -> None:
        self._wrapper = wrapper
        self._conf_dir = conf_dir

    def call(self, verb: str, arguments: Sequence[str] = (), stdin: bytes = b"", *, timeout_s: float) -> Reply:
        """Run one verb. Raises Unreachable when the wrapper cannot be started, CallTimedOut after `timeout_s`."""
        # sshd passes no environment either.
        environment = {"PATH": "/usr/bin:/bin", "SSH_ORIGINAL_COMMAND": command_line(verb, arguments)}
        try:
            process = subprocess.Popen(
                [self._wrapper, self._conf_dir],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise Unreachable(f"{self._wrapper} cannot be started: {error.strerror}.") from error
        with process:
            try:
                stdout, stderr = process.communicate(stdin, timeout=timeout_s)
            except subprocess.TimeoutExpired:
                # `timeout` leads a process group of its own, and passes TERM on to it.
                os.kill(process.pid, signal.SIGTERM)
                raise CallTimedOut(f"{verb} on this machine was not over after {timeout_s:g} s.") from None
        return Reply(process.returncode, stdout, stderr)

    def close(self) -> None:
        """Nothing is kept open between calls."""
