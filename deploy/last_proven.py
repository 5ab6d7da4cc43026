"""When the fabric of a subnet was last known to hold its current revision: by a proof, or a round of the watch since.

`console/board_facts.py` asks the same within the one query of the board.
"""

from datetime import datetime
from typing import Final

from deploy.drift_models import Drift, Watch
from deploy.models import Fence, Rollout
from inventory.models import Subnet

CONTRARY: Final = (Drift.Kind.TABLE, Drift.Kind.ISOLATION_LOST)  # also before anybody believes them
PROVING: Final = (Rollout.State.PROVEN, Rollout.State.DEGRADED, Rollout.State.RESTORED)


def last_proven_at(subnet: Subnet) -> datetime | None:
    """That moment; None when there is no current revision, or nothing was ever read against it. Four queries."""
    fence = Fence.objects.filter(subnet=subnet).values("current_id", "current__created_at").first()
    if fence is None:
        return None
    proof = Rollout.objects.filter(subnet=subnet, state__in=PROVING).order_by("-pk").defer("read_back").first()
    finished_at = proof.finished_at if proof is not None else None
    times = [finished_at] if proof is not None and _proves(proof, fence["current_id"]) else []
    covered_at = Watch.objects.filter(subnet=subnet).values_list("covered_at", flat=True).first()
    if Drift.objects.filter(subnet=subnet, kind__in=CONTRARY, closed_at=None).exists():
        covered_at = None  # the round came to its end, and found that the fabric holds something else
    # A revision can become current without a proof (adoption): what was read before that was not read against it.
    placed_at = max(at for at in (finished_at, fence["current__created_at"]) if at is not None)
    if covered_at is not None and covered_at > placed_at:
        times.append(covered_at)
    return max((at for at in times if at is not None), default=None)


def _proves(proof: Rollout, current_id: int) -> bool:
    proved = proof.parent_id if proof.state == Rollout.State.RESTORED else proof.revision_id
    return proved == current_id
