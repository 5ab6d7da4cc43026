"""Which lines of OpenSM's log count against a rollout. Pure; some port of a large fabric is always sick.

Only partition errors count, and errors that name an affected port (ground truth: OpenSM, 3 and 10; read-back, 2).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from subnet.guid import GUID

MOST_LINES: Final = 10
# osm_prtn_config.c and osm_prtn.c: the file was refused, and every port became a full member of Default.
_PARTITION = re.compile(r"PARSE ERROR: line|Partition configuration in error")
_ERROR = re.compile(r"\bERR [0-9A-F]{4}\b")
_HEX = re.compile(r"\b(?:0x)?([0-9a-f]{16})\b")


@dataclass(frozen=True, slots=True)
class CountedLines:
    """`partition`: OpenSM refused the file. `ports`: errors that name an affected port. At most ten of each."""

    partition: tuple[str, ...]
    ports: tuple[str, ...]


def counted(log: bytes, affected: Iterable[GUID]) -> CountedLines:
    """Pick the lines of `log` that count; `affected` are port and node GUIDs that the rollout touches."""
    guids = {guid[2:] for guid in affected}
    partition: list[str] = []
    ports: list[str] = []
    for line in log.decode("utf-8", "replace").splitlines():
        if _PARTITION.search(line):
            partition.append(line.strip())
        elif _ERROR.search(line) and any(found in guids for found in _HEX.findall(line.lower())):
            ports.append(line.strip())
    return CountedLines(tuple(partition[:MOST_LINES]), tuple(ports[:MOST_LINES]))
