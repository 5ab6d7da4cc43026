"""What a person decides about a rollout that was started: cancel it, look again, confirm it, let go of it.

Reached through `deploy.operations`. Nothing here reaches a machine.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from audit.actions import Action
from audit.values import Actor
from deploy.errors import ReasonNeeded, TooLate
from deploy.models import Fence, Rollout
from deploy.story import NO_LEASE
from deploy.trail import RUN, record_person, wake

State = Rollout.State
MOST_NAMED: Final = 100  # ports in one event


def cancel(*, rollout: Rollout, actor: Actor, reason: str = "") -> Rollout:
    """End a rollout that has placed nothing yet: one that is queued or staging. Raises TooLate, with the way to take.

    What lies staged beside a file is read by nobody; the next rollout clears it away.
    """
    now = timezone.now()
    with transaction.atomic():
        # The same condition that a worker's step to PLACING asks: one of the two finds the row moved on.
        moved = Rollout.objects.filter(pk=rollout.pk, state__in=(State.QUEUED, State.STAGING)).update(
            state=State.CANCELLED,
            finished_at=now,
            cause=f"Cancelled by {actor.name}. {reason}".strip(),
            next_try_at=None,
            **NO_LEASE,
        )
        rollout.refresh_from_db()
        if moved != 1:
            raise TooLate(f"The rollout of {rollout.revision} {_too_late_to_cancel(State(rollout.state))}")
        Fence.objects.filter(rollout=rollout).update(rollout=None)
        record_person(
            rollout,
            action=Action.ROLLOUT_CANCELLED,
            actor=actor,
            text=f"Cancelled by {actor.name}.",
            reason=reason,
            now=now,
        )
    return rollout


def _too_late_to_cancel(state: State) -> str:
    """Why a rollout in `state` cannot be cancelled, and what can be done instead."""
    if state.is_over:
        return f"is {state.label} already: nothing is left to cancel."
    if state == State.RESTORING:
        return "is being taken back already. Wait until it has ended."
    if state == State.STUCK:
        return "is stuck: its files may stand on the manager hosts. Do what its page says, then let go of it."
    if state.is_waiting:
        return (
            f"is {state.label}: its file stands on the manager hosts, so there is nothing to cancel. It goes on by "
            "itself once what its page names is mended; then roll out the opposite change."
        )
    return (
        f"is {state.label} by now, and its file may already stand on a manager host: stopping between two hosts would "
        "leave them different. It ends by itself in a named state; then roll out the opposite change."
    )


def check_again(*, rollout: Rollout, actor: Actor) -> Rollout:
    """Have an UNPROVEN or DEGRADED rollout looked at now instead of at its next turn. Raises TooLate otherwise."""
    now = timezone.now()
    with transaction.atomic():
        waiting = Rollout.objects.filter(pk=rollout.pk, state__in=(State.UNPROVEN, State.DEGRADED))
        moved = waiting.update(next_try_at=now)
        rollout.refresh_from_db()
        if moved != 1:
            raise TooLate(
                f"The rollout of {rollout.revision} is {rollout.get_state_display()}: only an unproven or degraded one "
                "is looked at again."
            )
        text = f"{actor.name} asked to look again."
        record_person(rollout, action=Action.ROLLOUT_CHECK_AGAIN, actor=actor, text=text, now=now)
        wake(RUN, rollout_id=rollout.pk)
    return rollout


def confirm(*, rollout: Rollout, actor: Actor, reason: str = "") -> Rollout:
    """Keep what a rollout changed that is taken back unless a person confirms it; also before it is proven.

    Confirmed twice is confirmed once. Raises TooLate when it asks for no confirmation, ended otherwise, or is being
    taken back already.
    """
    now = timezone.now()
    with transaction.atomic():
        Fence.objects.select_for_update().get(subnet=rollout.subnet_id)  # no rollback begins meanwhile
        rollout.refresh_from_db()
        if rollout.confirmed_at is not None:
            return rollout
        if rollout.confirm_within_s is None:
            raise TooLate(f"The rollout of {rollout.revision} asks for no confirmation: it stays by itself.")
        if rollout.state in (State.REFUSED, State.CANCELLED, State.RESTORED):
            raise TooLate(
                f"The rollout of {rollout.revision} is {rollout.get_state_display()}: there is nothing to confirm."
            )
        undoing = rollout.undone_by.order_by("-pk").first()
        if undoing is not None and undoing.state not in (State.REFUSED, State.CANCELLED, State.RESTORED):
            raise TooLate(
                f"Nobody confirmed the rollout of {rollout.revision} in time: rollout {undoing.public_id} is "
                f"{undoing.get_state_display()} and takes it back. Roll the change out again after it."
            )
        Rollout.objects.filter(pk=rollout.pk).update(confirmed_at=now, not_rolled_back="")
        rollout.refresh_from_db()
        record_person(
            rollout,
            action=Action.ROLLOUT_CONFIRM,
            actor=actor,
            text=f"Confirmed by {actor.name}.",
            reason=reason,
            now=now,
        )
    return rollout


def in_the_way(rollout: Rollout) -> tuple[dict[str, Any], list[str]]:
    """What the last read-back found that a person may accept, and nobody has yet.

    Unaffected ports with another LID or state than before ({GUID: [LID, state]}), and affected ports that are absent.
    """
    found, before = rollout.read_back or {}, rollout.accepted or {"moved": {}, "absent": []}
    moved = {guid: at for guid, at in found.get("moved", {}).items() if before["moved"].get(guid) != at}
    return moved, [guid for guid in found.get("absent", []) if guid not in before["absent"]]


def name_of(moved: Mapping[str, Any], absent: Collection[str]) -> str:
    """Hex digits that name exactly these ports: what a person has looked at before saying that it may stand."""
    return hashlib.sha256(json.dumps([sorted(moved.items()), sorted(absent)]).encode()).hexdigest()[:16]


def accept(*, rollout: Rollout, actor: Actor, reason: str, seen: str | None = None) -> Rollout:
    """Let what moved beside an UNPROVEN rollout stand, so that it can be proven; `reason` says why that is right.

    Accepted is what the last read-back found (`in_the_way`), and no more; with `seen` only if that is what `name_of`
    named. Absent ports stay owed. Never a key, never a port that is there and cannot be read. Raises ReasonNeeded,
    TooLate when nothing of that kind stands in the way, or something else by now.
    """
    if not reason.strip():
        raise ReasonNeeded("Say why what moved may stand, so that the next person can read it in the trail.")
    now = timezone.now()
    with transaction.atomic():
        rollout.refresh_from_db()
        moved, absent = in_the_way(rollout)
        if rollout.state != State.UNPROVEN:
            raise TooLate(
                f"The rollout of {rollout.revision} is {rollout.get_state_display()}: nothing waits for this."
            )
        if not moved and not absent:
            raise TooLate(
                f"What keeps the rollout of {rollout.revision} unproven is not yours to accept: {rollout.cause}"
            )
        if seen is not None and seen != name_of(moved, absent):
            raise TooLate(
                f"The fabric was read again since you looked, and what stands in the way of {rollout.revision} is "
                "another list of ports now. Look at it, then decide."
            )
        before: dict[str, Any] = rollout.accepted or {"moved": {}, "absent": []}
        accepted = {
            "by": actor.name,
            "reason": reason,
            "at": now.isoformat(),
            "moved": {**before["moved"], **moved},
            "absent": sorted({*before["absent"], *absent}),
        }
        Rollout.objects.filter(pk=rollout.pk, state=State.UNPROVEN).update(accepted=accepted, next_try_at=now)
        rollout.refresh_from_db()
        record_person(
            rollout,
            action=Action.ROLLOUT_ACCEPT,
            actor=actor,
            text=f"{actor.name} lets {_counted(moved, absent)} stand.",
            reason=reason,
            now=now,
            after={"moved": sorted(moved)[:MOST_NAMED], "absent": absent[:MOST_NAMED]},
        )
        wake(RUN, rollout_id=rollout.pk)
    return rollout


def _counted(moved: Collection[str], absent: Collection[str]) -> str:
    what = [
        f"{len(ports)} {'port' if len(ports) == 1 else 'ports'} {which}"
        for ports, which in ((moved, "with another LID or state"), (absent, "that are not on the fabric"))
        if ports
    ]
    return " and ".join(what)


def release_stuck(*, rollout: Rollout, actor: Actor, reason: str) -> Rollout:
    """Let go of the subnet after a person has done what a STUCK rollout asked for; `reason` says what was done.

    Nothing is placed: the parent stays current. Raises ReasonNeeded, TooLate when it is not stuck or was released.
    """
    if not reason.strip():
        raise ReasonNeeded("Say what you found and did, so that the next person can read it in the trail.")
    now = timezone.now()
    with transaction.atomic():
        stuck = Rollout.objects.filter(pk=rollout.pk, state=State.STUCK, released_at=None)
        moved = stuck.update(released_at=now)
        rollout.refresh_from_db()
        if moved != 1:
            raise TooLate(f"The rollout of {rollout.revision} holds the subnet no longer, or is not stuck.")
        Fence.objects.filter(rollout=rollout).update(rollout=None)
        record_person(
            rollout,
            action=Action.ROLLOUT_RELEASE,
            actor=actor,
            text=f"Let go by {actor.name}.",
            reason=reason,
            now=now,
        )
    return rollout
