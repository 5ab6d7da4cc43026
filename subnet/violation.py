"""A rule that a partition table breaks, as a value."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["refuse", "warn"]


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a table breaks: which, how bad, where (a port GUID, a P_Key or `table`), and a sentence."""

    rule: str
    severity: Severity
    where: str
    sentence: str
