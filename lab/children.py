"""The supervisor's children: started so that they die with it, waited for so that none becomes a zombie."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from lab.namespaces import MountNamespace
from lab.processes import ProcessID, die_with_parent


class Children:
    """Named child processes and the one place where anything is waited for."""

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.ended: dict[str, int] = {}

    def start(
        self,
        name: str,
        command: list[str],
        *,
        cwd: Path,
        output: Path,
        env: Mapping[str, str],
        namespace: MountNamespace | None = None,
        console: bool = False,
    ) -> "subprocess.Popen[bytes]":
        """Start `command` as child `name`, in `namespace` if given; its stderr (and stdout) go to `output`.

        With `console` stdin and stdout are pipes to the supervisor.
        """
        parent = os.getpid()

        def before_exec() -> None:
            if namespace is not None:
                namespace.enter()
                # Entering puts a process into the root folder, and a fabric client writes where it stands.
                os.chdir(cwd)
            # After the namespace: changing credentials clears the parent-death signal.
            die_with_parent(parent)

        with output.open("ab") as log:
            pipes: tuple[int | IO[bytes], int | IO[bytes]]
            pipes = (subprocess.PIPE, subprocess.PIPE) if console else (subprocess.DEVNULL, log)
            child = subprocess.Popen(
                command,
                cwd=cwd,
                env=dict(env),
                stdin=pipes[0],
                stdout=pipes[1],
                stderr=log,
                start_new_session=True,
                preexec_fn=before_exec,  # the supervisor has one thread
            )
        self._running[name] = child
        self.ended.pop(name, None)
        return child

    def wait_for_ended(self) -> list[str]:
        """Collect every child that ended, adopted orphans included; return the names of the known ones."""
        gone = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            for name, child in list(self._running.items()):
                if child.pid == pid:
                    child.returncode = self.ended[name] = os.waitstatus_to_exitcode(status)
                    for pipe in (child.stdin, child.stdout):
                        if pipe is not None:
                            pipe.close()
                    del self._running[name]
                    gone.append(name)
        return gone

    def identity(self, name: str) -> ProcessID | None:
        """The identity of the running child `name`."""
        child = self._running.get(name)
        return None if child is None else ProcessID.of(child.pid)

    def identities(self) -> dict[str, ProcessID]:
        """All running children by name."""
        found = {name: ProcessID.of(child.pid) for name, child in self._running.items()}
        return {name: identity for name, identity in found.items() if identity is not None}

    def stop(self, name: str, *, pump: Callable[[], None], timeout_s: float = 5.0, kill: bool = False) -> None:
        """End child `name` by SIGTERM, or SIGKILL with `kill` or after `timeout_s`; calls `pump` while waiting."""
        child = self._running.get(name)
        if child is None:
            return
        identity = ProcessID.of(child.pid)
        if identity is not None:
            identity.send(signal.SIGKILL if kill else signal.SIGTERM)
            identity.send(signal.SIGCONT)
        deadline = time.monotonic() + timeout_s
        while name in self._running:
            if time.monotonic() > deadline and identity is not None:
                identity.send(signal.SIGKILL)
            pump()
