"""From the button to PROVEN against bare OpenSM: rename and SIGHUP to the end of the sweep, in alternating runs."""

import argparse
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

from lab.bench import Bench, Figures
from lab.free_ports import free_port
from lab.house import House
from lab.managers import LabManager
from lab.quiet import wait_until_quiet
from lab.site import Site

SWEEP_WITHIN_S = 60
LARGE_QUIET_S = 4  # a sweep of so many ports writes the list only at its end


def measure(arguments: argparse.Namespace) -> Figures:
    """Median seconds of both, their ratio, and the parts of the rollout that the steps tell."""
    bare: list[float] = []
    whole: list[float] = []
    with tempfile.TemporaryDirectory(prefix="fabricui-bench-") as name:
        folder = Path(name)
        with Site.up(directory=folder / "lab", servers=arguments.servers, hcas=arguments.hcas) as site:
            house = House(folder=folder, site=site, web_port=free_port(), register_port=free_port())
            try:
                house.start()
                print("Servers register …", file=sys.stderr)
                house.boot()
                house.furnish()
                master = site.managers[0]
                for run in range(arguments.runs):
                    bare.append(_bare(master))
                    whole.append(_rollout(house, forward=run % 2 == 0))
                    print(f"run {run + 1}: bare {bare[-1]:.2f} s, rollout {whole[-1]:.2f} s", file=sys.stderr)
            finally:
                house.stop()
    ratios = [mine / theirs for mine, theirs in zip(whole, bare, strict=True)]
    return {
        "bare_s": round(statistics.median(bare), 3),
        "fabricui_s": round(statistics.median(whole), 3),
        "ratio": round(statistics.median(whole) / statistics.median(bare), 3),
        "ratio_worst_pair": round(max(ratios), 3),
        "runs": len(bare),
    }


def _bare(master: LabManager) -> float:
    """Seconds from the rename to the last rewrite of the list by the sweep that SIGHUP began; then put it back.

    The changed file moves one port out of a partition, so that the sweep has a table to write, as the rollout's has.
    """
    original = master.partitions_file.read_bytes()
    lines = original.splitlines(keepends=True)
    changed = b"".join(_without_a_member(lines))
    seconds = _place_and_wait(master, changed)
    _place_and_wait(master, original)
    return seconds


def _without_a_member(lines: list[bytes]) -> list[bytes]:
    """The file without the first member line of its first tenant partition that is not the last of its list."""
    started = False
    for number, line in enumerate(lines):
        started = started or (b"=0x" in line and b"defmember" in line and not line.startswith(b"Default"))
        if started and line.lstrip().startswith(b"0x") and line.rstrip().endswith(b","):
            return [*lines[:number], *lines[number + 1 :]]
    raise RuntimeError("the partition file names no tenant's port")


def _place_and_wait(master: LabManager, data: bytes) -> float:
    listing = master.list_file
    wait_until_quiet(listing, quiet_s=LARGE_QUIET_S)
    begun_mtime = listing.stat().st_mtime_ns
    beside = master.partitions_file.with_suffix(".bare")
    beside.write_bytes(data)
    begun = time.time_ns()
    beside.rename(master.partitions_file)
    os.kill(master.opensm_pid, signal.SIGHUP)
    deadline = time.monotonic() + SWEEP_WITHIN_S
    while listing.stat().st_mtime_ns == begun_mtime:
        if time.monotonic() > deadline:
            raise RuntimeError(f"OpenSM did not end a sweep within {SWEEP_WITHIN_S} s")
        time.sleep(0.005)
    wait_until_quiet(listing, quiet_s=LARGE_QUIET_S)
    return (listing.stat().st_mtime_ns - begun) / 1e9


def _rollout(house: House, *, forward: bool) -> float:
    """Seconds from the button to PROVEN for moving one server; there and back in turn."""
    from partitions import operations as partitions
    from partitions.models import Partition
    from partitions.selection import Selection

    training = Partition.objects.get(name="acme-training")
    inference = Partition.objects.get(name="acme-inference")
    source, target = (training, inference) if forward else (inference, training)
    port = source.memberships.select_related("port__hca__server").order_by("port__guid").last()
    if port is None or port.port.hca is None:
        raise RuntimeError(f"{source} has no server")
    partitions.stage_move(server=port.port.hca.server, source=source, target=target, actor=house.operator)
    rollout = house.roll_out(Selection.mine(), reason="bench")
    if rollout.state != "PROVEN" or rollout.finished_at is None:
        raise RuntimeError(f"the rollout ended {rollout.state}: {rollout.cause}")
    return (rollout.finished_at - rollout.requested_at).total_seconds()


BENCH = Bench(measure=measure, targets={"ratio": "<= 3.0"}, what="From the button to PROVEN, and bare OpenSM")
