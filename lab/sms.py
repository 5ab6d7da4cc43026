"""Starting and ending the SMs of a lab so that no OpenSM waits for an answer that never comes.

On real hardware a request without an answer times out. On ibsim it never does, and an OpenSM that waits for one ends no
sweep any more; `lab.transactions` times it out, but not in large labs. Three such requests are known, all between two
SMs, all seen on OpenSM 3.3.23 with ibsim 0.10:

- an SM that starts sets IsSM before it knows its own port, and drops SMInfo requests until then;
- an SM that ends drops what it was just asked;
- an SM that polls a master of lower rank sends it trap 144 and waits for TrapRepress, which ibsim drops.

So SMs are started and ended one at a time while the others are held still (SIGSTOP), and an SM that is to become the
master meets the others only when it is the master and they stand by.
"""

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lab.errors import LabError
from lab.layout import python_environment
from lab.namespaces import MountNamespace
from lab.sockets import read_text
from subnet.guid import GUID

if TYPE_CHECKING:
    from lab.supervisor import Supervisor

ANSWER_S = 30
# More than one polling period (0.5 s), less than the two that a standby allows.
HEAD_START_S = 0.8


@dataclass(frozen=True, slots=True)
class SubnetManager:
    """One OpenSM: the child's name, where it sits, how it ranks, and how it is started."""

    name: str
    node_id: str
    port_guid: str
    priority: int
    command: list[str]
    environment: dict[str, str]
    log: Path
    output: Path

    @property
    def rank(self) -> tuple[int, int]:
        """The higher one becomes master: priority, then the lower port GUID (`osm_sm_is_greater_than`)."""
        return self.priority, -GUID(self.port_guid).number


class SubnetManagers:
    """The SMs that one supervisor runs."""

    def __init__(self, lab: "Supervisor") -> None:
        self._lab = lab
        self._known: dict[str, SubnetManager] = {}

    def start(self, sm: SubnetManager, *, namespace: MountNamespace | None = None) -> None:
        """Start an SM; when it ranks above all others it is the master when this returns."""
        self._known[sm.name] = sm
        others = [other for other in self._running() if other.name != sm.name]
        if not others or any(sm.rank < other.rank for other in others):
            with self._held(others):
                self._launch(sm, namespace)
                if others:
                    self._wait_for(sm, None)
            return
        awake = [other for other in others if not self._is_stopped(other)]
        with self._hidden(others):
            with self._held(others):
                ended_before = read_text(sm.log).count("SUBNET UP")
                self._launch(sm, namespace)
                self._wait_for(sm, "MASTER")
                what = f"the first sweep of {sm.name}"
                self._lab.until(lambda: read_text(sm.log).count("SUBNET UP") > ended_before, what)
            for other in awake:
                # They find the new master by their own sweeps and polls, and it does not ask them before.
                self._wait_for(other, "STANDBY")

    def end(self, name: str, *, kill: bool) -> None:
        """End an SM by SIGTERM or SIGKILL; of two that could succeed it, the higher one does."""
        sm = self._known[name]
        others = sorted((other for other in self._running() if other.name != name), key=lambda other: other.rank)
        was_master = bool(others) and all(sm.rank > other.rank for other in others)
        late = others[:-1] if was_master else []
        with self._held(late), self._held([other for other in others if other not in late]):
            identity = self._lab.children.identity(name)
            if others and identity is not None:
                # It answers what it was asked before it answers us, and then nobody is left who waits for it.
                identity.send(signal.SIGCONT)
                with contextlib.suppress(LabError):
                    self._wait_for(sm, None)
            self._lab.children.stop(name, pump=self._lab.quietly, kill=kill)
            self._lab.orders.reap()
        if late:
            self._give_a_head_start(late)

    def _give_a_head_start(self, late: list[SubnetManager]) -> None:
        with self._held(late):
            until = time.monotonic() + HEAD_START_S
            while time.monotonic() < until:
                self._lab.quietly()

    def _running(self) -> list[SubnetManager]:
        names = self._lab.children.identities()
        return [sm for name, sm in self._known.items() if name in names]

    def _launch(self, sm: SubnetManager, namespace: MountNamespace | None) -> None:
        self._lab.children.start(
            sm.name, sm.command, cwd=self._lab.layout.run, output=sm.output, env=sm.environment, namespace=namespace
        )

    def _is_stopped(self, sm: SubnetManager) -> bool:
        identity = self._lab.children.identity(sm.name)
        return identity is None or identity.is_stopped

    @contextlib.contextmanager
    def _held(self, sms: list[SubnetManager]) -> Iterator[None]:
        """Stop those of `sms` that are not stopped already, and let the same ones go on afterwards."""
        identities = [self._lab.children.identity(sm.name) for sm in sms if not self._is_stopped(sm)]
        held = [identity for identity in identities if identity is not None]
        for identity in held:
            identity.send(signal.SIGSTOP)
        try:
            yield
        finally:
            for identity in held:
                identity.send(signal.SIGCONT)

    @contextlib.contextmanager
    def _hidden(self, sms: list[SubnetManager]) -> Iterator[None]:
        """Hide `sms`, which are held, from discovery: a new SM does not ask them and becomes master at once."""
        simulator = self._lab.simulator
        if simulator is None:
            raise LabError("The simulator is gone.")
        for sm in sms:
            simulator.set_is_sm(sm.node_id, False)
        try:
            yield
        finally:
            for sm in sms:
                simulator.set_is_sm(sm.node_id, True)

    def _wait_for(self, sm: SubnetManager, state: str | None) -> None:
        """Return once the SM answers SMInfo at its own port, and is in `state` if one is given."""
        done = subprocess.run(
            [sys.executable, "-m", "lab.smp"],
            cwd=self._lab.layout.run,
            env={
                **python_environment(self._lab.state.lab),
                **sm.environment,
                "IBSIM_SOCKNAME": self._lab.state.socket_name,
            },
            input=json.dumps({"own_sm": ANSWER_S, "state": state}),
            capture_output=True,
            text=True,
            timeout=ANSWER_S + 20,
            check=False,
        )
        if done.stdout.strip() != "true":
            raise LabError(
                f"{sm.name} did not answer within {ANSWER_S} s. {done.stdout}{done.stderr[-300:]} Its log: {sm.log}"
            )
