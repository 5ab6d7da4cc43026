"""What the SA answered to queries for PathRecords, as values. Asked by `ManagerHost.path_records`; nothing is changed.

The SA gives a path only between ports that share a usable P_Key, and shows it only to an asker that shares one with
both (ground truth: opensm). So an empty answer says something only beside who asked and what else it was given.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from subnet.guid import GUID

MOST_PAIRS = 64  # of one call: the wrapper takes no more

_LINE = re.compile(
    r"(0x[0-9a-f]{16}) (0x[0-9a-f]{16}) "
    r"(?:(found) (0x[0-9a-f]{4}) ([0-9]{1,5}) ([0-9]{1,5})|(refused)|(unanswered) ([a-z0-9_]{1,40}))\Z"
)


class Answer(StrEnum):
    """How the SA answered to one query."""

    FOUND = "found"
    REFUSED = "refused"  # it has no such record (status 0x0300)
    UNANSWERED = "unanswered"  # no answer in time, or another status


@dataclass(frozen=True, slots=True)
class PathAnswer:
    """The answer about one pair. `pkey` as the record has it ("0x8010") and the LIDs when found, else `why`."""

    source: GUID
    target: GUID
    answer: Answer
    pkey: str = ""
    slid: int = 0
    dlid: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class PathAnswers:
    """The answers in the order of the questions, and who asked whom: `sm_guid` is "" if that port did not answer.

    `default_entry` is what the asking port holds of Default, 0xffff for a full member, "" for none.
    """

    asker: GUID
    default_entry: str
    sm_lid: int
    sm_guid: str
    answers: tuple[PathAnswer, ...]

    @property
    def is_asker_full(self) -> bool:
        """Whether the asker is a full member of Default, so that the SA hides no path of a member from it."""
        return self.default_entry == "0xffff"


class PathVerbs(Protocol):
    """A manager host that can be asked about paths."""

    @property
    def name(self) -> str:
        """The manager host's name."""

    def path_records(self, pairs: Sequence[tuple[GUID, GUID]], *, timeout_s: float) -> PathAnswers:
        """Ask the master's SA for a path from the first to the second port of each pair, at most MOST_PAIRS.

        Raises ValueError for none or too many, OpenSMNotRunning when the port follows no SM, ReaderFailed, and
        whatever a call may raise.
        """


def parse_answer(line: str) -> PathAnswer:
    """One line of the reader's answer. Raises ValueError."""
    match = _LINE.match(line)
    if match is None:
        raise ValueError(f"“{line[:120]}” is no answer about a path.")
    source, target, found, pkey, slid, dlid, refused, _, why = match.groups()
    if found:
        return PathAnswer(GUID(source), GUID(target), Answer.FOUND, pkey=pkey, slid=int(slid), dlid=int(dlid))
    if refused:
        return PathAnswer(GUID(source), GUID(target), Answer.REFUSED)
    return PathAnswer(GUID(source), GUID(target), Answer.UNANSWERED, why=why.replace("_", " "))
