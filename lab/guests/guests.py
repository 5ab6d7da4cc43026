"""Guests: two emulated servers with Soft-RoCE as Python sees them. Bring them up, reach them, take them down."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

from lab.apart import start_apart
from lab.errors import LabError
from lab.guests.machine import DEVICE, PROBE_ACCOUNT, GuestRecord, new_record
from lab.layout import program, wait_until
from lab.managers import make_key
from lab.processes import ProcessID, kill_all, marked
from remote.probe_host import ProbeHost
from remote.ssh import SSHShell

HERE_FROM_GUESTS = "10.0.2.2"  # this machine's loopback in QEMU's user networking
NAMES = ("rdma-prefill", "rdma-decode")
# Emulated machines on a shared one: 6 s when it is idle, more than a minute when it is not.
UP_WITHIN_S = 180.0
_END = "__END_OF_FILE__"
_OWN_FILES = ("keys", "supervisor.log", "data.sock", "guests.json")


@dataclass(slots=True)
class GuestsState:
    """Everything another process needs to know; the supervisor is its only writer once it runs."""

    mark: str
    directory: str
    made_directory: bool
    guests: list[GuestRecord]
    owner: dict[str, int] | None = None
    supervisor: dict[str, int] | None = None
    phase: str = "starting"
    problem: str = ""
    kernel: str = ""
    processes: dict[str, dict[str, int]] = field(default_factory=dict)


def state_file(directory: Path) -> Path:
    """The JSON state file; its presence makes a directory the guests'."""
    return directory / "guests.json"


def probe_key_file(directory: Path) -> Path:
    """Where the private key of the probe account lies, before the guests are started too."""
    return directory / "keys" / "probe_key"


def read_state(directory: Path) -> GuestsState:
    """The recorded state; raise LabError when there is none."""
    try:
        value = json.loads(state_file(directory).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LabError(f"There are no RDMA guests in {directory}. Start them with “./run lab up --rdma”.") from None
    records = [GuestRecord(**record) for record in value.pop("guests")]
    return GuestsState(**value, guests=records)


def write_state(state: GuestsState) -> None:
    """Replace the state file in one step."""
    file = state_file(Path(state.directory))
    beside = file.with_suffix(f".{os.getpid()}")
    beside.write_text(json.dumps(asdict(state), indent=1), encoding="utf-8")
    beside.rename(file)


@dataclass(frozen=True, slots=True)
class Guest:
    """One guest as the product would register it, with the digests that `install-probe` printed there."""

    name: str
    address: str
    ssh_port: int
    user: str
    host_key: str
    device: str
    node_guid: str
    data_address: str
    wrapper_digest: str
    program_digest: str
    directory: Path

    @property
    def console(self) -> str:
        """What the guest said so far."""
        return (self.directory / f"{self.name}.console").read_text(encoding="utf-8", errors="replace")

    @property
    def probe_key(self) -> Path:
        """The private key of the probe account, whose only command is the wrapper."""
        return probe_key_file(self.directory)

    def probe_host(self) -> ProbeHost:
        """The guest as a probe session takes it; the caller closes it."""
        shell = SSHShell(
            address=self.address, port=self.ssh_port, user=self.user, key_file=self.probe_key, host_key=self.host_key
        )
        return ProbeHost(self.name, shell, self.wrapper_digest, self.program_digest)

    def admin(self, script: str, *, timeout_s: float = 60.0, check: bool = True) -> str:
        """What a shell script prints when root runs it in the guest: how the lab breaks things there.

        Raises LabError when it fails (unless `check` is false) or is not over in time.
        """
        try:
            done = subprocess.run(
                self.admin_command(), cwd=self.directory, input=script, capture_output=True, text=True,
                timeout=timeout_s, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise LabError(f"A script in {self.name} was not over after {timeout_s:.0f} s: {script[:200]}") from None
        if check and done.returncode != 0:
            raise LabError(f"A script in {self.name} failed: {(done.stderr or done.stdout).strip()[-500:]}")
        return done.stdout

    def admin_command(self) -> list[str]:
        """The SSH command that runs the script on its stdin as root in the guest, from the guests' directory."""
        known = self.directory / "keys" / f"known_hosts-{self.name}"
        known.write_text(f"[{self.address}]:{self.ssh_port} {self.host_key}\n", encoding="ascii")
        options = {
            "UserKnownHostsFile": str(known), "StrictHostKeyChecking": "yes", "IdentitiesOnly": "yes",
            "BatchMode": "yes", "ConnectTimeout": "30", "LogLevel": "ERROR",
            # An emulated processor needs a second for a handshake: one connection carries what follows soon.
            "ControlMaster": "auto", "ControlPath": _connection(self.name), "ControlPersist": "60",
        }  # fmt: skip
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        key = str(self.directory / "keys" / "admin_key")
        return [program("ssh"), "-F", "none", "-i", key, *words, "-p", str(self.ssh_port), f"root@{self.address}"]

    def run_agent(
        self, *arguments: str, timeout_s: float = 60.0, files: Mapping[str, str] = MappingProxyType({})
    ) -> str:
        """What the registration agent prints when it runs in the guest; this machine is 10.0.2.2 from there.

        `files` are written into the guest's /run first, for root only: name → text.
        """
        script = "umask 077\n"
        script += "".join(f"cat >/run/{name} <<'{_END}'\n{text}\n{_END}\n" for name, text in files.items())
        words = " ".join(f"'{word}'" for word in arguments)
        return self.admin(f"{script}exec /usr/bin/python3 /opt/payload/agent.py {words}\n", timeout_s=timeout_s)


class Guests:
    """Two guests in `directory`; made by `up` or `attach`, ended by `down` or by leaving the `with` block."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._state = read_state(directory)

    @classmethod
    def up(
        cls,
        directory: Path | str | None = None,
        *,
        timeout_s: float = UP_WITHIN_S,
        owned: bool = False,
        mark: str | None = None,
    ) -> Self:
        """Start both guests and return once both can be reached and have their RDMA device.

        `directory` None makes a temporary one. With `owned` they end by themselves when the calling process is gone;
        `mark` ties them to a lab, whose `down` then ends them. Raises LabError with the cause after clearing away.
        """
        made = directory is None or not Path(directory).exists()
        place = Path(tempfile.mkdtemp(prefix="fabricui-guests-")) if directory is None else Path(directory).absolute()
        if state_file(place).exists():
            raise LabError(f"There are RDMA guests in {place} already.")
        place.mkdir(parents=True, exist_ok=True)
        me = ProcessID.of(os.getpid()) if owned else None
        state = GuestsState(
            mark=mark or secrets.token_hex(6),
            directory=str(place),
            made_directory=made,
            guests=[],
            owner=me.to_json() if me else None,
        )
        try:
            write_state(state)
            _make_keys(state, place)
            write_state(state)
            start_apart(
                "lab.guests.supervisor", place, mark=state.mark, log=place / "supervisor.log", cwd=place,
                has_begun=lambda: read_state(place).supervisor is not None,
            )  # fmt: skip
            _wait_until_up(place, timeout_s)
            return cls(place)
        except BaseException:
            down(place)
            raise

    @classmethod
    def attach(cls, directory: Path | str) -> Self:
        """The guests that run in `directory`; raise LabError when none do."""
        guests = cls(Path(directory).absolute())
        if not guests.is_running:
            raise LabError(f"The RDMA guests in {directory} do not run: {guests._state.problem or 'they were ended'}.")
        return guests

    @property
    def is_running(self) -> bool:
        """Whether both are up, as of now."""
        state = read_state(self.directory)
        recorded = state.supervisor
        return state.phase == "up" and recorded is not None and ProcessID.from_json(recorded).is_alive

    @property
    def guests(self) -> tuple[Guest, Guest]:
        """Both guests: the one meant to send (prefill), and the one meant to receive (decode)."""
        first, second = (
            Guest(
                name=record.name,
                address=record.address,
                ssh_port=record.ssh_port,
                user=PROBE_ACCOUNT,
                host_key=record.host_key,
                device=DEVICE,
                node_guid=record.node_guid,
                data_address=record.data_address,
                wrapper_digest=record.wrapper_digest,
                program_digest=record.program_digest,
                directory=self.directory,
            )
            for record in self._state.guests
        )
        return first, second

    @property
    def kernel(self) -> str:
        """Name and version of the guests' kernel package."""
        return self._state.kernel

    def processes(self) -> dict[str, ProcessID]:
        """The QEMU processes by guest name."""
        return {name: ProcessID.from_json(value) for name, value in read_state(self.directory).processes.items()}

    def down(self) -> None:
        """End both and leave no process and no file of them."""
        down(self.directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()


def _connection(name: str) -> str:
    """Where the lab's SSH connection to a guest is met by the next command, from the guests' directory.

    Relative, because a socket's path must be short.
    """
    return f"keys/ssh-{name}"


def _hang_up(state: GuestsState) -> None:
    """End the connections that scripts came through; the guests end theirs only when QEMU does."""
    for record in state.guests:
        meeting = _connection(record.name)
        if Path(state.directory, meeting).exists():
            words = [program("ssh"), "-F", "none", "-o", f"ControlPath={meeting}", "-O", "exit", record.name]
            subprocess.run(words, cwd=state.directory, capture_output=True, timeout=15, check=False)


def _make_keys(state: GuestsState, place: Path) -> None:
    keys = place / "keys"
    keys.mkdir(mode=0o700)
    make_key(keys / "probe_key", "FabricUI probes of a lab")
    make_key(keys / "admin_key", "FabricUI lab")
    # A random loopback address a lab, so that labs beside each other never meet.
    network = f"127.{10 + secrets.randbelow(240)}.{secrets.randbelow(256)}"
    for number, name in enumerate(NAMES, start=1):
        host_key = make_key(keys / f"host_key-{number}", name)
        state.guests.append(new_record(number, name=name, network=network, host_key=host_key))


def _wait_until_up(place: Path, timeout_s: float) -> None:
    def settled() -> GuestsState | None:
        state = read_state(place)
        gone = state.supervisor is not None and not ProcessID.from_json(state.supervisor).is_alive
        return state if state.phase != "starting" or gone else None

    state: GuestsState = wait_until(settled, timeout_s=timeout_s, what="the RDMA guests to come up", pause_s=0.1)
    if state.phase != "up":
        said = (place / "supervisor.log").read_text(encoding="utf-8", errors="replace").strip()[-500:]
        raise LabError(f"The RDMA guests did not come up: {state.problem or said or 'their supervisor died'}")


def down(directory: Path) -> None:
    """End the guests in `directory`, running or killed, and remove their files; nothing happens when there are none."""
    if not state_file(directory).exists():
        return
    state = read_state(directory)
    _hang_up(state)
    if state.supervisor is not None:
        supervisor = ProcessID.from_json(state.supervisor)
        supervisor.send(signal.SIGTERM)
        deadline = time.monotonic() + 15
        while supervisor.is_alive and time.monotonic() < deadline:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(supervisor.pid, os.WNOHANG)
            time.sleep(0.02)
    recorded = [ProcessID.from_json(value) for value in [state.supervisor, *state.processes.values()] if value]

    def remaining() -> set[int]:
        own = {identity.pid for identity in recorded if identity.is_alive}
        return own | {pid for pid in marked(state.mark) if _is_of_guests(pid)}

    if not kill_all(remaining, timeout_s=10.0):
        raise LabError(f"Some processes of the RDMA guests could not be ended: {sorted(remaining())}.")
    remove_files(state)


def _is_of_guests(pid: int) -> bool:
    """Whether a marked process is one of the guests', and not another one of the lab they belong to."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b"lab.guests.supervisor" in words or words[0].endswith(b"qemu-system-x86_64")
    return False


def remove_files(state: GuestsState) -> None:
    """Remove what the guests put into their directory, and the directory if it was made for them."""
    place = Path(state.directory)
    own = [name for record in state.guests for name in (f"initramfs-{record.number}", f"{record.name}.console")]
    own += [f"{record.name}.qemu" for record in state.guests]
    for name in (*own, *_OWN_FILES):
        path: Any = place / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    if state.made_directory:
        with contextlib.suppress(OSError):
            place.rmdir()
