"""What may be asked of any manager host, master or not: who runs an SM, some ports' tables, OpenSM's options.

All of it only reads. Keys are never told: an answer says that one is set, not which.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from remote.errors import VerbFailed
from subnet.errors import InvalidGUID
from subnet.guid import GUID

_WAY_S = 15.0  # of a call, beside what the verb itself may take
NO_PORT = "-"
MOST_READ_PORTS = 64


@dataclass(frozen=True, slots=True)
class FoundSM:
    """An SM on the fabric. `state` is "" when the port sets IsSM and does not answer SMInfo.

    `leaf` is the node GUID of the switch its port is cabled to, "" when that is not known.
    """

    guid: GUID
    lid: int
    state: str
    priority: int
    activity: int
    leaf: str
    leaf_port: int


@dataclass(frozen=True, slots=True)
class SMCensus:
    """Every SM that was found, and which LIDs the ports take for the master's: LID → (ports, the first one's GUID).

    `ports` is how many answered; `list_mtime_ns` is 0 when the host has no subnet list.
    """

    sms: tuple[FoundSM, ...]
    follows: Mapping[int, tuple[int, GUID]]
    ports: int
    list_mtime_ns: int
    topology: Literal["list", "discovery"]


@dataclass(frozen=True, slots=True)
class ScanPart:
    """Some ports' tables as the reader sent them, in order of port GUID; `last` is "" when there was none left."""

    data: bytes
    last: str
    has_more: bool
    total: int


@dataclass(frozen=True, slots=True)
class OpenSMOptions:
    """What the OpenSM of our port was told: its configuration file's options and those of its command line.

    `config` is "" when there is no file that it could have read. `is_stale` says that the file changed after OpenSM
    had started, so that options which are read only then may differ. `keys` tells which keys are set, never to what.
    """

    config: str
    is_stale: bool
    in_file: Mapping[str, str]
    on_command_line: Mapping[str, str]
    keys: Mapping[str, bool]


class Watched(Protocol):
    """What the watch asks of a manager host, beside HostVerbs. Every method may raise RemoteError."""

    def census(self, *, smps_per_s: int, timeout_s: float) -> SMCensus:
        """Find every SM on the fabric. Raises ReaderFailed."""

    def scan(self, *, after: str, most: int, smps_per_s: int, timeout_s: float) -> ScanPart:
        """Read the tables of at most `most` end ports whose GUID comes after `after`. Raises TablesMoved."""

    def options(self) -> OpenSMOptions:
        """Say which options OpenSM runs with. Raises OpenSMNotRunning."""

    def read_ports(self, ports: Mapping[GUID, int], *, timeout_s: float) -> Mapping[GUID, Mapping[int, int] | None]:
        """The P_Key tables (index → entry) of 1 to MOST_READ_PORTS ports at the LIDs given; None: it was not read."""


class Values(Protocol):
    """The `key=value` lines of one answer."""

    def all(self, key: str) -> tuple[str, ...]:
        """All values of a key, in order."""

    def first(self, key: str) -> str:
        """The first value; raises VerbFailed without one."""

    def number(self, key: str) -> int:
        """The first value as a number; raises VerbFailed without one."""


class WatchVerbs(ABC):
    """The watch's verbs of `remote.manager_host.ManagerHost`, which gives it the ways to call."""

    name: str

    def census(self, *, smps_per_s: int, timeout_s: float) -> SMCensus:
        """See Watched."""
        words = (str(smps_per_s), str(math.ceil(timeout_s)))
        values = self._values(self._checked("census", *words, timeout_s=timeout_s + _WAY_S))
        try:
            return SMCensus(
                sms=tuple(_sm(line) for line in values.all("sm")),
                follows=dict(_followed(line) for line in values.all("follows")),
                ports=values.number("ports"),
                list_mtime_ns=values.number("list_mtime_ns"),
                topology="list" if values.first("topology") == "list" else "discovery",
            )
        except ValueError as nonsense:
            raise VerbFailed(0, f"Manager host {self.name}: census answered nonsense ({nonsense}).") from nonsense

    def scan(self, *, after: str, most: int, smps_per_s: int, timeout_s: float) -> ScanPart:
        """See Watched."""
        words = (after, str(most), str(smps_per_s), str(math.ceil(timeout_s)))
        data = self._checked("scan", *words, timeout_s=timeout_s + _WAY_S)
        try:
            end = json.loads(data.rstrip(b"\n").rpartition(b"\n")[2])
            return ScanPart(data, last=str(end["last"]), has_more=bool(end["more"]), total=int(end["total"]))
        except (ValueError, KeyError, TypeError) as error:
            raise VerbFailed(0, f"Manager host {self.name}: scan answered no reading ({error}).") from error

    def options(self) -> OpenSMOptions:
        """See Watched."""
        values = self._values(self._checked("options"))
        return OpenSMOptions(
            config=values.first("config"),
            is_stale=values.first("stale") == "yes",
            in_file=_pairs(values.all("option")),
            on_command_line=_pairs(values.all("argument")),
            keys={name: word == "set" for name, word in _pairs(values.all("key")).items()},
        )

    def read_ports(self, ports: Mapping[GUID, int], *, timeout_s: float) -> Mapping[GUID, Mapping[int, int] | None]:
        """See Watched."""
        if not 1 <= len(ports) <= MOST_READ_PORTS:
            raise ValueError(f"read_ports takes 1 to {MOST_READ_PORTS} ports, not {len(ports)}.")
        words = [str(math.ceil(timeout_s)), *(f"{guid}:0x{lid:016x}" for guid, lid in ports.items())]
        values = self._values(self._checked("read_ports", *words, timeout_s=timeout_s + _WAY_S))
        try:
            found = dict(_read_port(line) for line in values.all("port"))
        except (ValueError, InvalidGUID) as nonsense:
            raise VerbFailed(0, f"Manager host {self.name}: read_ports answered nonsense ({nonsense}).") from nonsense
        return {guid: found.get(guid) for guid in ports}

    @abstractmethod
    def _checked(self, verb: str, *arguments: str, stdin: bytes = b"", timeout_s: float | None = None) -> bytes:
        """The answer of a verb of the pinned wrapper."""

    @abstractmethod
    def _values(self, answer: bytes) -> Values:
        """An answer of key=value lines."""


def _sm(line: str) -> FoundSM:
    guid, lid, state, priority, activity, leaf, leaf_port = line.split(" ")
    return FoundSM(
        guid=GUID(guid),
        lid=int(lid),
        state="" if state == NO_PORT else state,
        priority=int(priority),
        activity=int(activity),
        leaf="" if leaf == NO_PORT else GUID(leaf),
        leaf_port=int(leaf_port),
    )


def _read_port(line: str) -> tuple[GUID, Mapping[int, int] | None]:
    guid, _, table = line.partition(" ")
    if table.startswith(NO_PORT):
        return GUID(guid), None
    return GUID(guid), {int(index): int(entry, 16) for index, entry in json.loads(table).items()}


def _followed(line: str) -> tuple[int, tuple[int, GUID]]:
    lid, count, first = line.split(" ")
    return int(lid), (int(count), GUID(first))


def _pairs(lines: Iterable[str]) -> dict[str, str]:
    """Name → value; of a name that comes twice the last one counts, as OpenSM reads them."""
    return {name: value.strip() for name, _, value in (line.partition(" ") for line in lines)}
