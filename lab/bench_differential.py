"""`./run bench differential`: the model of OpenSM's parser against the real OpenSM, on many files."""

import argparse
import shutil
import sys
import time
from pathlib import Path

from lab.bench import Bench, Figures
from lab.differential.asking import asked
from lab.differential.cases import Case, outcome, save
from lab.differential.comparison import differences, fabric, is_chance, model
from lab.differential.fabric import SM_PORT, net_text
from lab.differential.generator import Example, example
from lab.differential.reduction import reduced
from lab.differential.rows import ROWS
from lab.oracle import Oracle, OracleAnswer

FOLDER = Path(".fabricui/differential")
TELL_EVERY = 500
MOST_REDUCED = 12  # reducing asks OpenSM some hundred times


def measure(arguments: argparse.Namespace) -> Figures:
    """How many of the examples from `--first` on the model reads otherwise than OpenSM; each is saved, reduced."""
    numbers = range(arguments.first, arguments.first + arguments.examples)
    begun = time.monotonic()
    accepted = chance = 0
    rows: set[str] = set()
    parted: list[tuple[Example, OracleAnswer]] = []
    on = fabric()
    for done, (one, answer) in enumerate(asked(map(example, numbers), workers=arguments.workers), start=1):
        if done % TELL_EVERY == 0:
            print(f"{done} of {len(numbers)}, {len(parted)} disagreements …", file=sys.stderr)
        accepted += not answer.rejected and not answer.died
        rows.update(one.rows)
        reading = model(one.data, one.options, on)
        if is_chance(reading):
            chance += 1
        elif differences(reading, answer):
            parted.append((one, answer))
    seconds = time.monotonic() - begun
    _save(parted)
    return {
        "examples": len(numbers),
        "disagreements": len(parted),
        "chance_share": round(chance / max(len(numbers), 1), 3),
        "accepted_share": round(accepted / max(len(numbers), 1), 3),
        "rows_missed": len(set(ROWS) - rows),
        "examples_per_s": round(len(numbers) / seconds, 1),
    }


def _save(parted: list[tuple[Example, OracleAnswer]]) -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    if not parted:
        return
    on = fabric()
    with Oracle(net_text()) as oracle:

        def parts(data: bytes, options: tuple[str, ...]) -> list[str]:
            reading = model(data, options, on)
            if is_chance(reading):
                return []
            return differences(reading, oracle.run(data, sm_port=SM_PORT, options=options))

        for place, (one, answer) in enumerate(parted):
            data, why = one.data, differences(model(one.data, one.options, on), answer)
            if place < MOST_REDUCED:
                options = one.options
                data = reduced(data, lambda smaller: bool(parts(smaller, options)))  # noqa: B023  used at once
                answer = oracle.run(data, sm_port=SM_PORT, options=one.options)
                why = differences(model(data, one.options, on), answer)
            save(Case(f"example-{one.number}", data, one.options, outcome(answer), "; ".join(why)), FOLDER)
    print(f"{len(parted)} disagreements, each with OpenSM's answer, are in {FOLDER.absolute()}.", file=sys.stderr)


BENCH = Bench(
    measure=measure,
    targets={"disagreements": "<= 0", "chance_share": "<= 0.02", "accepted_share": ">= 0.3", "rows_missed": "<= 0"},
    what="The model of OpenSM's parser against the real OpenSM",
    scale="{examples} files",
)
