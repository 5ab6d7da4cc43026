"""The fabric of the plan and render benchmarks is what they say, so that their figures are of that job."""

import argparse

from lab import bench_table
from subnet.partitions_conf import Header, parse_strict, render
from subnet.plan import diff
from subnet.policy import Limits, check


def test_one_server_moves_and_every_port_was_read():
    current, wanted = bench_table.a_table(400), bench_table.a_table(400, moved=True)
    seen = bench_table.a_fabric(current)
    plan = diff(current, wanted, seen)
    assert len(plan.ports) == len(plan.predictions) == bench_table.PORTS_PER_SERVER
    assert len(plan.changes) == 2 * bench_table.PORTS_PER_SERVER
    assert len(seen.ports) == 402
    refused = check(wanted, Limits(64), sm_ports_registered=bench_table.SM_PORTS)
    assert not [violation for violation in refused if violation.severity == "refuse"]
    assert parse_strict(render(wanted, Header("lab", 1))).table == wanted


def test_the_figures_are_those_that_the_targets_name(monkeypatch):
    monkeypatch.setattr(bench_table, "_seconds", lambda run, runs: (0.5, 0.25))
    monkeypatch.setattr(bench_table, "a_table", lambda ports, moved=False: bench_table.PartitionTable(()))
    arguments = argparse.Namespace(servers=5, hcas=8, runs=1)
    for bench in (bench_table.PLAN, bench_table.RENDER):
        figures = bench.measure(arguments)
        assert figures["ports"] == 40
        assert bench.targets.keys() <= figures.keys()
        assert figures["growth_per_port"] == 0.03
