"""A whole site in memory: a fabric, OpenSM as far as partitions go, and manager hosts that speak HostVerbs.

OpenSM's part follows the ground truth: the file is read at every sweep and only by the master, a bad file makes every
port a full member of Default, a key that stays keeps its index, and a table changed behind OpenSM's back is not mended.
Every verb can be made to fail, before or after it had its effect.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field

from remote.errors import (
    DigestMismatch,
    FileMissing,
    NotMaster,
    OpenSMDiffers,
    OpenSMNotRunning,
    RemoteError,
    StaleGeneration,
    Unreachable,
)
from remote.manager_host import Identity, OpenSMProcess, ReloadMark, Settled, SMState
from subnet.errors import InvalidFile
from subnet.guid import GUID
from subnet.partitions_conf import parse_strict
from subnet.pkey import entry
from subnet.table import PartitionTable
from tests.deploy.clock import Clock as Clock
from tests.deploy.watched_fakes import WatchedFake

CAPACITY = 64
PATH = "/etc/opensm/partitions.conf"
LEAF = GUID("0x0002c90300aa0001")


class Killed(BaseException):
    """The worker was killed here. No `except Exception` may survive it."""


@dataclass
class FakePort:
    guid: GUID
    number: int  # of its server
    lid: int
    leaf_port: int
    pkeys: dict[int, int] = field(default_factory=lambda: {0: 0xFFFF})
    known: dict[int, int] = field(default_factory=lambda: {0: 0xFFFF})  # what the SM believes stands there
    last_used: int = 0
    slots: dict[int, int] = field(default_factory=dict)  # entry → the index at which this SM process had it last
    state: str = "ACTIVE"
    is_absent: bool = False
    is_unreadable: bool = False
    refuses_sets: bool = False
    is_booting: bool = False  # until the next sweep arms it, it holds the keys its hardware begins with
    is_sm: bool = False


class FakeHost(WatchedFake):
    """One manager host. `fail` is asked before and after every verb; whatever it raises is what the caller gets."""

    def __init__(self, site: FakeSite, name: str, port: FakePort) -> None:
        self.site, self.name, self.port = site, name, port
        self.file: bytes | None = None
        self.staged: dict[str, bytes] = {}
        self.sidecar: tuple[int, str] = (0, "")
        self.is_running = True
        self.is_reachable = True
        self.process_file = PATH
        self.pid, self.started = 100, 1
        self.problems: tuple[str, ...] = ()
        self.role = "STANDBY"
        self.log = b""
        self.list_mtime_ns = 1
        self.sweep_due = False
        self.is_hidden = False  # from the census
        self.told, self.keys = {"sm_priority": "5"}, {}

    # --- the verbs -------------------------------------------------------------------------------------------------

    def identify(self) -> Identity:
        with _verb(self, "identify"):
            process = None
            if self.is_running:
                process = OpenSMProcess(self.pid, self.started, self.port.guid, self.process_file, "", "/")
            return Identity(
                "w" * 64, "r" * 64, "3.3.23", process, PATH, "/l", "/log", problems=self.problems,
                generation=self.sidecar[0],
            )  # fmt: skip

    def read(self) -> bytes:
        with _verb(self, "read"):
            if self.file is None:
                raise FileMissing(66, f"{PATH} does not exist.")
            return self.file

    def stage(self, data: bytes, *, digest: str) -> None:
        with _verb(self, "stage"):
            if sha256(data) != digest:
                raise DigestMismatch(65, "The bytes that arrived are not the ones announced.")
            self.staged[digest] = data
            self.site.note("staged", self.name, digest)

    def place(self, *, digest: str, generation: int) -> str:
        with _verb(self, "place"):
            seen, seen_digest = self.sidecar
            if generation < seen:
                raise StaleGeneration(80, f"Generation {generation} comes too late.")
            if generation == seen and seen_digest:
                if digest != seen_digest:
                    raise StaleGeneration(80, f"Generation {generation} has placed other bytes here before.")
                if self.file is not None and sha256(self.file) == digest:
                    return "ALREADY"
            if digest not in self.staged:
                raise FileMissing(66, "Nothing with this digest is staged.")
            self.sidecar = (generation, digest)
            self.file = self.staged.pop(digest)
            self.staged.clear()
            self.site.note("placed", self.name, digest)
            return "PLACED"

    def reload(self) -> ReloadMark:
        with _verb(self, "reload"):
            self._needs_process()
            mark = ReloadMark(self.pid, self.started, self.list_mtime_ns, 1, len(self.log), 7)
            self.sweep_due = True
            return mark

    def sm_state(self) -> SMState:
        with _verb(self, "sm_state"):
            if not self.is_running:
                raise OpenSMNotRunning(81, f"No OpenSM runs for port {self.port.guid}. Start it.")
            master = self.site.master_port()
            guid, lid = (master.guid, master.lid) if master else ("", 0)
            return SMState(self.port.guid, self.port.lid, self.role, 5, 1, guid, lid)

    def barrier(self, mark: ReloadMark, *, timeout_s: float) -> Settled:
        with _verb(self, "barrier"):
            self._needs_process()
            if (mark.pid, mark.started) != (self.pid, self.started):
                raise OpenSMDiffers(82, "OpenSM was started again since the reload.")
            if self.role != "MASTER":
                raise NotMaster(86, "The SM of this host is not the master.")
            if self.sweep_due:
                self.site.sweep(self)
            return Settled(self.list_mtime_ns, 1, 0.5)

    def read_tables(self, *, topology: str, smps_per_s: int = 0, timeout_s: float) -> bytes:
        with _verb(self, "read_tables"):
            return self.site.reading(topology, self.list_mtime_ns)

    def log_since(self, mark: ReloadMark) -> bytes:
        with _verb(self, "log_since"):
            return self.log[mark.log_offset :]

    def close(self) -> None:
        pass

    # --- what tests do to it ---------------------------------------------------------------------------------------

    @property
    def digest(self) -> str:
        return sha256(self.file) if self.file is not None else ""

    def stop_opensm(self) -> None:
        self.is_running, self.role, self.port.is_sm = False, "NOTACTIVE", False

    def start_opensm(self) -> None:
        self.is_running, self.port.is_sm = True, True
        self.pid, self.started = self.pid + 1, self.started + 1
        self.sweep_due = False
        self.role = "STANDBY" if self.site.master_port() else "MASTER"
        if self.role == "MASTER":
            self.site.sweep(self, is_new=True)

    def _needs_process(self) -> None:
        if not self.is_running:
            raise OpenSMNotRunning(81, f"No OpenSM runs for port {self.port.guid}. Start it.")
        if self.process_file != PATH:
            raise OpenSMDiffers(82, f"OpenSM reads {self.process_file}, but {PATH} is registered.")


class _verb:
    """Let the site's `fail` speak before and after one verb."""

    def __init__(self, host: FakeHost, name: str) -> None:
        self.host, self.name = host, name

    def __enter__(self) -> None:
        self.host.site.calls.append((self.host.name, self.name))
        if not self.host.is_reachable:
            raise Unreachable(f"Manager host {self.host.name}: no connection could be made.")
        self.host.site.fail(self.host.name, self.name, "before")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.host.site.fail(self.host.name, self.name, "after")


class FakeSite:
    """`servers` with two ports each, and manager hosts that share the fabric; the first one is master."""

    def __init__(self, servers: int = 4, managers: tuple[str, ...] = ("mgr-a", "mgr-b")) -> None:
        self.ports: dict[GUID, FakePort] = {}
        self.calls: list[tuple[str, str]] = []
        self.notes: list[tuple[str, str, str]] = []  # staged | placed, host, digest
        self.fail: Callable[[str, str, str], None] = lambda host, verb, when: None
        self.when_read: dict[GUID, list[int]] = {}  # what each port held at the last reading for a proof
        self.rogue: FakePort | None = None
        self.rogue_state = "MASTER"
        self.meaning: dict[bytes, PartitionTable] = {}  # what hand-written files mean to OpenSM
        for server in range(1, servers + 1):
            for hca in (1, 2):
                self._port(f"0x0002c9030001{server:02x}{hca:02x}", number=server)
        self.hosts: list[FakeHost] = []
        for position, name in enumerate(managers, start=1):
            port = self._port(f"0x0002c9030003{position:04x}", number=0)
            port.is_sm = True
            self.hosts.append(FakeHost(self, name, port))
        self.hosts[0].role = "MASTER"

    def _port(self, guid: str, number: int) -> FakePort:
        lid = len(self.ports) + 2
        port = self.ports[GUID(guid)] = FakePort(GUID(guid), number, lid=lid, leaf_port=lid)
        return port

    def host(self, name: str) -> FakeHost:
        return next(host for host in self.hosts if host.name == name)

    def guids(self, server: int) -> list[GUID]:
        return [guid for guid, port in self.ports.items() if port.number == server]

    def note(self, what: str, host: str, digest: str) -> None:
        self.notes.append((what, host, digest))

    @property
    def master(self) -> FakeHost | None:
        return next((host for host in self.hosts if host.is_running and host.role == "MASTER"), None)

    def master_port(self) -> FakePort | None:
        if self.rogue is not None:
            return self.rogue
        return self.master.port if self.master else None

    # --- what OpenSM does ------------------------------------------------------------------------------------------

    def sweep(self, host: FakeHost, *, is_new: bool = False) -> None:
        """Read the file as OpenSM does and write every table that differs from what this SM believes."""
        host.sweep_due = False
        host.list_mtime_ns += 1_000
        table = None
        if host.process_file == PATH:
            try:
                file = host.file or b""
                table = self.meaning[file] if file in self.meaning else parse_strict(file).table
            except InvalidFile:
                host.log += b"x -> osm_prtn_config_parse_file: ERR 0501: PARSE ERROR: line 1\n"
                host.log += b"x -> osm_prtn_make_partitions: Partition configuration in error; retrying\n"
        held = table.by_port() if table else {}
        for port in self.ports.values():
            if port.is_absent:
                continue
            if is_new:
                port.known, port.last_used, port.slots = dict(port.pkeys), max(port.pkeys, default=0), {}
            if port.is_booting:
                port.known, port.is_booting, port.state = dict(port.pkeys), False, "ACTIVE"
            is_full = table is None or port.guid in table.sm_ports
            wanted = {0x7FFF: 0xFFFF if is_full else 0x7FFF}
            wanted |= {int(pkey): entry(pkey, how) for pkey, how in held.get(port.guid, {}).items()}
            self._write(port, wanted)

    def _write(self, port: FakePort, wanted: dict[int, int]) -> None:
        table = {i: wanted[k & 0x7FFF] for i, k in port.known.items() if k & 0x7FFF in wanted}
        table[0] = wanted[0x7FFF]
        present = {k & 0x7FFF for k in table.values()}
        for key in sorted(wanted.keys() - present):
            index = port.slots.get(wanted[key], 0)
            if not index or index in table:
                index = port.last_used = port.last_used + 1
            table[index] = wanted[key]
        if table != port.known:
            port.known = dict(table)
            if not port.refuses_sets:
                port.pkeys = dict(table)
        port.last_used = max([port.last_used, *table])
        port.slots |= {key: index for index, key in table.items()}

    def takeover(self) -> None:
        """A standby becomes master and writes what its file says."""
        for host in self.hosts:
            if host.is_running and host.role == "STANDBY" and self.master_port() is None:
                host.role = "MASTER"
                self.sweep(host, is_new=True)

    def start_rogue(self, guid: GUID) -> None:
        """An SM on a server's port takes over; every port only holds 0xffff."""
        self.rogue = self.ports[guid]
        self.rogue.is_sm = True
        for host in self.hosts:
            if host.is_running:
                host.role = "STANDBY"
        for port in self.ports.values():
            port.pkeys = {0: 0xFFFF}

    def stop_rogue(self) -> None:
        """Somebody stops it; the SMs that wait take over."""
        if self.rogue is not None:
            self.rogue.is_sm, self.rogue = False, None
        self.takeover()

    def reboot(self, guid: GUID) -> None:
        """A server's port comes up with the keys its hardware begins with; the next sweep sets and arms it."""
        port = self.ports[guid]
        port.pkeys, port.state, port.is_booting = {0: 0xFFFF}, "INIT", True

    # --- what the reader sees --------------------------------------------------------------------------------------

    def reading(self, topology: str, list_mtime_ns: int) -> bytes:
        master = self.master_port()
        if topology == "list":
            ports = (port for port in self.ports.values() if not (port.is_absent or port.is_booting))
            self.when_read = {port.guid: list(port.pkeys.values()) for port in ports}
        lines: list[dict[str, object]] = [
            {
                "kind": "reading",
                "version": 1,
                "topology": topology,
                "list_mtime_ns": list_mtime_ns if topology == "list" else None,
            }
        ]
        seen = [port for port in self.ports.values() if not port.is_absent]
        lines += [self._line(port, master.lid if master else 0) for port in seen]
        for host in self.hosts:
            if host.is_running:
                lines.append(_sm_line(host.port, host.role))
        if self.rogue is not None:
            lines.append(_sm_line(self.rogue, "MASTER"))
        lines.append({"kind": "end", "ports": len(seen), "smps": 9, "timeouts": 0, "seconds": 0.1})
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    def _line(self, port: FakePort, master_lid: int) -> dict[str, object]:
        pkeys = {} if port.is_unreadable else {str(i): f"0x{key:04x}" for i, key in sorted(port.pkeys.items())}
        packed = {str(i): f"0x{key:04x}" for i, key in enumerate(port.pkeys.values())}
        leaf = {"guid": LEAF, "port": port.leaf_port, "lid": 1, "pkeys": packed, "enforce_in": True,
                "enforce_out": True}  # fmt: skip
        return {
            "kind": "port",
            "port_guid": port.guid,
            "node_guid": port.guid.replace("0x0002c9030", "0x0002c9031"),
            "system_guid": port.guid.replace("0x0002c9030", "0x0002c9032"),
            "node_type": "CA",
            "port": 1,
            "lid": port.lid,
            "state": port.state,
            "phys": "LinkUp",
            "master_sm_lid": master_lid,
            "is_sm": port.is_sm,
            "capacity": CAPACITY,
            "pkeys": pkeys,
            "leaf": None if port.is_unreadable else leaf,
            "description": f"srv-{port.number:03}",
            "reading": "unreadable" if port.is_unreadable else "read",
            "error": "timeout" if port.is_unreadable else None,
        }


def _sm_line(port: FakePort, role: str) -> dict[str, object]:
    return {"kind": "sm", "port_guid": port.guid, "lid": port.lid, "state": role, "priority": 5, "activity": 1}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def failing(error: Callable[[], BaseException], *, verb: str, host: str = "", when: str = "before", times: int = 10**6):
    """A `fail` that raises `error()` the first `times` times a verb is called on a host (any host when empty)."""
    left = [times]

    def fail(its_host: str, its_verb: str, its_when: str) -> None:
        if its_verb == verb and host in ("", its_host) and its_when == when and left[0] > 0:
            left[0] -= 1
            raise error()

    return fail


def unreachable(host: str = "mgr-b") -> RemoteError:
    return Unreachable(f"Manager host {host}: no connection could be made.")
