"""How a rollout is named in the trail, what a person's decision about it leaves there, and who is woken by it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.db import transaction

from audit import nudge
from audit.actions import Action
from audit.record import record
from audit.values import Actor, Subject
from deploy.models import Rollout, RolloutStep

RUN: Final = "deploy.tasks.run_rollout"
OBSERVE: Final = "deploy.tasks.observe"


def subject_of(rollout: Rollout) -> Subject:
    """The rollout as an event names it."""
    label = f"revision {rollout.revision.number} of {rollout.subnet}"
    return Subject(kind="rollout", key=rollout.public_id, label=label)


def record_person(
    rollout: Rollout,
    *,
    action: Action,
    actor: Actor,
    text: str,
    now: datetime,
    reason: str = "",
    after: Mapping[str, Any] | None = None,
) -> None:
    """Write the step and the event of what `actor` decided; call it last in the decision's transaction."""
    RolloutStep.objects.create(rollout=rollout, at=now, state=rollout.state, text=f"{text} {reason}".strip())
    told = {"revision": rollout.revision.number, "state": rollout.state, **(after or {})}
    record(
        action=action,
        actor=actor,
        subject=subject_of(rollout),
        after=told,
        reason=reason,
        revision_key=rollout.revision.public_id,
    )


def wake(task: str, **ids: int) -> None:
    """Have a worker look once this transaction is committed. It may be asleep: the tick finds the row anyway."""
    transaction.on_commit(lambda: nudge.task(task, ids), robust=True)
