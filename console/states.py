"""What each state of a rollout means: what is true now, what FabricUI does, and what a person can do.

The same three questions as in docs/operating.md, in the words of one rollout. Pure: no Django, no clock.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Meaning:
    """Three answers in sentences, and the section of docs/operating.md that says more."""

    now: str
    doing: str
    person: str


def meaning(
    state: str, *, revision: int, parent: int, is_released: bool = False, placed: int = 0, awaits: bool = False
) -> Meaning:
    """The answers for a rollout of `revision` on `parent`; `placed` counts the hosts that hold the new file.

    `awaits` says that it is taken back unless somebody confirms it.
    """
    new, old = f"revision {revision}", f"revision {parent}"
    if state == "STUCK" and is_released:
        return Meaning(
            f"The rollout ended without a proof, and {old} counts as current. A person has let go of the subnet.",
            "Nothing. The fabric is read anew before the next plan.",
            "Roll out again, or something else.",
        )
    if state == "PROVEN" and awaits:
        return Meaning(
            f"{_cap(new)} is in force, and was read from the fabric itself.",
            f"Counts down. Unless somebody confirms it, the table of {old} goes out again as a rollout of its own.",
            "Look whether everything works, then confirm it.",
        )
    answers = {
        "QUEUED": (
            f"Nothing has happened on any host: {old} is in force.",
            "Waits for the rollout worker, which begins within seconds.",
            "Cancel it if you like. If it stays queued, the worker of the queue rollout is not running: ./run doctor.",
        ),
        "STAGING": (
            f"{_cap(old)} is in force. The new file is put beside the old one, where OpenSM does not read it.",
            "Checks every manager host and the fabric, and lays the file down. Any fault ends it as refused.",
            "Wait, or cancel it: nothing is placed yet, and nothing needs to be undone.",
        ),
        "PLACING": (
            f"The file of {new} is renamed into place: {placed} host{'' if placed == 1 else 's'} so far. From the "
            "master’s on, any sweep may read it.",
            "Goes through the standbys, then the master. If it fails, the file of "
            f"{old} goes back; if the worker dies, the next one goes on.",
            "Wait. Do not restart OpenSM and do not edit the files.",
        ),
        "RELOADING": (
            f"Every host holds {new}, and OpenSM may be reading it already.",
            "Tells the master’s OpenSM to read it now (SIGHUP).",
            "Wait. Do not restart OpenSM and do not edit the files.",
        ),
        "READING_BACK": (
            f"OpenSM has been told to read {new}. What the ports hold is not known yet.",
            "Waits until the sweep is over, then reads every port’s P_Key table and compares.",
            "Wait. A large fabric takes some seconds.",
        ),
        "RESTORING": (
            f"The fabric contradicted {new}, so ports may hold keys of either revision for some seconds.",
            f"Puts {old} back, the master first, and reads every table again.",
            "Wait. Afterwards the discrepancies below say what was wrong.",
        ),
        "PROVEN": (
            f"{_cap(new)} is in force, and was read from the fabric itself.",
            "Nothing more. Ports that were absent or unreadable are looked at when they return.",
            "Nothing.",
        ),
        "REFUSED": (
            f"Nothing was placed: {old} is in force, and the fabric was not touched.",
            "Nothing.",
            "Mend what the cause above names, then roll out again.",
        ),
        "CANCELLED": (
            f"Nothing was placed: {old} is in force.",
            "Nothing.",
            "Roll out again when you like; what was staged is still staged.",
        ),
        "RESTORED": (
            f"{_cap(old)} is in force again, and was read from the fabric. {_cap(new)} is not.",
            "Nothing.",
            "Read the discrepancies, mend their cause, and roll out again: what was staged is still staged.",
        ),
        "UNPROVEN": (
            f"The file of {new} is placed, and what the ports hold is not known. The former revision is not put back "
            "out of ignorance: it could undo what is right.",
            "Looks again by itself, more and more seldom, and ends as proven or restored once it can read.",
            "Mend what the cause above names (bring the host back, end the foreign sweeps), then check again.",
        ),
        "DEGRADED": (
            f"{_cap(new)} is proven on the fabric. One manager host does not hold it: a takeover by that host would "
            "bring back what its file says.",
            "Places it there as soon as the host answers, and ends as proven.",
            "Do not fail over and do not restart the master. Bring that host back, then check again; if it is gone for "
            "good, retire it on the Managers page.",
        ),
        "STUCK": (
            f"What the ports hold agrees with neither {new} nor {old}, or a stranger rules the fabric. {_cap(old)} "
            "counts as current.",
            "Nothing, and no other rollout starts: each step could make it worse.",
            "Do what the cause above says, on the fabric or the host. Then say what you did and let go of the subnet.",
        ),
    }
    return Meaning(*answers[state])


def _cap(text: str) -> str:
    return text[0].upper() + text[1:]
