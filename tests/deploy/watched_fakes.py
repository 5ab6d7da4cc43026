"""What the watch asks of a fake manager host: the census, parts of the tables, the options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from remote.errors import OpenSMNotRunning, TablesMoved, Unreachable
from remote.watch_verbs import FoundSM, OpenSMOptions, ScanPart, SMCensus
from subnet.guid import GUID

if TYPE_CHECKING:
    from tests.deploy.fakes import FakePort, FakeSite

LEAF = GUID("0x0002c90300aa0001")


class WatchedFake:
    """Mixed into FakeHost. `told` are the options of its opensm.conf; `moved` scans are overtaken by a sweep."""

    site: FakeSite
    port: FakePort
    name: str
    told: dict[str, str]
    keys: dict[str, bool]
    moved = 0

    def census(self, *, smps_per_s: int, timeout_s: float) -> SMCensus:
        self._verb("census")
        found = [self._sm(host.port, host.role) for host in self.site.hosts if host.is_running and not host.is_hidden]
        if self.site.rogue is not None:
            found.append(self._sm(self.site.rogue, self.site.rogue_state))
        master = self.site.master_port()
        seen = [port for port in self.site.ports.values() if not port.is_absent]
        follows = {master.lid if master else 0: (len(seen), min(port.guid for port in seen))}
        return SMCensus(tuple(found), follows, len(seen), self.list_mtime_ns, "list")  # type: ignore[attr-defined]

    def scan(self, *, after: str, most: int, smps_per_s: int, timeout_s: float) -> ScanPart:
        self._verb("scan")
        if self.moved:
            self.moved -= 1
            raise TablesMoved(85, "The fabric was swept again.")
        lines = [json.loads(line) for line in self.site.reading("discovery", 0).splitlines()]
        ports = sorted((line for line in lines if line["kind"] == "port"), key=lambda line: line["port_guid"])
        rest = [line for line in ports if line["port_guid"] > after]
        some = rest[:most]
        last = some[-1]["port_guid"] if some else ""
        end = lines[-1] | {"ports": len(some), "total": len(ports), "more": len(rest) > len(some), "last": last}
        kept = [lines[0], *some, *(line for line in lines if line["kind"] == "sm"), end]
        data = b"".join(json.dumps(line).encode() + b"\n" for line in kept)
        return ScanPart(data, last=last, has_more=len(rest) > len(some), total=len(ports))

    def read_ports(self, ports: Mapping[GUID, int], *, timeout_s: float) -> dict[GUID, dict[int, int] | None]:
        self._verb("read_ports")
        known = self.site.ports
        return {
            guid: dict(known[guid].pkeys)
            if guid in known and known[guid].lid == lid and not (known[guid].is_absent or known[guid].is_unreadable)
            else None
            for guid, lid in ports.items()
        }

    def options(self) -> OpenSMOptions:
        self._verb("options")
        if not self.is_running:  # type: ignore[attr-defined]
            raise OpenSMNotRunning(81, "No OpenSM runs.")
        return OpenSMOptions("/etc/opensm/opensm.conf", False, dict(self.told), {}, dict(self.keys))

    def _verb(self, verb: str) -> None:
        self.site.calls.append((self.name, verb))
        if not self.is_reachable:  # type: ignore[attr-defined]
            raise Unreachable(f"Manager host {self.name}: no connection could be made.")
        self.site.fail(self.name, verb, "before")

    def _sm(self, port: FakePort, state: str) -> FoundSM:
        return FoundSM(port.guid, port.lid, state, 5, 1, LEAF, port.leaf_port)
