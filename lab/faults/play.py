"""One pair played: the rollout stopped at the step, the fault done, the state it names, the mending, the end.

Whatever the promises say is checked here as an onlooker would, by the rows, the page and the trail; the invariants of
the fabric are the observer's.
"""

import html
import time
import traceback
from dataclasses import dataclass, field
from typing import Any

from lab.errors import LabError
from lab.faults import older
from lab.faults.causes import FAULTS, Fault, excuses, nothing, put_former_file_back, unsaid
from lab.faults.expected import PAGE, States, expected
from lab.faults.matrix import OLDER, Pair
from lab.faults.points import STEPS, TURNING
from lab.faults.scene import Scene
from lab.layout import wait_until

TAKEOVER_S = 30.0


@dataclass
class Outcome:
    """What became of one pair. `objections` are sentences; none of them means that every promise was kept."""

    pair: Pair
    named: str = ""  # the first state in which the rollout waited for something, or was over
    seconds: float = 0.0  # from the fault to that state
    after_takeover: str = ""  # the state once the standby had become master, where it does
    end: str = ""  # the state after mending
    cause: str = ""  # what the page said while the fault lasted
    whole_s: float = 0.0
    objections: list[str] = field(default_factory=list)
    violations: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain values, one line of `--list`."""
        return {
            "step": self.pair.step, "fault": self.pair.fault, "named": self.named, "seconds": round(self.seconds, 2),
            "after_takeover": self.after_takeover, "end": self.end, "cause": self.cause,
            "whole_s": round(self.whole_s, 2), "objections": self.objections, "violations": self.violations,
        }  # fmt: skip


def play(scene: Scene, pair: Pair) -> Outcome:
    """Play one pair and leave the lab whole. Never raises for what the product does: that is an objection."""
    outcome = Outcome(pair)
    began = time.monotonic()
    seen = len(scene.observer.found)
    try:
        if pair in OLDER:
            older.play(scene, outcome)
        else:
            _play(scene, outcome)
    except Exception as problem:  # whatever it is, the other pairs are still to be played
        outcome.objections.append(f"{type(problem).__name__}: {problem}")
        traceback.print_exc()
    outcome.objections += _against_the_page(outcome)
    scene.make_whole(is_settled=_is_settled(outcome))
    outcome.violations = scene.observer.found[seen:]
    outcome.whole_s = time.monotonic() - began
    return outcome


def _is_settled(outcome: Outcome) -> bool:
    """Whether the fabric is known to be whole without another sweep."""
    fault = FAULTS.get(outcome.pair.fault)
    if fault is None:
        return False
    if fault.is_beside:
        return outcome.end in ("PROVEN", "RESTORED", "REFUSED")
    lasted = fault.mend is not nothing and outcome.named == outcome.end
    return outcome.end == "PROVEN" and not lasted


def _against_the_page(outcome: Outcome) -> list[str]:
    """What docs/faults.md says otherwise."""
    said = expected().get(outcome.pair, States())
    if not said.end:
        return []  # a figure of the bench counts the pairs that the page does not know
    named = {outcome.named, outcome.after_takeover} - {""}
    return [
        f"{PAGE} knows {' or '.join(sorted(known)) or 'no state'} {when}, and this was {' and '.join(sorted(was))}."
        for when, was, known in (("while it lasts", named, said.named), ("at the end", {outcome.end}, said.end))
        if not was <= known
    ]


def _play(scene: Scene, outcome: Outcome) -> None:
    fault = FAULTS[outcome.pair.fault]
    point = STEPS[outcome.pair.step]
    stops = (TURNING, point) if point.state == "RESTORING" else (point,)
    _begin(scene, fault, stops)
    worker = scene.worker
    if worker is None:
        raise LabError("no worker was started")
    if len(stops) > 1:
        put_former_file_back(scene, worker.next_stop())
        worker.go()
    if worker.next_stop() is None:
        raise LabError(f"The step was not reached: the rollout is {scene.played.state}: {scene.played.cause}")
    scene.observer.tell(excused=excuses(scene, fault))
    scene.undo.append(lambda: fault.mend(scene))
    began = time.monotonic()
    fault.apply(scene)
    worker.go(jump_s=fault.jump_s)
    outcome.named = scene.until_named()
    outcome.seconds = time.monotonic() - began
    if not fault.with_celery:
        worker.wait()  # one that was overtaken has yet to find that out, and must leave everything as it is
    judge(scene, outcome)
    # PROVEN all the same, or restored by the very verdict that was about to be stored: it cannot know of the fault.
    is_whole = outcome.named == "PROVEN" or point.to == outcome.named == "RESTORED"
    if not is_whole and (words := unsaid(scene, fault, scene.played.cause)):
        outcome.objections.append(f"The cause does not say {' or '.join(words)}: {scene.played.cause}")
    if fault.takeover:
        scene.site.wait_for_master(scene.standby.name, timeout_s=TAKEOVER_S)
        outcome.after_takeover = _after_takeover(scene, outcome.named)
        judge(scene, outcome)
    scene.undo.pop()()
    outcome.end = scene.until_over()
    if fault.with_celery:
        _drain(scene)
    judge(scene, outcome)


def _begin(scene: Scene, fault: Fault, stops: Any) -> None:
    if fault.with_celery:
        scene.uses_celery = True
        scene.start_broker()
        scene.worker = scene.crew.start_celery(*stops)
        scene.begin()
    else:
        rollout = scene.begin()
        scene.worker = scene.crew.start(rollout.pk, *stops)


def _after_takeover(scene: Scene, named: str) -> str:
    """Look again now that the standby is master, until that shows in the state, or the rollout is over."""
    if named not in ("UNPROVEN", "RESTORING"):
        return named
    deadline = time.monotonic() + TAKEOVER_S

    def moved_on() -> str | None:
        state = str(scene.played.state)
        if state not in ("UNPROVEN", "RESTORING") or time.monotonic() > deadline:
            return state
        scene.look_again()
        return None

    return str(wait_until(moved_on, timeout_s=TAKEOVER_S + 10, what="a look after the takeover", pause_s=0.3))


def _drain(scene: Scene) -> None:
    """Let the queue run empty, and see that what was delivered again did nothing."""
    from celery import current_app

    steps = scene.played.steps.count()

    def is_empty() -> bool:
        with current_app.connection_for_read() as connection:
            channel: Any = connection.default_channel  # the Redis transport's
            return int(channel.client.llen("rollout")) == 0

    wait_until(is_empty, timeout_s=20, what="the queue to run empty")
    if scene.played.steps.count() != steps:
        raise LabError("A rollout that was over went on when it was delivered again.")


def judge(scene: Scene, outcome: Outcome) -> None:
    """Object to a state that is not named, not explained, or not told by the trail."""
    from deploy.models import Rollout

    rollout = scene.played
    if rollout.state not in Rollout.State.values:
        outcome.objections.append(f"{rollout.state} is no state.")
    if rollout.state == Rollout.State.REFUSED and rollout.outcomes.exclude(placed_at=None).exists():
        outcome.objections.append("REFUSED, and yet something was placed.")
    if rollout.state != Rollout.State.PROVEN:
        outcome.cause = rollout.cause
        said = (rollout.pk, str(rollout.state), rollout.cause)
        if said not in scene.explained:
            scene.explained.add(said)
            outcome.objections += [*_unexplained(scene, rollout)]
    outcome.objections += [*_untold(rollout)]


def _unexplained(scene: Scene, rollout: Any) -> list[str]:
    from django.test import Client
    from django.urls import reverse

    if not rollout.cause.strip():
        return [f"{rollout.state} has no cause."]
    client = Client()
    client.force_login(scene.operator, backend="allauth.account.auth_backends.AuthenticationBackend")
    response = client.get(reverse("console:rollout", args=[rollout.public_id]))
    page = " ".join(html.unescape(response.content.decode()).split())
    if response.status_code != 200:
        return [f"The page of a rollout in {rollout.state} answers {response.status_code}."]
    said = " ".join(rollout.cause.split())
    return [] if said in page else [f"The page of {rollout.state} does not show its cause: {said[:200]}"]


def _untold(rollout: Any) -> list[str]:
    from audit import chain
    from audit.models import Event

    report = chain.verify()
    found = [] if report.is_sound else [f"The trail does not verify: {report}"]
    events = Event.objects.filter(subject_kind="rollout", subject_key=rollout.public_id).order_by("number")
    moves: list[tuple[Any, Any]] = [(event.before or {}, event.after or {}) for event in events]
    told = [after["state"] for before, after in moves[:1]] + [
        after["state"] for before, after in moves[1:] if "state" in before
    ]
    left = [before["state"] for before, _ in moves[1:] if "state" in before]
    found += [
        f"The trail jumps from {was} to {before}: {' → '.join(told)}."
        for was, before in zip(told, left, strict=False)
        if was != before
    ]
    if told[-1:] != [rollout.state]:
        found.append(f"The trail ends at {told[-1:]}, the rollout is {rollout.state}.")
    stood = list(rollout.steps.order_by("pk").values_list("state", flat=True))
    if set(told) - set(stood):
        found.append(f"No step of the story tells of {sorted(set(told) - set(stood))}.")
    return found
