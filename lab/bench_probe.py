"""How much of `ib_write_bw` the on-host program reaches with the same sizes, between the two RDMA guests.

Soft-RoCE in emulation: only the ratio means anything, and what Python adds to a posted chain.
"""

import argparse
import re
import secrets
import statistics
import subprocess

from lab.bench import Bench, Figures
from lab.errors import LabError
from lab.guests.guests import Guest, Guests
from lab.layout import wait_until
from probes.session import run_pair
from probes.terms import Mode, Order, Outcome, Profile, RunResult, Verb
from remote.probe_host import ProbeHost

MIB = 1 << 20
PIECES, PASSES = 8, 6
LINK = Profile("link", Verb.WRITE, MIB, PIECES, Mode.CONTIGUOUS, PIECES * PASSES * MIB)
SCATTER = Profile("kv-scatter-4k", Verb.WRITE, 4096, 512, Mode.SCATTER, 4 * 512 * 4096)
# An emulated processor may stand still for a second on a shared machine: 8 tries of 1.1 s, for both programs.
ACK_TIMEOUT = 18
_RUN_WITHIN_S = 240.0
_PERFTEST_PORT = 18515
_ROW = re.compile(rf"^\s*{MIB}\s+\d+\s+[0-9.]+\s+([0-9.]+)\s", re.MULTILINE)


def measure(arguments: argparse.Namespace) -> Figures:
    """Alternating runs of both programs: medians in 10^6 bytes a second, and their ratio."""
    with Guests.up(owned=True) as guests:
        hosts = [guest.probe_host() for guest in guests.guests]
        try:
            link: list[RunResult] = []
            perftest: list[float] = []
            for _ in range(arguments.runs):
                link.append(_probe(hosts, LINK))
                perftest.append(_perftest(*guests.guests))
            scatter = _probe(hosts, SCATTER)
        finally:
            for host in hosts:
                host.close()
    ours = statistics.median(run.figures["mb_s"] for run in link)
    theirs = statistics.median(perftest)
    return {
        "runs": len(link),
        "link_mb_s": round(ours, 2),
        "perftest_mb_s": round(theirs, 2),
        "ratio": round(ours / theirs, 3),
        "link_post_us": round(statistics.median(run.figures["post_ns"] for run in link) / 1e3, 1),
        "scatter_chain": scatter.figures["chain"],
        "scatter_post_us": round(scatter.figures["post_ns"] / 1e3, 1),
        "scatter_build_us": round(scatter.figures["build_ns"] / 1e3, 2),
    }


def _probe(hosts: list[ProbeHost], profile: Profile) -> RunResult:
    order = Order(profile, secrets.randbits(60), ack_timeout=ACK_TIMEOUT, transfer_timeout_s=120.0)
    result = run_pair(sender=hosts[0], target=hosts[1], order=order, deadline_s=_RUN_WITHIN_S)
    if result.outcome is not Outcome.OK:
        raise LabError(f"A probe between the guests ended {result.outcome}: {result.reason}")
    return result


def _perftest(sender: Guest, target: Guest) -> float:
    """The average of one `ib_write_bw` in 10^6 bytes a second: as many bytes, as many requests outstanding."""
    words = f"-d {sender.device} -s {MIB} -n {PIECES * PASSES} -t {PIECES} -u {ACK_TIMEOUT} -F -p {_PERFTEST_PORT}"
    server = subprocess.Popen(
        target.admin_command(), cwd=target.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        if server.stdin is not None:
            server.stdin.write(f"exec timeout -k 5 200 ib_write_bw {words}\n")
            server.stdin.close()
        listens = f"grep -q ':{_PERFTEST_PORT:04X} 00000000:0000 0A' /proc/net/tcp && echo yes"
        wait_until(
            lambda: target.admin(listens, check=False).strip() == "yes",
            timeout_s=60,
            what=f"ib_write_bw to listen in {target.name}",
        )
        said = sender.admin(f"timeout -k 5 200 ib_write_bw {words} {target.data_address}\n", timeout_s=_RUN_WITHIN_S)
    finally:
        server.terminate()
        server.wait(timeout=10)
        if server.stdout is not None:
            server.stdout.close()
    row = _ROW.search(said)
    if row is None:
        raise LabError(f"ib_write_bw printed no figure: {said.strip()[-300:]}")
    return float(row[1]) * MIB / 1e6  # its MB are 2^20


BENCH = Bench(
    measure=measure,
    targets={"ratio": ">= 0.9"},
    what="The link profile at 1 MiB against ib_write_bw",
    scale="two RDMA guests",
)
