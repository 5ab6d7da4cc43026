"""ManagerHost: what can be asked of a machine that runs a subnet manager. One method a verb, values in and out.

HostVerbs is what a rollout works with. The verbs themselves are served by `remote/host/fabricui-host`.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from subnet.guid import GUID

Topology = Literal["list", "discovery"]
Placed = Literal["PLACED", "ALREADY"]


@dataclass(frozen=True, slots=True)
class OpenSMProcess:
    """The OpenSM process bound to the registered port; `started` is field 22 of /proc/PID/stat (clock ticks).

    `partition_file` and `config_file` are what this process really uses, "" when that is not known.
    """

    pid: int
    started: int
    port_guid: str
    partition_file: str
    config_file: str
    cwd: str


@dataclass(frozen=True, slots=True)
class Identity:
    """What stands on the host. `problems` are sentences for a person; any of them forbids placing a file.

    `partition_file`, `list_file` and `log_file` are the registered paths (host.env). `sharing` names other OpenSM
    processes on this host that share the partition file, the dump or the cache folder.
    """

    wrapper_digest: str
    reader_digest: str
    opensm_version: str
    process: OpenSMProcess | None
    partition_file: str
    list_file: str
    log_file: str
    sharing: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReloadMark:
    """What was true just before the signal; all of it is the manager host's own (ground truth: read-back, 1).

    `list_mtime_ns` is 0 while OpenSM has written no list; `activity` is -1 when the SM did not answer.
    """

    pid: int
    started: int
    list_mtime_ns: int
    activity: int
    log_offset: int
    log_inode: int

    def to_json(self) -> dict[str, int]:
        """This mark as plain numbers for a JSON column."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "ReloadMark":
        """The mark that `to_json` wrote."""
        return cls(**{name: int(value[name]) for name in cls.__dataclass_fields__})


@dataclass(frozen=True, slots=True)
class SMState:
    """What the SM of this host says of itself, and which SM its port follows. `state` as sminfo prints it.

    `master_guid` is "" and `master_lid` 0 while the port follows nobody.
    """

    port_guid: GUID
    lid: int
    state: str
    priority: int
    activity: int
    master_guid: str
    master_lid: int


@dataclass(frozen=True, slots=True)
class Settled:
    """The barrier was passed: the sweep that followed the mark is over and no other one runs."""

    list_mtime_ns: int
    activity: int
    waited_s: float


class HostVerbs(Protocol):
    """What a rollout, an observation or a check may ask of one manager host. Every method may raise RemoteError."""

    @property
    def name(self) -> str:
        """The manager host's name."""

    def identify(self) -> Identity:
        """Say what is installed and running. Raises WrapperMismatch when a digest is not the pinned one."""

    def read(self) -> bytes:
        """The partition file as it lies on the host. Raises FileMissing, FileUnreadable."""

    def stage(self, data: bytes, *, digest: str) -> None:
        """Put `data` beside the partition file, complete and on disk; `digest` is its SHA-256.

        Raises DigestMismatch, FileNotWritable.
        """

    def place(self, *, digest: str, generation: int) -> Placed:
        """Make the staged file with this digest the partition file, by rename. This is the commit.

        "ALREADY" when this generation placed these bytes before. Raises StaleGeneration when the host has seen a newer
        generation, FileMissing when nothing with this digest is staged, HostBusy, FileNotWritable.
        """

    def reload(self) -> ReloadMark:
        """Make the bound OpenSM re-read its files (SIGHUP), and return what was true just before.

        Raises OpenSMNotRunning, OpenSMDiffers.
        """

    def sm_state(self) -> SMState:
        """Ask the local SM who it is. Raises OpenSMNotRunning when no SM answers on the port, ReaderFailed."""

    def barrier(self, mark: ReloadMark, *, timeout_s: float) -> Settled:
        """Return once the sweep after `mark` is over. Raises BarrierTimedOut, NotMaster, OpenSMDiffers."""

    def read_tables(self, *, topology: Topology, smps_per_s: int = 0, timeout_s: float) -> bytes:
        """The P_Key tables of the whole fabric, as the JSON lines that `subnet.observed.parse_reading` takes.

        `smps_per_s` 0 means unpaced. Raises TablesMoved when another sweep ran meanwhile (topology "list"),
        FileUnreadable when the list does not settle, ReaderFailed.
        """

    def log_since(self, mark: ReloadMark) -> bytes:
        """What OpenSM logged after `mark`, across one rotation. Raises FileMissing, FileUnreadable."""

    def close(self) -> None:
        """Let go of the connection."""
