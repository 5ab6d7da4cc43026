"""Site: a running lab as Python sees it. Bring one up, look at it, take it down."""

import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lab import control
from lab.apart import start_apart
from lab.errors import LabError
from lab.fabric import SALTS, Fabric, generate, net_text
from lab.layout import SUPERVISOR, Layout, State, program, python_environment, umad_library, wait_until
from lab.managers import PRIORITIES, LabManager, first_partitions, lab_manager, make_key, prepare
from lab.processes import ProcessID
from lab.settling import settle
from lab.simulator import client_environment
from subnet.guid import GUID

QUIET_S = 0.3  # the sweeps of the start are over
_LIST_PORT = re.compile(r"PortGUID:([0-9a-f]{16}) .*? LID:([0-9A-F]{4}) PN:")


class Site:
    """A lab in `directory`; made by `Site.up` or `Site.attach`, ended by `down` or by leaving the `with` block."""

    def __init__(self, directory: Path) -> None:
        self._layout = Layout(directory)
        state = self._layout.read_state()
        self.lab = state.lab
        self._socket_name = state.socket_name
        self.fabric: Fabric = state.fabric()

    # Up, attach, down

    @classmethod
    def up(
        cls,
        directory: Path | str | None = None,
        *,
        servers: int = 24,
        hcas: int = 2,
        leaf_width: int | None = None,
        spines: int = 2,
        timeout_s: float = 90.0,
        owned: bool = False,
    ) -> Self:
        """Bring a lab up and return once one SM is master, the other standby and the subnet up.

        `directory` None makes a temporary one. With `owned` the lab ends by itself when the calling process is gone.
        Raises LabError with the cause after clearing away when it does not come up within `timeout_s`.
        """
        salt = secrets.randbelow(SALTS)
        sizes = {"servers": servers, "hcas": hcas, "leaf_width": leaf_width, "spines": spines, "salt": salt}
        fabric = generate(servers=servers, hcas=hcas, leaf_width=leaf_width, spines=spines, salt=salt)
        layout, made = _claim(directory)
        owner = ProcessID.of(os.getpid()) if owned else None
        state = State(
            lab=secrets.token_hex(6),
            directory=str(layout.directory),
            made_directory=made,
            sizes=sizes,
            owner=owner.to_json() if owner else None,
        )
        try:
            # Written first: whatever happens from here on, `down` finds what there is.
            layout.write_state(state)
            _lay_out(layout, state, fabric)
            start_apart(
                "lab.supervisor", layout.directory, mark=state.lab, log=layout.logs / "supervisor.log", cwd=layout.run,
                has_begun=lambda: bool(layout.read_state().processes),
            )  # fmt: skip
            deadline = time.monotonic() + timeout_s
            control.wait_for_phase(layout, timeout_s=timeout_s)
            site = cls(layout.directory)
            site.wait_for_roles(timeout_s=max(5.0, deadline - time.monotonic()))
            settle(site, quiet_s=QUIET_S)
        except BaseException:
            control.down(layout)
            raise
        return site

    @classmethod
    def attach(cls, directory: Path | str) -> Self:
        """The lab that runs in `directory`; raise LabError when none does."""
        site = cls(Path(directory))
        if site.state.process(SUPERVISOR) is None:
            raise LabError(
                f"The lab in {site._layout.directory} does not run. “./run lab down” clears away what is left."
            )
        return site

    @staticmethod
    def remove(directory: Path | str) -> None:
        """Clear away the lab in `directory`, running or killed; nothing happens when there is none."""
        layout = Layout(Path(directory))
        if layout.state_file.exists():
            control.down(layout)

    def down(self, *, keep_files: bool = False) -> None:
        """End the lab and leave no process, socket, mount or file of it; the files stay with `keep_files`."""
        if self._layout.state_file.exists():
            control.down(self._layout, keep_files=keep_files)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    # What there is

    @property
    def directory(self) -> Path:
        """The lab's directory."""
        return self._layout.directory

    @property
    def layout(self) -> Layout:
        """The paths below the lab's directory."""
        return self._layout

    @property
    def state_file(self) -> Path:
        """The JSON state file."""
        return self._layout.state_file

    @property
    def state(self) -> State:
        """The recorded state, read anew."""
        return self._layout.read_state()

    @property
    def manager_key(self) -> Path:
        """The private key that both manager hosts let in, with the wrapper as its only command."""
        return self._layout.keys / "manager_key"

    @property
    def managers(self) -> list[LabManager]:
        """Both manager hosts, the one meant to be master first, with their processes of now."""
        state = self.state
        return [lab_manager(state, record) for record in state.managers]

    def manager(self, name: str) -> LabManager:
        """The manager host of that name; raise LabError otherwise."""
        state = self.state
        return lab_manager(state, state.manager(name))

    def read_file(self, manager: LabManager, name: str = "partitions.conf") -> bytes:
        """A file beside a manager host's partition file as that host sees it, its full or read-only disk included."""
        for process in (manager.sshd, manager.opensm):
            if process is not None and process.is_alive:
                path = manager.partitions_file.with_name(name)
                return Path(f"/proc/{process.pid}/root{path}").read_bytes()
        return manager.partitions_file.with_name(name).read_bytes()

    def order(self, what: str, **arguments: Any) -> Any:
        """Have the supervisor do something (`lab.breaking` names the things)."""
        return control.order(self._layout, what, **arguments)

    # A look at the fabric

    def client_environment(self, node_id: str | None = None) -> dict[str, str]:
        """The environment for fabric programs such as `smpquery`, seated at `node_id` (default: the first manager)."""
        seat = node_id or self.fabric.managers[0].hcas[0].node_id
        return client_environment(lab=self.lab, socket_name=self._socket_name, library=umad_library(), node_id=seat)

    def run_tool(self, name: str, *arguments: str, node_id: str | None = None, timeout_s: float = 60.0) -> str:
        """What a program of infiniband-diags prints on this fabric; raise LabError when it fails."""
        done = subprocess.run(
            [program(name), *arguments],
            cwd=self._layout.run,
            env=self.client_environment(node_id),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode != 0:
            raise LabError(f"{name} {' '.join(arguments)} failed: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def smp(self, request: dict[str, Any], *, timeout_s: float = 60.0) -> Any:
        """The answer of `lab.smp` to one request; raise LabError when it has no seat or no answer."""
        environment = {**python_environment(self.lab), **self.client_environment()}
        done = subprocess.run(
            [sys.executable, "-m", "lab.smp"],
            cwd=self._layout.run,
            env=environment,
            input=json.dumps(request),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if done.returncode != 0:
            raise LabError(f"lab.smp failed: {done.stderr.strip()[-500:]}")
        answer = json.loads(done.stdout)
        if isinstance(answer, dict) and "problem" in answer:
            raise LabError(f"The fabric did not answer: {answer['problem']}.")
        return answer

    def lids(self) -> dict[GUID, int]:
        """LID of each port, from the newest subnet list of the two manager hosts."""
        lists = [manager.list_file for manager in self.managers if manager.list_file.exists()]
        if not lists:
            return {}
        text = max(lists, key=lambda path: path.stat().st_mtime_ns).read_text(encoding="ascii", errors="replace")
        ports: dict[GUID, int] = {}
        for guid, lid in _LIST_PORT.findall(text):
            ports.setdefault(GUID(f"0x{guid}"), int(lid, 16))
        return ports

    def read_ports(self, port_guids: list[GUID] | None = None) -> dict[GUID, dict[str, Any]]:
        """LID, sm_lid, state, phys_state, capacity and P_Keys by index of HCA ports that answer (default: all)."""
        wanted = port_guids if port_guids is not None else [hca.port_guid for hca in self.fabric.hcas()]
        lids = self.lids()
        answers = self.smp({"read": [lids[guid] for guid in wanted if guid in lids]})
        return {GUID(answer["port_guid"]): answer for answer in answers if answer is not None}

    def sms(self) -> dict[GUID, dict[str, Any]]:
        """Every SM on an HCA port: LID, state, priority and activity, by port GUID."""
        lids = self.lids()
        answers = self.smp({"sms": [lids[hca.port_guid] for hca in self.fabric.hcas() if hca.port_guid in lids]})
        return {GUID(answer["port_guid"]): answer for answer in answers if answer is not None}

    def master(self) -> str | None:
        """The host name of the only master SM; None when there is none or more than one."""
        masters = [guid for guid, sm in self.sms().items() if sm["state"] == "MASTER"]
        if len(masters) != 1:
            return None
        boxes = self.fabric.managers + self.fabric.servers
        return next(box.hostname for box in boxes if masters[0] in box.port_guids)

    def wait_for_roles(self, *, timeout_s: float = 30.0) -> str:
        """The host name of the master, once one registered SM is master and the other standby.

        Raises LabError after `timeout_s`. Each look starts a process.
        """

        def settled() -> str | None:
            sms = self.sms()
            states = {box.hostname: sms.get(box.hcas[0].port_guid, {}).get("state") for box in self.fabric.managers}
            masters = [name for name, state in states.items() if state == "MASTER"]
            return masters[0] if sorted(map(str, states.values())) == ["MASTER", "STANDBY"] else None

        return str(wait_until(settled, timeout_s=timeout_s, what="one master and one standby SM"))

    def wait_for_master(self, hostname: str, *, timeout_s: float = 30.0) -> float:
        """The seconds until the SM of `hostname` was the only master."""
        began = time.monotonic()
        what = f"the SM of {hostname} to be the master"
        wait_until(lambda: self.master() == hostname, timeout_s=timeout_s, what=what)
        return time.monotonic() - began

    def counted_hcas(self) -> int:
        """How many HCAs `ibnetdiscover` counts."""
        return sum(line.startswith("Ca\t") for line in self.run_tool("ibnetdiscover").splitlines())


def _claim(directory: Path | str | None) -> tuple[Layout, bool]:
    """An empty directory for the lab, and whether it was made for it."""
    if directory is None:
        return Layout(Path(tempfile.mkdtemp(prefix="fabricui-lab-"))), True
    layout = Layout(Path(directory))
    if layout.state_file.exists():
        raise LabError(
            f"There is a lab in {layout.directory} already. “./run lab status” shows it, “./run lab down” ends it."
        )
    made = not layout.directory.exists()
    layout.directory.mkdir(parents=True, exist_ok=True)
    return layout, made


def _lay_out(layout: Layout, state: State, fabric: Fabric) -> None:
    """Write every file that the supervisor needs."""
    layout.make()
    layout.net_file.write_text(net_text(fabric), encoding="ascii")
    make_key(layout.keys / "manager_key", f"FabricUI lab {state.lab}")
    partitions = first_partitions(fabric.managers)
    # Random loopback addresses, so that labs beside each other never meet.
    network = f"127.{10 + secrets.randbelow(240)}.{secrets.randbelow(256)}"
    for number, (box, priority) in enumerate(zip(fabric.managers, PRIORITIES, strict=True), start=1):
        address = f"{network}.{10 + number}"
        state.managers.append(prepare(layout, state, box, address=address, priority=priority, partitions=partitions))
    layout.write_state(state)
