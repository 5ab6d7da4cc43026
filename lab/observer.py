"""The observer: a process of its own that looks at the fabric and the files throughout, and knows no database.

`python -m lab.observer DIRECTORY PARENT` samples every port's P_Key table by directed routes (libibmad; it needs
neither LIDs nor an SM) and every manager's partition file, several times a second, and writes down what
`lab/observing.py` forbids. What is allowed stands in `observer/allowed.json`, which `Observer.tell` replaces; what was
found in `observer/found.jsonl`. It samples until SIGTERM, and ends when its parent does. It sits on a server that no
fault touches: on a manager host's node the simulator would hand it what is meant for a dead SM.
"""

import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.fabric import HCA, Fabric
from lab.layout import python_environment, wait_until
from lab.observing import Allowed, Keys, Sample, Violation, violations
from lab.processes import die_with_parent
from lab.site import Site
from lab.smp import BLOCK, NODE_INFO, P_KEY_TABLE, Seat
from subnet.guid import GUID

PAUSE_S = 0.2  # between two samples: it shares the processors with what it watches
ANSWER_MS = 100
READY_WITHIN_S = 20.0

type Route = tuple[int, ...]


class Observer:
    """The handle of one observer process: start it, tell it what is allowed, ask what it has seen."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._folder = folder_of(site)
        self._told: dict[str, Any] = {
            "version": 0, "revisions": [], "tenants": {}, "excused": [],
            "sm_ports": [manager.port_guid for manager in site.managers],
        }  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, revisions: list[str], tenants: Mapping[str, str]) -> None:
        """Begin to observe; return once the first full sample was taken."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for name in ("found.jsonl", "status.json"):
            (self._folder / name).unlink(missing_ok=True)
        self._write({"revisions": revisions, "tenants": dict(tenants)})
        with (self._folder / "observer.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "lab.observer", str(self._site.directory), str(os.getpid())],
                cwd=self._site.layout.run,
                env={
                    **python_environment(self._site.lab),
                    **self._site.client_environment(seat_of(self._site.fabric).node_id),
                },
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        self._wait_for_version()

    def stop(self) -> None:
        """End the observer; it gives its seat on the simulator back."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def tell(
        self,
        *,
        revisions: list[str] | None = None,
        tenants: Mapping[str, str] | None = None,
        excused: list[str] | None = None,
    ) -> None:
        """Replace what is allowed; return once a full sample was taken by the new terms."""
        changes = {"revisions": revisions, "tenants": tenants, "excused": excused}
        wanted = {name: value for name, value in changes.items() if value is not None}
        if any(self._told[name] != value for name, value in wanted.items()):
            self._write(wanted)
            self._wait_for_version()

    def fresh(self, *, excused: list[str] | None = None) -> None:
        """Return once a full sample that began after this call is judged, by new excuses if they are given."""
        self._write({} if excused is None else {"excused": excused})
        self._wait_for_version()

    @property
    def found(self) -> list[dict[str, Any]]:
        """Every violation so far, the oldest first: kind, where, sentence, at (seconds since 1970)."""
        path = self._folder / "found.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []

    @property
    def status(self) -> dict[str, Any]:
        """version, samples, seconds, longest_gap_s, silent (ports of the newest sample that did not answer)."""
        try:
            found: dict[str, Any] = json.loads((self._folder / "status.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            found = {"version": -1, "samples": 0}
        return found

    def _write(self, changes: Mapping[str, Any]) -> None:
        self._told |= {**changes, "version": self._told["version"] + 1}
        _replace(self._folder / "allowed.json", self._told)

    def _wait_for_version(self) -> None:
        def has_seen() -> bool:
            if self._process is not None and self._process.poll() is not None:
                said = (self._folder / "observer.log").read_text(encoding="utf-8", errors="replace")
                raise LabError(f"The observer ended with status {self._process.returncode}: {said.strip()[-500:]}")
            return bool(self.status["version"] >= self._told["version"])

        wait_until(has_seen, timeout_s=READY_WITHIN_S, what="the observer to take a full sample", pause_s=0.02)


def folder_of(site: Site) -> Path:
    """Where an observer's files lie; the lab takes them along when it goes."""
    return site.layout.run / "observer"


class Eye:
    """Takes the samples: a seat on the fabric, and the way to every port."""

    def __init__(self, site: Site, seat: Seat) -> None:
        self._site = site
        self._seat = seat
        hcas = list(site.fabric.hcas())
        self._routes = {hca.port_guid: route_to(site.fabric, hca) for hca in hcas}
        self._leaves = {hca.port_guid: (route_to(site.fabric, hca)[:-1], hca.leaf_port) for hca in hcas}
        self._switches = {leaf.guid: route_to_leaf(site.fabric, leaf.guid) for leaf in site.fabric.leaves}

    def sample(self) -> Sample:
        """Every end port, every leaf copy, every file; about 0.02 s on the small fabric."""
        ports = {guid: self._table(route) for guid, route in self._routes.items()}
        switches = {guid: self._table(route) for guid, route in self._switches.items()}
        copies = {guid: self._leaf_copy(guid) for guid, keys in ports.items() if keys is not None}
        return Sample(ports=ports, switch_ports=switches, leaf_copies=copies, files=self._files())

    def _table(self, route: Route) -> Keys | None:
        node = self._seat.get(route, NODE_INFO, timeout_ms=ANSWER_MS)
        return None if node is None else self._blocks(route, capacity=struct.unpack_from(">H", node, 28)[0])

    def _leaf_copy(self, guid: GUID) -> Keys | None:
        route, port = self._leaves[guid]
        return self._blocks(route, capacity=BLOCK, port=port)

    def _blocks(self, route: Route, *, capacity: int, port: int = 0) -> Keys | None:
        keys: dict[int, int] = {}
        for block in range(-(-capacity // BLOCK)):
            table = self._seat.get(route, P_KEY_TABLE, port << 16 | block, timeout_ms=ANSWER_MS)
            if table is None:
                return None
            entries = struct.unpack(">32H", table)
            keys |= {block * BLOCK + place: entry for place, entry in enumerate(entries) if entry}
        return keys

    def _files(self) -> dict[str, bytes | None]:
        files: dict[str, bytes | None] = {}
        for manager in self._site.managers:
            try:
                files[manager.name] = self._site.read_file(manager)
            except OSError:
                # A process ended between two looks at it, or the file is not there: only the second is a finding.
                with contextlib.suppress(OSError):
                    files[manager.name] = manager.partitions_file.read_bytes()
                files.setdefault(manager.name, None)
        return files


def seat_of(fabric: Fabric) -> HCA:
    """Where the observer sits: an HCA whose cable no fault touches."""
    return fabric.servers[1].hcas[0]


def route_to_leaf(fabric: Fabric, leaf_guid: GUID) -> Route:
    """The ports to leave by from the observer's seat to a leaf switch: over the first spine."""
    own = seat_of(fabric).leaf_guid
    if leaf_guid == own:
        return (1,)
    leaves = {leaf.guid: leaf for leaf in fabric.leaves}
    spine = fabric.spines[0]
    up = next(port for port, other, _ in leaves[own].cables if other == spine.node_id)
    down = next(port for port, other, _ in spine.cables if other == leaves[leaf_guid].node_id)
    return (1, up, down)


def route_to(fabric: Fabric, hca: HCA) -> Route:
    """The ports to leave by from the observer's seat to an HCA (its own: down to its leaf and back)."""
    return (*route_to_leaf(fabric, hca.leaf_guid), hca.leaf_port)


class Watch:
    """The observer's own life: sample, judge, write down, until told to stop."""

    def __init__(self, site: Site, seat: Seat) -> None:
        self._eye = Eye(site, seat)
        self._folder = folder_of(site)
        self._began = self._last = time.monotonic()
        self._samples = 0
        self._longest_gap_s = 0.0
        self._standing: set[tuple[str, str]] = set()  # what is broken already is told once
        self.stop = threading.Event()

    def run(self) -> None:
        """Sample until `stop`."""
        while not self.stop.is_set():
            allowed = Allowed.from_json(json.loads((self._folder / "allowed.json").read_text(encoding="utf-8")))
            sample = self._eye.sample()
            self._note(list(violations(sample, allowed)))
            silent = sample.silent(allowed)
            now = time.monotonic()
            if not silent:
                self._longest_gap_s = max(self._longest_gap_s, now - self._last)
                self._last = now
                self._samples += 1
            status = {
                "version": allowed.version if not silent else -1, "samples": self._samples, "silent": silent,
                "seconds": round(now - self._began, 3), "longest_gap_s": round(self._longest_gap_s, 3),
            }  # fmt: skip
            _replace(self._folder / "status.json", status)
            self.stop.wait(PAUSE_S)

    def _note(self, found: list[Violation]) -> None:
        new = [violation for violation in found if (violation.kind, violation.where) not in self._standing]
        self._standing = {(violation.kind, violation.where) for violation in found}
        if new:
            with (self._folder / "found.jsonl").open("a", encoding="utf-8") as file:
                file.writelines(json.dumps({**asdict(violation), "at": time.time()}) + "\n" for violation in new)


def _replace(path: Path, value: Mapping[str, Any]) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(value), encoding="utf-8")
    beside.rename(path)


def main(directory: str, parent: str) -> None:
    """Observe the lab in `directory` until SIGTERM, or until process `parent` is gone."""
    die_with_parent(int(parent))
    site = Site.attach(directory)
    seat = Seat()
    try:
        watch = Watch(site, seat)
        signal.signal(signal.SIGTERM, lambda *_: watch.stop.set())
        watch.run()
    finally:
        seat.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
