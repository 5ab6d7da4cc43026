"""Commit-confirmed: a proven rollout that nobody confirms in time is taken back, by a rollout of its own.

The parent's table goes out as a new revision on top, so that everything a rollout promises holds for the way back too.
Only the direct parent's: once something newer is current there is nothing to take back. The deadline is a row that an
idempotent tick reads.
"""

import logging
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import F, QuerySet

from audit.actions import Action
from audit.values import SYSTEM
from deploy import operations, queries
from deploy.errors import DeployError, StaleObservation
from deploy.models import Fence, Rollout
from deploy.trail import record_person

log = logging.getLogger(__name__)

State = Rollout.State
# After a rollback that was refused with nothing placed: what stopped it may be mended by then.
TRY_AGAIN_AFTER: Final = timedelta(minutes=2)


def due(*, now: datetime) -> QuerySet[Rollout]:
    """The proven rollouts whose time to be confirmed is over, and that stand as they were proven."""
    return (
        Rollout.objects.filter(state=State.PROVEN, confirm_by__lte=now, confirmed_at__isnull=True)
        .filter(subnet__fence__current_id=F("revision_id"))
        .select_related("revision", "parent", "subnet")
    )


def roll_back_due(*, now: datetime) -> list[Rollout]:
    """Begin the way back of each rollout that is due; return the rollouts that were begun. Safe to run at any time.

    What cannot begin now is tried again at the next tick, with the reason on its row.
    """
    begun = [_roll_back(rollout, now=now) for rollout in due(now=now)]
    return [rollout for rollout in begun if rollout is not None]


def _roll_back(rollout: Rollout, *, now: datetime) -> Rollout | None:
    fence = Fence.objects.get(subnet=rollout.subnet_id)
    if fence.rollout_id is not None:
        return None  # its own way back runs, or it waits behind another one
    last = rollout.undone_by.order_by("-pk").first()
    if last is not None and last.state == State.RESTORED:
        _wait(rollout, f"Rollout {last.public_id} took it back, and that did not hold: {last.cause}")
        return None
    if last is not None and last.finished_at is not None and now - last.finished_at < TRY_AGAIN_AFTER:
        _wait(rollout, f"Rollout {last.public_id} was {last.get_state_display()}: {last.cause}")
        return None
    before = queries.latest_observation(rollout.subnet)
    try:
        with transaction.atomic():
            revision = operations.propose(
                subnet=rollout.subnet,
                table=rollout.parent.partition_table(),
                parent=rollout.revision,
                actor=SYSTEM,
                reason=f"Nobody confirmed the rollout of {rollout.revision} in time.",
            )
            if before is None:
                raise StaleObservation("Nothing was read of the fabric yet.")
            undoing = operations.start(
                revision=revision, observation=before, actor=SYSTEM, reason=revision.reason, undoes=rollout
            )
            Rollout.objects.filter(pk=rollout.pk).update(not_rolled_back="")
            record_person(
                rollout,
                action=Action.ROLLOUT_ROLL_BACK,
                actor=SYSTEM,
                text=f"Nobody confirmed it in time: rollout {undoing.public_id} takes it back.",
                now=now,
            )
    except StaleObservation as stale:
        operations.request_observation(subnet=rollout.subnet, why="confirm")
        _wait(rollout, str(stale))
        return None
    except DeployError as refusal:
        _wait(rollout, str(refusal))
        return None
    log.info("rollout %s was not confirmed: %s takes it back", rollout.public_id, undoing.public_id)
    return undoing


def _wait(rollout: Rollout, why: str) -> None:
    """Say on its page why it is not taken back yet."""
    if rollout.not_rolled_back != why:
        Rollout.objects.filter(pk=rollout.pk, confirmed_at__isnull=True).update(not_rolled_back=why)
