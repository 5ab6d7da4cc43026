"""An older database comes back while the manager hosts went on: what FabricUI then does not know, it must not touch."""

import time
from typing import TYPE_CHECKING

from lab.errors import LabError
from lab.faults.causes import database_copy, put_newer_database, put_older_database
from lab.faults.points import STEPS
from lab.faults.scene import Scene

if TYPE_CHECKING:
    from lab.faults.play import Outcome


def play(scene: Scene, outcome: "Outcome") -> None:
    """Play one of the two pairs; `outcome` is filled in."""
    from lab.faults.play import judge

    scene.is_read = False  # what the older database read last is not what the fabric holds
    if outcome.pair.step == "after PROVEN":
        _after_proven(scene, outcome)
    else:
        _midway(scene, outcome)
    judge(scene, outcome)


def _midway(scene: Scene, outcome: "Outcome") -> None:
    """The rollout placed its files when the database falls back to before it was begun; it is begun anew."""
    from lab.faults.play import judge

    database_copy(scene)
    rollout = scene.begin()
    scene.worker = scene.crew.start(rollout.pk, STEPS[outcome.pair.step])
    if scene.worker.next_stop() is None:
        raise LabError(f"The step was not reached: {scene.played.cause}")
    scene.worker.kill()
    put_older_database(scene)
    began = time.monotonic()
    scene.begin()
    outcome.named = scene.until_named_anew()
    outcome.seconds = time.monotonic() - began
    judge(scene, outcome)
    outcome.end = scene.until_over()


def _after_proven(scene: Scene, outcome: "Outcome") -> None:
    """A rollout is PROVEN, then the database is one that knows nothing of it, and something else is rolled out."""
    from lab.faults.play import judge

    database_copy(scene)
    rollout = scene.begin()
    scene.crew.start(rollout.pk).wait()
    if scene.played.state != "PROVEN":
        raise LabError(f"The rollout before ended {scene.played.state}: {scene.played.cause}")
    put_older_database(scene)
    began = time.monotonic()
    scene.begin(handover=False)  # another change than the one that was proven
    outcome.named = scene.until_named_anew()
    outcome.seconds = time.monotonic() - began
    judge(scene, outcome)
    put_newer_database(scene)
    scene.begin()
    outcome.end = scene.until_named_anew()
