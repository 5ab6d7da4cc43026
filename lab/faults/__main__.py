"""`python -m lab.faults PAIR…` plays the pairs with exactly these names, one JSON line each, the planted ones last.

A program of its own, because each worker of the fork server would run the main module once more if it were another.
"""

import json
import sys
import time
from collections.abc import Sequence

from lab.bench_faults import play_all
from lab.faults.matrix import PAIRS
from lab.faults.play import Outcome


def main(only: Sequence[str]) -> int:
    """Play and print."""
    wanted = [pair for pair in PAIRS if str(pair) in only]

    def tell(outcome: Outcome) -> None:
        print(json.dumps(outcome.to_json()), flush=True)

    began = time.monotonic()
    _, planted, status = play_all(wanted, tell=tell)
    print(json.dumps({"planted": planted, "status": status, "seconds": round(time.monotonic() - began, 1)}), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
