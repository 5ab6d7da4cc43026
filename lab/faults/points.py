"""The named moments of a rollout at which a worker of the lab can be stopped."""

from dataclasses import dataclass
from typing import Final

MASTER, STANDBY = "master", "standby"


@dataclass(frozen=True, slots=True)
class Point:
    """The moment before (or after) a worker calls `call` on a manager host while the rollout is in `state`.

    `host` is `master` or `standby` by the roles at the start, "" for any. The call `advance` is the transition into
    state `to`, which asks nobody.
    """

    state: str
    call: str
    host: str = ""
    when: str = "before"
    to: str = ""


# What is about to happen when the worker is stopped there, in the order of a rollout; the words name the step.
STEPS: Final = {
    "QUEUED, a worker has it": Point("QUEUED", "advance", to="STAGING"),
    "STAGING, before the standby's file": Point("STAGING", "stage", STANDBY),
    "STAGING, all files staged": Point("STAGING", "advance", to="PLACING"),
    "PLACING, before the standby": Point("PLACING", "place", STANDBY),
    "PLACING, before the master": Point("PLACING", "place", MASTER),
    "PLACING, after the master": Point("PLACING", "advance", to="RELOADING"),
    "RELOADING, before the signal": Point("RELOADING", "reload", MASTER),
    "RELOADING, after the signal": Point("RELOADING", "advance", to="READING_BACK"),
    "READING_BACK, before the barrier": Point("READING_BACK", "barrier", MASTER),
    "READING_BACK, after the barrier": Point("READING_BACK", "read_tables", MASTER),
    "READING_BACK, before the verdict": Point("READING_BACK", "advance", to="PROVEN"),
    "RESTORING, before the master": Point("RESTORING", "place", MASTER),
    "RESTORING, before the standby": Point("RESTORING", "place", STANDBY),
    "RESTORING, before the barrier": Point("RESTORING", "barrier", MASTER),
    "RESTORING, before the verdict": Point("RESTORING", "advance", to="RESTORED"),
}
# How a rollout gets into RESTORING: somebody puts the former file back by hand while it is read back.
TURNING: Final = Point("READING_BACK", "barrier", MASTER)
