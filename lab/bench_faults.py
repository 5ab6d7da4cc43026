"""Every fault at every step, on one lab that is made whole in between, under the eyes of the observer (ADR 0023)."""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lab import breaking
from lab.bench import Bench, Figures
from lab.faults.expected import expected
from lab.faults.matrix import PAIRS, Pair
from lab.faults.play import Outcome, play
from lab.faults.scene import Scene, scene
from lab.postgresql import running
from lab.site import Site

SERVERS, HCAS = 6, 2


def measure(arguments: argparse.Namespace) -> Figures:
    """Play the whole matrix (or `--only` some of it) and count."""
    wanted = [pair for pair in PAIRS if not arguments.only or any(word in str(pair) for word in arguments.only)]
    print(f"{len(wanted)} pairs:", *(f"  {pair}" for pair in wanted), sep="\n", file=sys.stderr)

    def tell(outcome: Outcome) -> None:
        _tell(outcome)
        if arguments.record is not None:
            with arguments.record.open("a", encoding="utf-8") as record:
                record.write(json.dumps(outcome.to_json()) + "\n")

    outcomes, planted, status = play_all(wanted, tell=tell)
    return {
        "tried": len({str(outcome.pair) for outcome in outcomes}),
        "violations": sum(len(outcome.violations) for outcome in outcomes),
        "objections": sum(len(outcome.objections) for outcome in outcomes),
        "unlisted": sum(not said.end for said in expected().values()),
        "longest_s": round(max((outcome.seconds for outcome in outcomes), default=0.0), 2),
        "planted_unseen": sum(not seen for seen in planted.values()),
        "samples_per_s": round(status["samples"] / status["seconds"], 2),
        "longest_gap_s": status["longest_gap_s"],
        "whole_s": round(sum(outcome.whole_s for outcome in outcomes), 1),
    }


def play_all(
    pairs: Sequence[Pair], *, tell: Callable[[Outcome], None]
) -> tuple[list[Outcome], dict[str, bool], dict[str, Any]]:
    """Play `pairs` on one lab: what became of each, which planted violations were seen, the observer's status."""
    outcomes = []
    with (
        tempfile.TemporaryDirectory(prefix="fabricui-faults-") as name,
        running() as cluster,
        Site.up(Path(name) / "lab", servers=SERVERS, hcas=HCAS, owned=True) as site,
        scene(Path(name), site, cluster) as stage,
    ):
        for pair in pairs:
            outcomes.append(play(stage, pair))
            tell(outcomes[-1])
        planted = dict(plant(stage))
        return outcomes, planted, stage.observer.status


def plant(stage: Scene) -> Iterator[tuple[str, bool]]:
    """Do by hand what must never happen, one rule after the other; whether the observer reported each."""
    site, subject = stage.site, stage.site.fabric.servers[4].port_guids
    keys = [stage.partition(name).pkey for name in ("training", "render")]

    def two_tenants() -> None:
        for place, key in enumerate(keys):
            breaking.spoil_port(site, subject[0], entry=0x8000 | key, index=20 + place)

    def fallback() -> None:
        breaking.spoil_port(site, subject[1], entry=0xFFFF, index=20)

    def stray_file() -> None:
        breaking.replace_file(site, stage.standby.name, "crlf")

    for kind, do in (("tenants", two_tenants), ("fallback", fallback), ("file", stray_file)):
        seen = len(stage.observer.found)
        do()
        stage.observer.fresh()
        yield kind, any(found["kind"] == kind for found in stage.observer.found[seen:])


def _tell(outcome: Outcome) -> None:
    then = f", {outcome.after_takeover} after the takeover" if outcome.after_takeover else ""
    print(
        f"{outcome.pair}: {outcome.named} after {outcome.seconds:.1f} s{then}, ended {outcome.end}"
        f" ({outcome.whole_s:.1f} s)",
        *(f"  ! {sentence}" for sentence in outcome.objections),
        *(f"  !! {violation['sentence']}" for violation in outcome.violations),
        sep="\n", file=sys.stderr, flush=True,
    )  # fmt: skip


BENCH = Bench(
    measure=measure,
    targets={
        "tried": ">= 60", "violations": "<= 0", "objections": "<= 0", "unlisted": "<= 0", "longest_s": "<= 60",
        "planted_unseen": "<= 0", "samples_per_s": ">= 2",
    },
    what="Every fault at every step of a rollout",
    scale=f"{SERVERS} servers with {HCAS} HCAs each",
    servers=SERVERS,
)  # fmt: skip
