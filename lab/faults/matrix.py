"""Which fault is tried at which step, and in which states the rollout may then be: the list that docs/faults.md shows.

Every step is crossed with the four faults of `CROSSED`; each further fault is tried where it hurts.
"""

from dataclasses import dataclass
from itertools import product
from typing import Final

from lab.faults.points import STEPS

CROSSED: Final = ("worker killed", "SSH cut", "master killed", "standby killed")

_QUEUED, _STAGE, _STAGED, _PLACE_STANDBY, _PLACE_MASTER, _PLACED, _RELOAD, _RELOADED, _BARRIER, _READ, _VERDICT = list(
    STEPS
)[:11]
_BACK_MASTER, _BACK_STANDBY, _BACK_BARRIER, _BACK_VERDICT = list(STEPS)[11:]

_FURTHER: Final = {
    "disk of the standby full": (_STAGE, _PLACE_STANDBY, _BACK_STANDBY),
    "disk of the master full": (_PLACE_MASTER, _BACK_MASTER),
    "disk of the standby read-only": (_STAGE, _PLACE_STANDBY),
    "disk of the master read-only": (_STAGE, _PLACE_MASTER),
    "wrong owner": (_STAGE, _PLACE_MASTER),
    "SSH of the standby cut": (_STAGE, _PLACE_STANDBY, _BARRIER),
    "sshd hangs after accept": (_QUEUED, _PLACE_MASTER, _BARRIER),
    "host key changed": (_QUEUED, _PLACE_MASTER, _RELOAD),
    "both SMs restarted": (_STAGED, _PLACED, _BARRIER),
    "foreign sweep": (_PLACE_MASTER, _PLACED, _READ),
    "link flap": (_PLACE_MASTER, _READ),
    "hand edit of the master's file": (_QUEUED, _BARRIER),
    "CRLF in the master's file": (_QUEUED, _BARRIER),
    "hand edit of the standby's file": (_RELOAD,),
    "unreadable unaffected port": (_RELOAD,),
    "SET refused on a moved port": (_PLACE_MASTER,),
    "server reboots": (_RELOAD, _READ),
    "third SM takes over": (_STAGE, _PLACE_STANDBY, _BARRIER),
    "third SM stands by": (_RELOAD,),
    "wrong -P": (_QUEUED, _RELOAD),
    "clock jumps ahead": (_RELOAD,),
    "clock jumps back": (_BARRIER,),
    "second worker": (_PLACE_MASTER,),
    "overtaken by another worker": (_PLACE_MASTER, _RELOAD),
    "duplicate delivery": (_PLACED,),
    "Redis restarted": (_PLACED,),
    "PostgreSQL restarted": (_PLACE_STANDBY, _BARRIER),
}


@dataclass(frozen=True, slots=True)
class Pair:
    """One fault at one step."""

    step: str
    fault: str

    def __str__(self) -> str:
        return f"{self.step} × {self.fault}"


# Played by a script of their own (`lab/faults/older.py`): the database that comes back is an older one.
OLDER: Final = (
    Pair("PLACING, after the master", "older database restored"),
    Pair("after PROVEN", "older database restored"),
)

PAIRS: Final = (
    *(Pair(step, fault) for step, fault in product(STEPS, CROSSED)),
    *(Pair(step, fault) for fault, steps in _FURTHER.items() for step in steps),
    *OLDER,
)
