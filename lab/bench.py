"""`./run bench NAME`: one benchmark at a time, its figures against its targets.

Machines are shared and noisy: figures of one run are compared with each other (ratios, medians).
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Bench:
    """A benchmark: how it is measured, and what its figures must reach."""

    measure: Callable[[argparse.Namespace], Figures]
    targets: Mapping[str, str]
    what: str
    scale: str = "{servers} servers with {hcas} HCAs each"
    servers: int = 500  # simulated, unless told otherwise


def holds(figures: Figures, targets: Mapping[str, str]) -> bool:
    """Whether every target, `<= 3.0` or `>= 1500`, is reached by the figure of its name."""
    return all(_reached(figures[name], target) for name, target in targets.items())


def _reached(figure: float, target: str) -> bool:
    relation, bound = target.split()
    if relation == "<=":
        return figure <= float(bound)
    if relation == ">=":
        return figure >= float(bound)
    raise ValueError(f"a target is “<= number” or “>= number”, not “{target}”")


def main(argv: list[str]) -> int:
    """Run one benchmark and print it; return 0 only if its targets hold."""
    from lab import (
        bench_audit,
        bench_board,
        bench_differential,
        bench_faults,
        bench_live,
        bench_probe,
        bench_read,
        bench_readback,
        bench_register,
        bench_rollout,
        bench_schedule,
        bench_table,
    )

    benches = {
        "rollout": bench_rollout.BENCH,
        "readback": bench_readback.BENCH,
        "differential": bench_differential.BENCH,
        "faults": bench_faults.BENCH,
        "plan": bench_table.PLAN,
        "read": bench_read.BENCH,
        "render": bench_table.RENDER,
        "probe": bench_probe.BENCH,
        "schedule": bench_schedule.BENCH,
        "register": bench_register.BENCH,
        "audit": bench_audit.BENCH,
        "board": bench_board.BENCH,
        "live": bench_live.BENCH,
    }
    parser = argparse.ArgumentParser(prog="./run bench", description=__doc__)
    parser.add_argument("name", choices=sorted(benches))
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--servers", type=int, help="servers (default 500; plan, render, register, board 5000)")
    parser.add_argument("--hcas", type=int, default=8, help="HCAs a server (default 8)")
    parser.add_argument("--runs", type=int, default=5, help="measured runs of each kind (default 5)")
    parser.add_argument("--examples", type=int, default=500, help="files of the differential (default 500)")
    parser.add_argument("--events", type=int, default=1_000_000, help="events of the audit trail (default 1,000,000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first of them (default 0)")
    parser.add_argument("--streams", type=int, default=200, help="open pages of the live hints (default 200)")
    parser.add_argument("--workers", type=int, default=2, help="simulators beside one another (default 2)")
    parser.add_argument(
        "--only", action="append", default=[], help="faults: pairs whose words hold this; again for more"
    )
    parser.add_argument("--record", type=Path, help="faults: write each pair's outcome there as a JSON line")
    arguments = parser.parse_args(argv)
    bench = benches[arguments.name]
    arguments.servers = arguments.servers or bench.servers
    print(f"{bench.what}, on {bench.scale.format_map(vars(arguments))} …", file=sys.stderr)
    figures = dict(bench.measure(arguments))
    result = {
        "bench": arguments.name,
        "figures": figures,
        "targets": dict(bench.targets),
        "holds": holds(figures, bench.targets),
    }
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        for name, figure in figures.items():
            print(f"{name:<20} {figure:>12.3f}   {bench.targets.get(name, '')}")
        print("holds" if result["holds"] else "does not hold")
    return 0 if result["holds"] else 1
