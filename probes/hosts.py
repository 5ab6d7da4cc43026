"""The room's only way to machines: a pair's two shells, through `remote`, and one run over them."""

from probes.models import ProbeHost
from probes.terms import Order, RunResult


def measure(sender: ProbeHost, target: ProbeHost, order: Order, deadline_s: float) -> RunResult:
    """Run `order` between two hosts; every expected failure is an outcome of the result."""
    raise NotImplementedError
