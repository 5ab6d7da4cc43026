"""Making a file smaller while something about it stays true."""

from collections.abc import Callable, Sequence


def reduced(data: bytes, holds: Callable[[bytes], bool], *, most_tries: int = 400) -> bytes:
    """A smaller file of which `holds` is still true: lines left out first, then bytes; `holds(data)` is taken as true.

    Asks `holds` at most `most_tries` times, so the result need not be the smallest.
    """
    tries = _Tries(holds, most_tries)
    lines = _left_out(data.splitlines(keepends=True), tries)
    shorter = b"".join(lines)
    return b"".join(_left_out([shorter[at : at + 1] for at in range(len(shorter))], tries))


class _Tries:
    def __init__(self, holds: Callable[[bytes], bool], most: int) -> None:
        self._holds, self.left = holds, most

    def __call__(self, pieces: Sequence[bytes]) -> bool:
        if self.left <= 0:
            return False
        self.left -= 1
        return self._holds(b"".join(pieces))


def _left_out(pieces: list[bytes], holds: _Tries) -> list[bytes]:
    """`pieces` without those that are not needed: ever smaller runs are left out."""
    run = max(len(pieces) // 2, 1)
    while holds.left > 0:
        at, before = 0, len(pieces)
        while at < len(pieces) and holds.left > 0:
            fewer = pieces[:at] + pieces[at + run :]
            if holds(fewer):
                pieces = fewer
            else:
                at += run
        if run == 1 and len(pieces) == before:
            break
        run = max(run // 2, 1)
    return pieces
