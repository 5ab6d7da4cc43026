"""docs/faults.md as the bench reads it: in which states a rollout may be while a fault lasts, and where it ends.

`python -m lab.faults.expected RECORD…` writes the table anew from what `./run bench faults --record RECORD` saw.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lab.faults.matrix import PAIRS, Pair
from lab.layout import repository

PAGE: Final = "docs/faults.md"
HEAD: Final = "| at this step | this fault | while it lasts | ends in |"
RULE: Final = "|---|---|---|---|"
OR: Final = " or "
NOT_YET: Final = "not played yet"


@dataclass(frozen=True, slots=True)
class States:
    """The states that the page names for one pair; none as long as it was not played."""

    named: frozenset[str] = field(default_factory=frozenset)
    end: frozenset[str] = field(default_factory=frozenset)

    def __or__(self, other: "States") -> "States":
        return States(self.named | other.named, self.end | other.end)


def expected() -> dict[Pair, States]:
    """What the page says of each pair."""
    text = (repository() / PAGE).read_text(encoding="utf-8")
    _, _, table = text.partition(f"{HEAD}\n{RULE}\n")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    return {Pair(step, fault): States(_states(named), _states(end)) for step, fault, named, end in rows}


def _states(cell: str) -> frozenset[str]:
    return frozenset() if cell == NOT_YET else frozenset(cell.split(OR))


def seen(outcomes: Iterable[Mapping[str, Any]]) -> dict[Pair, States]:
    """What was seen of each pair, over several recordings."""
    found: dict[Pair, States] = {}
    for outcome in outcomes:
        pair = Pair(outcome["step"], outcome["fault"])
        named = {outcome["named"], outcome["after_takeover"]} - {""}
        states = States(frozenset(named), frozenset({outcome["end"]} - {""}))
        found[pair] = found.get(pair, States()) | states
    return found


def main(records: list[str]) -> int:
    """Rewrite the page's table from the page itself and the recordings."""
    page = repository() / PAGE
    lines = [line for record in records for line in Path(record).read_text(encoding="utf-8").splitlines()]
    known, new = expected(), seen(map(json.loads, lines))
    head = page.read_text(encoding="utf-8").partition(HEAD)[0]
    rows = []
    for pair in PAIRS:
        states = known.get(pair, States()) | new.get(pair, States())
        named, end = (OR.join(sorted(found)) or NOT_YET for found in (states.named, states.end))
        rows.append(f"| {pair.step} | {pair.fault} | {named} | {end} |")
    page.write_text("\n".join([head + HEAD, RULE, *rows]) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
