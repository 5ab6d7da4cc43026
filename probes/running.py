"""Run one queued probe: begin it once, measure, store. The worker of queue `probe` calls it; it alone holds the key."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone

from audit import nudge
from probes import results
from probes.errors import ProbeRefused
from probes.models import ProbeHost, ProbeRun
from probes.orders import order_of
from probes.terms import Kind, Order, Outcome, RunResult

RUN_TAKES_AT_MOST_S: Final = 90.0  # connect, set up, transfer, verify, clean up
PATIENT_RUN_TAKES_AT_MOST_S: Final = 200.0  # the same between emulated hosts
GRACE: Final = timedelta(seconds=60)  # after which a run whose worker is silent counts as lost

type Measure = Callable[[ProbeHost, ProbeHost, Order, float], RunResult]


def run(*, run_id: int, measure: Measure, clock: Callable[[], datetime] = timezone.now) -> ProbeRun.State | None:
    """Bring one run to its end and return how it ended; None if it is not this worker's to run.

    `measure(sender, target, order, deadline_s)` reaches the two hosts and never raises for what can be expected
    there. What it raises all the same is a bug: the run is stored as failed, so that it blocks nobody, and the error
    goes on to the worker's log.
    """
    row = _begin(run_id, clock())
    if row is None:
        return None
    try:
        order = order_of(row)
    except ProbeRefused as refusal:
        return results.drop(row, reason=str(refusal), now=clock())
    try:
        patience_s = PATIENT_RUN_TAKES_AT_MOST_S if row.scope.is_patient else RUN_TAKES_AT_MOST_S
        result = measure(row.sender, row.target, order, patience_s)
    except Exception as error:
        result = RunResult(
            outcome=Outcome.HOST_ERROR,
            kind=Kind(row.kind),
            reason=f"FabricUI's own probe worker failed: {type(error).__name__}.",
            advice="This is a fault of FabricUI, not of the hosts. The worker's log has the details.",
        )
        results.store(row, order=order, result=result, now=clock())
        raise
    ended = results.store(row, order=order, result=result, now=clock())
    nudge.task("probes.tasks.tick", {})  # its hosts are free: the next pair need not wait for the tick
    return ended


def _begin(run_id: int, now: datetime) -> ProbeRun | None:
    """Take the run, unless another worker has it or it is over."""
    takeable = ProbeRun.objects.filter(pk=run_id, state=ProbeRun.State.CLAIMED)
    until = now + timedelta(seconds=PATIENT_RUN_TAKES_AT_MOST_S) + GRACE
    if not takeable.update(state=ProbeRun.State.RUNNING, started_at=now, claimed_until=until):
        return None
    return ProbeRun.objects.whole().get(pk=run_id)
