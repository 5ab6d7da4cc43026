"""The matrix of senders and targets as a page draws it: what each cell says and how, up to 64 hosts a side.

Pure. Above 64 hosts neighbours by name share a block, and a cell shows the worst of its pairs: a mean would hide the
one bad cable that the page is there for.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from probes.terms import Outcome

LARGEST: Final = 64
LEVELS: Final = (50, 70, 80, 90, 95)  # per cent at which the next colour begins
OLD_AFTER: Final = timedelta(hours=24)


class Scale(StrEnum):
    """What 100 % is. Software and TCP have no negotiated rate, latency none at all: then it is the best pair here."""

    LINE = "line"
    BEST = "best"


@dataclass(frozen=True, slots=True)
class Node:
    """A host as row and column: its public id and name."""

    key: str
    name: str


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest run of a pair. `value` is Gb/s or, of a latency profile, ns; None when it failed."""

    sender: str
    target: str
    outcome: str
    verdict: str
    at: datetime
    value: float | None
    pct_line: float | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its CSS classes, what stands in it, and the whole of it in words."""

    classes: str
    text: str
    words: str
    sender: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One sender, or block of senders."""

    title: str
    key: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The whole table; `blocks` says that rows and columns are several hosts each."""

    scale: Scale
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    blocks: bool
    tested: int
    failed: int
    pairs: int


@dataclass(frozen=True, slots=True)
class Block:
    """What is known of the pairs between two groups of hosts, counted where the rows are.

    `worst` is the worst value (Gb/s, or ns of a latency profile), `worst_pct` the worst share of a line.
    """

    row: int
    column: int
    tested: int
    failed: int
    bad: int
    oldest: datetime
    worst: float | None
    worst_pct: float | None
    best: float | None


def draw_blocks(nodes: Sequence[Node], blocks: Iterable[Block], *, is_latency: bool, now: datetime) -> HeatMap:
    """Draw more than 64 hosts from what was counted; `Block.row` and `.column` are places in `grouped(nodes)`."""
    groups = grouped(nodes)
    found = {(block.row, block.column): block for block in blocks}
    has_line = not is_latency and any(block.worst_pct is not None for block in found.values())
    scale = Scale.LINE if has_line else Scale.BEST
    values = [block.best for block in found.values() if block.best is not None]
    best = None if not values else min(values) if is_latency else max(values)
    rows = []
    for row, line in enumerate(groups):
        cells = []
        for column, other in enumerate(groups):
            pairs = len(line) * len(other) - (len(line) if row == column else 0)
            block = found.get((row, column))
            cells.append(_cell_of(block, pairs, scale=scale, best=best, is_latency=is_latency, now=now))
        rows.append(Row(_title(line), "", tuple(cells)))
    return HeatMap(
        scale, tuple(map(_title, groups)), tuple(rows), True, sum(block.tested for block in found.values()),
        sum(block.failed for block in found.values()), len(nodes) * (len(nodes) - 1),
    )  # fmt: skip


def _cell_of(
    block: Block | None, pairs: int, *, scale: Scale, best: float | None, is_latency: bool, now: datetime
) -> Cell:
    if block is None:
        return Cell("heat-none", "", f"{pairs} pairs: not tested")
    age = f", {_age(now - block.oldest)} old"
    classes = " heat-old" if now - block.oldest > OLD_AFTER else ""
    percent = block.worst_pct
    if scale is Scale.BEST and best and block.worst:
        percent = 100 * (best / block.worst if is_latency else block.worst / best)
    if block.failed or percent is None:
        failed = block.failed or block.tested
        return Cell(f"heat-failed{classes}", f"✕{failed}", f"{pairs} pairs: {failed} failed{age}")
    if block.bad:
        classes += " heat-bad"
    of = "of the line" if scale is Scale.LINE else "of the best pair"
    words = f"{pairs} pairs: worst of {block.tested} tested: " + f"{percent:.1f} % {of}{age}"
    return Cell(f"heat-{level_of(percent)}{classes}", str(int(percent)), words)


def draw(nodes: Sequence[Node], newest: Iterable[Newest], *, is_latency: bool, now: datetime) -> HeatMap:
    """Draw the matrix of `nodes`, in their order; `newest` may name hosts that are no longer there."""
    by_pair = {(item.sender, item.target): item for item in newest}
    names = {node.key for node in nodes}
    here = [item for (one, other), item in by_pair.items() if one in names and other in names]
    scale = Scale.LINE if any(item.pct_line is not None for item in here) and not is_latency else Scale.BEST
    share = _shares(here, scale=scale, is_latency=is_latency)
    groups = grouped(nodes)
    is_blocked = len(groups) < len(nodes)
    rows = []
    for line in groups:
        cells = []
        for column in groups:
            if not is_blocked and line is column:
                cells.append(Cell("heat-self", "", f"{line[0].name} with itself"))
                continue
            pairs = [(one, other) for one in line for other in column if one.key != other.key]
            cells.append(_cell(pairs, by_pair, share, scale=scale, is_latency=is_latency, now=now))
        rows.append(Row(_title(line), line[0].key if len(line) == 1 else "", tuple(cells)))
    failed = sum(item.outcome not in (Outcome.OK, Outcome.TCP_OK) for item in here)
    return HeatMap(
        scale, tuple(map(_title, groups)), tuple(rows), is_blocked, len(here), failed, len(nodes) * (len(nodes) - 1)
    )


def level_of(percent: float) -> int:
    """Which of the colours 0 (worst) to 5 a share of 100 % has."""
    return sum(percent >= bound for bound in LEVELS)


def grouped(nodes: Sequence[Node]) -> list[list[Node]]:
    """The hosts in at most 64 groups of neighbours, one each up to 64 hosts."""
    size = -(-len(nodes) // LARGEST) if len(nodes) > LARGEST else 1
    return [list(nodes[start : start + size]) for start in range(0, len(nodes), size)]


def _title(block: Sequence[Node]) -> str:
    return block[0].name if len(block) == 1 else f"{block[0].name} … {block[-1].name}"


def _shares(items: Sequence[Newest], *, scale: Scale, is_latency: bool) -> dict[tuple[str, str], float]:
    """Per cent of the line, or of the best pair, for each pair that measured."""
    if scale is Scale.LINE:
        return {(item.sender, item.target): item.pct_line for item in items if item.pct_line is not None}
    values = [item.value for item in items if item.value is not None and item.value > 0]
    if not values:
        return {}
    best = min(values) if is_latency else max(values)
    return {
        (item.sender, item.target): 100 * (best / item.value if is_latency else item.value / best)
        for item in items
        if item.value is not None and item.value > 0
    }


def _cell(
    pairs: Sequence[tuple[Node, Node]],
    by_pair: dict[tuple[str, str], Newest],
    share: dict[tuple[str, str], float],
    *,
    scale: Scale,
    is_latency: bool,
    now: datetime,
) -> Cell:
    found = [by_pair[one.key, other.key] for one, other in pairs if (one.key, other.key) in by_pair]
    single = len(pairs) == 1
    one, other = pairs[0] if pairs else (Node("", ""), Node("", ""))
    keys = (one.key, other.key) if single else ("", "")
    who = f"{one.name} to {other.name}" if single else f"{len(pairs)} pairs"
    if not found:
        return Cell("heat-none", "", f"{who}: not tested", *keys)
    failed = [item for item in found if (item.sender, item.target) not in share]
    oldest = min(item.at for item in found)
    age = f", {_age(now - oldest)} old"
    classes = " heat-old" if now - oldest > OLD_AFTER else ""
    if failed:
        what = failed[0].outcome if single else f"{len(failed)} failed"
        return Cell(f"heat-failed{classes}", "✕" if single else f"✕{len(failed)}", f"{who}: {what}{age}", *keys)
    worst = min(found, key=lambda item: share[item.sender, item.target])
    percent = share[worst.sender, worst.target]
    if any(item.verdict == "BAD" for item in found):
        classes += " heat-bad"
    value = "" if worst.value is None else f"{worst.value / 1e3:.2f} µs" if is_latency else f"{worst.value:.3g} Gb/s"
    of = "of the line" if scale is Scale.LINE else "of the best pair"
    most = "" if single else "worst of "
    return Cell(
        f"heat-{level_of(percent)}{classes}",
        str(int(percent)),  # never rounded up: 89.9 is not 90
        f"{who}: {most}{percent:.1f} % {of}, {value}{age}",
        *keys,
    )


def _age(age: timedelta) -> str:
    seconds = max(0, age.total_seconds())
    if seconds < 3600:
        return f"{seconds // 60:.0f} min"
    return f"{seconds // 3600:.0f} h" if seconds < 48 * 3600 else f"{seconds // 86_400:.0f} days"
