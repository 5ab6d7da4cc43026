"""ManagerHost: what can be asked of a machine that runs a subnet manager. One method a verb, values in and out.

HostVerbs is what a rollout works with. The verbs themselves are served by `remote/host/fabricui-host`.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from remote.errors import (
    BarrierTimedOut,
    CallTimedOut,
    DigestMismatch,
    FileMissing,
    FileNotWritable,
    FileUnreadable,
    HostBusy,
    NotMaster,
    OpenSMDiffers,
    OpenSMNotRunning,
    ReaderFailed,
    RemoteError,
    StaleGeneration,
    TablesMoved,
    VerbFailed,
    VerbRefused,
    WrapperMismatch,
)
from remote.path_record import MOST_PAIRS, PathAnswers, parse_answer
from remote.shell import Shell
from remote.watch_verbs import Watched, WatchVerbs
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
    processes on this host that share the partition file, the dump or the cache folder. `generation` is the newest
    fencing generation that has placed a file here, 0 when none has.
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
    options_digest: str = ""  # of the options that OpenSM was told, priorities left out; "" while none runs
    generation: int = 0


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


class HostVerbs(Watched, Protocol):
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


# What each verb may take on the host, in seconds, with room for the way there; the host bounds the verb itself.
_TIMES = {
    "identify": 35.0,
    "read": 35.0,
    "stage": 95.0,
    "place": 50.0,
    "reload": 35.0,
    "sm_state": 35.0,
    "log_since": 35.0,
    "options": 35.0,
}
_WAY_S = 15.0

# The wrapper's exit statuses (head of remote/host/fabricui-host).
_FAILURES: dict[int, type[VerbFailed]] = {
    64: VerbRefused,
    65: DigestMismatch,
    66: FileMissing,
    67: FileUnreadable,
    73: FileNotWritable,
    75: HostBusy,
    80: StaleGeneration,
    81: OpenSMNotRunning,
    82: OpenSMDiffers,
    83: BarrierTimedOut,
    84: ReaderFailed,
    85: TablesMoved,
    86: NotMaster,
}
_OUT_OF_TIME = {124, 137}  # `timeout` sent TERM, or had to send KILL
_SENTENCE = re.compile(r"^fabricui-(?:host|tables): (.+)$", re.MULTILINE)


class ManagerHost(WatchVerbs):
    """One manager host through a shell. The first call checks the pinned digests, whatever it asks for.

    `wrapper_digest` and `reader_digest` are the SHA-256 values that `install` printed at enrolment.
    """

    def __init__(self, name: str, shell: Shell, wrapper_digest: str, reader_digest: str) -> None:
        self.name = name
        self._shell = shell
        self._pinned = (wrapper_digest, reader_digest)
        self._is_checked = False

    def identify(self) -> Identity:
        """See HostVerbs."""
        values = self._values(self._call("identify"))
        found = (values.first("wrapper_digest"), values.first("reader_digest"))
        if found != self._pinned:
            which = "wrapper" if found[0] != self._pinned[0] else "table reader"
            raise WrapperMismatch(
                f"Manager host {self.name} has another {which} than the one pinned at enrolment "
                f"(SHA-256 {found[0 if which == 'wrapper' else 1][:16]}…, pinned "
                f"{self._pinned[0 if which == 'wrapper' else 1][:16]}…). "
                "Run install there again, compare what it prints, and pin it (manage.py repin_manager_host).",
                host=self.name,
            )
        self._is_checked = True
        process = None
        if values.has("pid"):
            process = OpenSMProcess(
                pid=values.number("pid"),
                started=values.number("started"),
                port_guid=values.first("process_port_guid"),
                partition_file=values.first("process_partition_file"),
                config_file=values.first("process_config_file"),
                cwd=values.first("process_cwd"),
            )
        sharing = values.all("sharing")
        return Identity(
            wrapper_digest=found[0],
            reader_digest=found[1],
            opensm_version=values.first("opensm_version"),
            process=process,
            partition_file=values.first("partition_file"),
            list_file=values.first("list_file"),
            log_file=values.first("log_file"),
            sharing=sharing,
            problems=tuple(f"Manager host {self.name}: {text}" for text in values.all("problem") + sharing),
            options_digest="".join(values.all("options_digest")[:1]),
            generation=values.number("generation"),
        )

    def read(self) -> bytes:
        """See HostVerbs."""
        return self._checked("read")

    def stage(self, data: bytes, *, digest: str) -> None:
        """See HostVerbs."""
        self._checked("stage", digest, str(len(data)), stdin=data)

    def place(self, *, digest: str, generation: int) -> Placed:
        """See HostVerbs."""
        answer = self._values(self._checked("place", digest, str(generation))).first("placed")
        if answer == "PLACED":
            return "PLACED"
        if answer == "ALREADY":
            return "ALREADY"
        raise self._nonsense("place", answer)

    def reload(self) -> ReloadMark:
        """See HostVerbs."""
        values = self._values(self._checked("reload"))
        return ReloadMark(**{name: values.number(name) for name in ReloadMark.__dataclass_fields__})

    def sm_state(self) -> SMState:
        """See HostVerbs."""
        values = self._values(self._checked("sm_state"))
        return SMState(
            port_guid=GUID(values.first("port_guid")),
            lid=values.number("lid"),
            state=values.first("state"),
            priority=values.number("priority"),
            activity=values.number("activity"),
            master_guid=values.first("master_guid"),
            master_lid=values.number("master_lid"),
        )

    def barrier(self, mark: ReloadMark, *, timeout_s: float) -> Settled:
        """See HostVerbs."""
        words = (mark.pid, mark.started, mark.list_mtime_ns, mark.activity, math.ceil(timeout_s))
        answer = self._checked("barrier", *map(str, words), timeout_s=timeout_s + _WAY_S)
        values = self._values(answer)
        return Settled(
            list_mtime_ns=values.number("list_mtime_ns"),
            activity=values.number("activity"),
            waited_s=float(values.first("waited_s")),
        )

    def read_tables(self, *, topology: Topology, smps_per_s: int = 0, timeout_s: float) -> bytes:
        """See HostVerbs."""
        words = (topology, str(smps_per_s), str(math.ceil(timeout_s)))
        return self._checked("read_tables", *words, timeout_s=timeout_s + _WAY_S)

    def log_since(self, mark: ReloadMark) -> bytes:
        """See HostVerbs."""
        return self._checked("log_since", str(mark.log_inode), str(mark.log_offset))

    def path_records(self, pairs: Sequence[tuple[GUID, GUID]], *, timeout_s: float) -> PathAnswers:
        """See remote.path_record.PathVerbs."""
        if not 1 <= len(pairs) <= MOST_PAIRS:
            raise ValueError(f"path_record takes 1 to {MOST_PAIRS} pairs, not {len(pairs)}.")
        words = [f"{source}:{target}" for source, target in pairs]
        values = self._values(
            self._checked("path_record", str(math.ceil(timeout_s)), *words, timeout_s=timeout_s + _WAY_S)
        )
        try:
            answers = tuple(parse_answer(line) for line in values.all("path"))
        except ValueError as nonsense:
            raise self._nonsense("path_record", str(nonsense)) from nonsense
        if [(answer.source, answer.target) for answer in answers] != list(pairs):
            raise self._nonsense("path_record", f"{len(answers)} pairs, others than were asked")
        return PathAnswers(
            asker=GUID(values.first("port_guid")),
            default_entry=values.first("default_entry"),
            sm_lid=values.number("sm_lid"),
            sm_guid=values.first("sm_guid"),
            answers=answers,
        )

    def close(self) -> None:
        """See HostVerbs. The digests are checked again after the next connect."""
        self._is_checked = False
        self._shell.close()

    def _checked(self, verb: str, *arguments: str, stdin: bytes = b"", timeout_s: float | None = None) -> bytes:
        """Run a verb on a host whose digests were compared."""
        if not self._is_checked:
            self.identify()
        return self._call(verb, *arguments, stdin=stdin, timeout_s=timeout_s)

    def _call(self, verb: str, *arguments: str, stdin: bytes = b"", timeout_s: float | None = None) -> bytes:
        """What the verb wrote to stdout; raise the error that its exit status stands for."""
        try:
            reply = self._shell.call(verb, arguments, stdin, timeout_s=timeout_s or _TIMES[verb])
        except RemoteError as error:
            error.host = self.name
            raise
        if reply.exit_status == 0:
            return reply.stdout
        said = reply.stderr.decode("utf-8", "replace")
        sentences = _SENTENCE.findall(said)
        sentence = (
            sentences[-1] if sentences else said.strip()[-300:] or f"{verb} ended with status {reply.exit_status}."
        )
        if reply.exit_status in _OUT_OF_TIME:
            raise CallTimedOut(f"Manager host {self.name}: {verb} was stopped there, its time was up.", host=self.name)
        failure = _FAILURES.get(reply.exit_status, VerbFailed)
        raise failure(reply.exit_status, f"Manager host {self.name}: {sentence}", host=self.name)

    def _values(self, answer: bytes) -> "_Values":
        return _Values(self.name, answer)

    def _nonsense(self, verb: str, answer: str) -> VerbFailed:
        return VerbFailed(0, f"Manager host {self.name}: {verb} answered “{answer[:80]}”.", host=self.name)


class _Values:
    """The `key=value` lines of one answer; a key may come several times. Raises VerbFailed for what is not there."""

    def __init__(self, host: str, answer: bytes) -> None:
        self._host = host
        self._lines = [line.partition("=")[::2] for line in answer.decode("utf-8", "replace").splitlines()]

    def all(self, key: str) -> tuple[str, ...]:
        return tuple(value for name, value in self._lines if name == key)

    def has(self, key: str) -> bool:
        return bool(self.all(key))

    def first(self, key: str) -> str:
        for value in self.all(key):
            return value
        raise VerbFailed(0, f"Manager host {self._host}: the answer names no {key}.", host=self._host)

    def number(self, key: str) -> int:
        try:
            return int(self.first(key))
        except ValueError:
            message = f"Manager host {self._host}: {key} is “{self.first(key)[:80]}”, which is no number."
            raise VerbFailed(0, message, host=self._host) from None
