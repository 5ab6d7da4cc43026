"""Where everything of a lab lies, and its state file.

The supervisor is the only writer of the state while it lives; everybody else reads it.
"""

import json
import os
import shutil
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.fabric import Fabric, generate
from lab.processes import ProcessID

DEFAULT_DIRECTORY = Path(".fabricui/lab")
SUPERVISOR = "supervisor"
MOST_WATCHED_PORTS = 512
_REPOSITORY = Path(__file__).resolve().parent.parent


def umad_library() -> Path:
    """The simulator's replacement for libibumad, in the multiarch folder; raise LabError when it is missing."""
    for found in sorted(Path("/usr/lib").glob("*/umad2sim/libumad2sim.so")) + sorted(
        Path("/usr/lib64").glob("umad2sim/libumad2sim.so")
    ):
        return found
    raise LabError("libumad2sim.so is missing. Install the package libumad2sim0 (it comes with ibsim-utils).")


def program(name: str) -> str:
    """The absolute path of a system program, also from sbin; raise LabError with its package when it is missing."""
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"
    found = shutil.which(name, path=search)
    if found is None:
        package = {"ibsim": "ibsim-utils", "opensm": "opensm", "sshd": "openssh-server"}.get(name, "infiniband-diags")
        raise LabError(f"The program {name} is missing. Install the package {package}.")
    return found


@dataclass(slots=True)
class ManagerRecord:
    """What the state file says about one manager host; `host_key` is the key it was enrolled with."""

    name: str
    address: str
    ssh_port: int
    user: str
    host_key: str
    node_id: str
    port_guid: str
    priority: int
    directory: str
    wrapper_digest: str = ""
    reader_digest: str = ""
    partitions: str = ""
    disk: str = "whole"
    ssh_delay_ms: int = 0


@dataclass(slots=True)
class State:
    """Everything that another process needs to know about a lab."""

    lab: str
    directory: str
    made_directory: bool
    sizes: dict[str, Any]
    phase: str = "starting"
    problem: str = ""
    processes: dict[str, dict[str, int]] = field(default_factory=dict)
    managers: list[ManagerRecord] = field(default_factory=list)
    cut_links: list[list[Any]] = field(default_factory=list)
    owner: dict[str, int] | None = None

    @property
    def socket_name(self) -> str:
        """The simulator's name; its sockets are abstract and have no permissions, so the name is random."""
        return f"fabricui-lab-{self.lab}"

    @property
    def are_transactions_watched(self) -> bool:
        """Whether `lab.transactions` sits between the SMs and the simulator.

        Not in a large lab: each of a sweep's SMPs costs there as much again, and what is measured would be that.
        """
        return self.fabric().end_ports <= MOST_WATCHED_PORTS

    @property
    def sm_socket_name(self) -> str:
        """The simulator's name for SMs; it begins with the simulator's, by which the wrapper knows a lab's own."""
        return f"{self.socket_name}:sm" if self.are_transactions_watched else self.socket_name

    def process(self, name: str) -> ProcessID | None:
        """The recorded process of that name, if it is alive."""
        record = self.processes.get(name)
        identity = None if record is None else ProcessID.from_json(record)
        return identity if identity is not None and identity.is_alive else None

    def manager(self, name: str) -> ManagerRecord:
        """The manager host of that name; raise LabError with the names there are otherwise."""
        for record in self.managers:
            if record.name == name:
                return record
        names = ", ".join(record.name for record in self.managers)
        raise LabError(f"The lab has no manager host “{name}”; it has {names}.")

    def fabric(self) -> Fabric:
        """The fabric that the recorded sizes give."""
        return generate(**self.sizes)


class Layout:
    """The paths below a lab's directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = Path(directory).absolute()

    @property
    def state_file(self) -> Path:
        """The JSON state file; its presence is what makes a directory a lab's."""
        return self.directory / "lab.json"

    @property
    def net_file(self) -> Path:
        """The simulator's topology file."""
        return self.directory / "fabric.net"

    @property
    def control_socket(self) -> Path:
        """The supervisor's control socket."""
        return self.directory / "control.sock"

    @property
    def run(self) -> Path:
        """The working folder of every fabric client, swept of `sys-*`."""
        return self.directory / "run"

    @property
    def logs(self) -> Path:
        """The logs of supervisor and simulator."""
        return self.directory / "log"

    @property
    def keys(self) -> Path:
        """The deploy key pair."""
        return self.directory / "keys"

    @property
    def servers(self) -> Path:
        """The sysfs trees of the servers that booted."""
        return self.directory / "servers"

    @property
    def guests(self) -> Path:
        """The folder of the RDMA guests."""
        return self.directory / "guests"

    @property
    def rogue(self) -> Path:
        """The folder of the rogue SM."""
        return self.directory / "rogue"

    def manager(self, name: str) -> "ManagerLayout":
        """The paths of one manager host."""
        return ManagerLayout(self.directory / "managers" / name)

    def make(self) -> None:
        """Create the folders."""
        for folder in (self.run, self.logs, self.keys, self.servers):
            folder.mkdir(parents=True, exist_ok=True)
        self.keys.chmod(0o700)

    def own(self) -> list[Path]:
        """Everything a lab puts into its directory, the state file last."""
        return [
            self.net_file, self.control_socket, self.run, self.logs, self.keys, self.servers, self.rogue,
            self.guests, self.directory / "managers", self.state_file,
        ]  # fmt: skip

    def read_state(self) -> State:
        """The recorded state; raise LabError when there is no lab here."""
        try:
            value = json.loads(self.state_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise LabError(f"There is no lab in {self.directory}. Start one with “./run lab up”.") from None
        managers = [ManagerRecord(**record) for record in value.pop("managers")]
        return State(**value, managers=managers)

    def write_state(self, state: State) -> None:
        """Replace the state file in one step."""
        beside = self.state_file.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps(asdict(state), indent=1), encoding="utf-8")
        beside.rename(self.state_file)


class ManagerLayout:
    """The paths of one manager host; `etc` is the folder whose disk can be filled."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.etc = directory / "etc"
        self.partitions = self.etc / "partitions.conf"
        self.host = directory / "host"
        self.dump = directory / "dump"
        self.cache = directory / "cache"
        self.log = directory / "log" / "opensm.log"
        self.output = directory / "log" / "opensm.out"
        self.sshd_log = directory / "log" / "sshd.log"
        self.list = self.dump / "opensm-subnet.lst"
        self.conf = directory / "opensm.conf"
        self.module_logging = directory / "per-module-logging.conf"
        self.sshd_config = directory / "sshd_config"
        self.host_key = directory / "ssh_host_ed25519_key"
        self.authorized_keys = directory / "authorized_keys"


def python_environment(lab: str) -> dict[str, str]:
    """The environment of a Python program of the lab: the caller's, the repository on the path, the lab's mark."""
    return {**os.environ, "PYTHONPATH": str(_REPOSITORY), "FABRICUI_LAB": lab, "PYTHONDONTWRITEBYTECODE": "1"}


def repository() -> Path:
    """The root of the source tree."""
    return _REPOSITORY


def wait_until(claim: "Any", *, timeout_s: float, what: str, pause_s: float = 0.05) -> Any:
    """The first true value that `claim()` gives; raise LabError saying `what` was waited for after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = claim()
        if value:
            return value
        if time.monotonic() > deadline:
            raise LabError(f"Waited {timeout_s:.0f} s in vain for {what}.")
        time.sleep(pause_s)
