"""Many servers into one partition at once: one transaction, and each server has its own outcome.

A refused server keeps what it had, the others are staged; each has its own event, as if it had been moved alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db import transaction

from inventory.models import Server
from partitions import mirror, staging
from partitions.doer import Doer, as_person
from partitions.errors import MoveRefused, PartitionsError
from partitions.models import Partition
from partitions.staged_rows import Notes, remember
from subnet.errors import SubnetError

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

    Each as `stage_move` or `stage_add`. Raises MoveRefused for more than MOST of them, and then stages none.
    """
    if len(moves) > MOST:
        raise MoveRefused(
            f"{len(moves)} servers are too many for one move; at most {MOST} go at once. Move them in parts.",
            rule="too_many",
        )
    refusals: dict[int, str] = {}
    notes = Notes()
    with transaction.atomic():
        staging.hold([source for _, source in moves], target)
        for subnet in {server.subnet for server, _ in moves}:
            mirror.catch_up(subnet)
        # Always in this order, so that two people who move the same servers wait for one another only once.
        for at in sorted(range(len(moves)), key=lambda at: moves[at][0].pk):
            server, source = moves[at]
            try:
                if keep and target is not None:
                    staging.stage_add(server=server, target=target, actor=actor, reason=reason, notes=notes)
                else:
                    staging.stage_move(
                        server=server, source=source, target=target, actor=actor, reason=reason, notes=notes
                    )
            except (PartitionsError, SubnetError) as refusal:
                refusals[at] = str(refusal)
        staged = [server for at, (server, _) in enumerate(moves) if at not in refusals]
        if staged:  # remembered behind the events of its servers: which of them are refused is known only now
            who = str(staged[0]) if len(staged) == 1 else f"{len(staged)} servers"
            title = f"{who} to {'Unassigned' if target is None else target.name}"
            remember(subnet=staged[0].subnet, person=as_person(actor), title=title, notes=notes)
    return tuple(Moved(server, source, refusals.get(at, "")) for at, (server, source) in enumerate(moves))
