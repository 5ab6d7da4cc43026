"""Many servers into one partition at once: one transaction, and each server has its own outcome.

A refused server keeps what it had, the others are staged; each has its own event, as if it had been moved alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from inventory.models import Server
from partitions import wishes
from partitions.doer import Doer
from partitions.errors import MoveRefused
from partitions.models import Partition
from partitions.staging import move
from partitions.wishes import Wish

MOST: Final = 480  # servers at once: some seconds during which nobody else stages, and no more than a form may name


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of one server; `refusal` is empty when it is staged."""

    server: Server
    source: Partition | None
    refusal: str = ""


def stage_moves(
    *,
    moves: Sequence[tuple[Server, Partition | None]],
    target: Partition | None,
    actor: Doer,
    keep: bool = False,
    reason: str = "",
) -> tuple[Moved, ...]:
    """Want each server out of its source and in `target`; with `keep` in `target` too. In the order of `moves`.

    Each as `stage_move` or `stage_add`. Raises MoveRefused for more than MOST of them, or when the target is retired,
    and then stages none.
    """
    if len(moves) > MOST:
        raise MoveRefused(
            f"{len(moves)} servers are too many for one move; at most {MOST} go at once. Move them in parts.",
            rule="too_many",
        )
    asked = [
        Wish(server, None, target, adds=True) if keep and target is not None else move(server, source, target)
        for server, source in moves
    ]
    refusals = wishes.stage(wishes=asked, actor=actor, reason=reason)
    return tuple(
        Moved(server, source, "" if refusal is None else str(refusal))
        for (server, source), refusal in zip(moves, refusals, strict=True)
    )
