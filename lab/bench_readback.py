"""How fast every table of the fabric is read with full coverage, unpaced and paced, through the real SSH verb."""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from lab.bench import Bench, Figures
from lab.quiet import wait_until_quiet
from lab.site import Site
from remote.manager_host import ManagerHost
from remote.ssh import SSHShell
from subnet.observed import ObservedFabric, parse_reading

PACE_SMPS_PER_S = 2000
READ_WITHIN_S = 120
LARGE_QUIET_S = 6  # a sweep of so many ports writes the list only at its end


def measure(arguments: argparse.Namespace) -> Figures:
    """Ports and SMPs a second of whole verb calls: NodeInfo, all blocks, leaf copies, PortInfo of both ends."""
    with (
        tempfile.TemporaryDirectory(prefix="fabricui-bench-") as name,
        Site.up(directory=Path(name) / "lab", servers=arguments.servers, hcas=arguments.hcas) as site,
    ):
        manager = site.managers[0]
        shell = SSHShell(
            address=manager.address,
            port=manager.ssh_port,
            user=manager.user,
            key_file=site.manager_key,
            host_key=manager.host_key,
        )
        host = ManagerHost(
            name=manager.name,
            shell=shell,
            wrapper_digest=manager.wrapper_digest,
            reader_digest=manager.reader_digest,
        )
        try:
            rates: list[float] = []
            wait_until_quiet(manager.list_file, quiet_s=LARGE_QUIET_S)
            fabric = _read(host, 0)[0]
            for _ in range(arguments.runs):
                fabric, seconds = _read(host, 0)
                rates.append(len(fabric.end_ports) / seconds)
            paced, _seconds = _read(host, PACE_SMPS_PER_S)
        finally:
            host.close()
    unread = [port for port in fabric.ports.values() if port.reading != "read"]
    without_leaf = [port for port in fabric.end_ports.values() if port.leaf is None]
    return {
        "ports": len(fabric.end_ports),
        "ports_per_s": round(statistics.median(rates), 1),
        "smps_per_s": round(fabric.smps / fabric.seconds, 1),
        "smps_per_port": round(fabric.smps / len(fabric.ports), 2),
        "unread": len(unread) + len(without_leaf),
        "paced_share": round(paced.smps / paced.seconds / PACE_SMPS_PER_S, 3),
    }


def _read(host: ManagerHost, smps_per_s: int) -> tuple[ObservedFabric, float]:
    begun = time.perf_counter()
    data = host.read_tables(topology="list", smps_per_s=smps_per_s, timeout_s=READ_WITHIN_S)
    return parse_reading(data), time.perf_counter() - begun


BENCH = Bench(
    measure=measure,
    targets={"ports_per_s": ">= 1500", "paced_share": ">= 0.9", "unread": "<= 0"},
    what="Reading every P_Key table with full coverage",
)
