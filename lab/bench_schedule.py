"""`./run bench schedule`: how long one tick of the probe planner takes, and how long it needs to cover everybody.

Needs no lab: the planner is pure, and the coverage runs in simulated time. The simulated runs take 5 s each, as a real
one does (kvprobe 5); the tick comes every 5 s, as beat sends it.
"""

import argparse
import time
from collections.abc import Mapping
from statistics import median

from lab.bench import Bench
from probes.schedule import Asked, ScopeState, Why, plan, simulate

HOSTS = 512
RUN_S = 5.0
TICK_S = 5.0
DEFAULT_AT_ONCE = 8  # FABRICUI_PROBES_AT_ONCE


def measure(arguments: argparse.Namespace) -> Mapping[str, float]:
    """Plan ticks of 512 servers, and simulate full coverage with every host busy and with the default cap."""
    bad = [Asked((host, (host + 7) % HOSTS), Why.BAD) for host in range(HOSTS)]
    taken = []
    for run in range(max(1, arguments.runs)):
        state = ScopeState(key=1, hosts=list(range(HOSTS)), position=run * 40_009, budget=HOSTS, asked=bad)
        began = time.perf_counter()
        plan([state], budget=HOSTS)
        taken.append((time.perf_counter() - began) * 1e3)
    loaded = simulate(hosts=HOSTS, at_once=HOSTS // 2, run_s=RUN_S, tick_s=TICK_S, budget=HOSTS)
    default = simulate(hosts=HOSTS, at_once=DEFAULT_AT_ONCE, run_s=RUN_S, tick_s=TICK_S, budget=2 * DEFAULT_AT_ONCE)
    return {
        "hosts": HOSTS,
        "pairs": loaded.pairs,
        "plan_ms": median(taken),
        "loaded_coverage_h": loaded.seconds / 3600,
        "loaded_sessions": loaded.sessions_at_once,
        "default_coverage_h": default.seconds / 3600,
        "default_sessions": default.sessions_at_once,
    }


BENCH = Bench(measure, {"plan_ms": "<= 100"}, "Planning probes")
