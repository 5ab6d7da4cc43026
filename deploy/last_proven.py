"""When the fabric of a subnet was last known to hold its current revision: by a proof, or a round of the watch since.

The board has the same facts from the one query of its page and asks `newest` and `proves` (`console/board_facts.py`).
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
    is_of_current = proof is not None and fence["current_id"] == proves(
        proof.state, revision_id=proof.revision_id, parent_id=proof.parent_id
    )
    covered_at = Watch.objects.filter(subnet=subnet).values_list("covered_at", flat=True).first()
    if Drift.objects.filter(subnet=subnet, kind__in=CONTRARY, closed_at=None).exists():
        covered_at = None  # the round came to its end, and found that the fabric holds something else
    return newest(
        proof_at=proof.finished_at if proof is not None else None,
        is_of_current=is_of_current,
        became_current_at=fence["current__created_at"],
        covered_at=covered_at,
    )


def proves[Key](state: str, *, revision_id: Key, parent_id: Key) -> Key:
    """The key of the revision that a rollout of PROVING has proven: a restore proves the one before its own."""
    return parent_id if state == Rollout.State.RESTORED else revision_id


def newest(
    *, proof_at: datetime | None, is_of_current: bool, became_current_at: datetime, covered_at: datetime | None
) -> datetime | None:
    """The newer one of the last proof, if it is of the current revision, and the last whole round, if it is later.

    A revision can become current without a proof (adoption): what was read before that was not read against it.
    """
    placed_at = max(filter(None, (proof_at, became_current_at)))
    times = (proof_at if is_of_current else None, covered_at if covered_at and covered_at > placed_at else None)
    return max(filter(None, times), default=None)
