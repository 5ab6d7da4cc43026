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
from people.models import Tenant
from subnet.pkey import Membership

MOST: Final = 480  # servers at once: some seconds during which nobody else stages, and no more than a form may name


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of one server; `refusal` is empty when it is staged."""

    server: Server
    source: Partition | None
    refusal: str = ""
    rule: str = ""  # which rule refused it, for who says it in other words


def stage_moves(
    *,
    moves: Sequence[tuple[Server, Partition | None]],
    target: Partition | None,
    actor: Doer,
    keep: bool = False,
    membership: Membership | None = None,
    reason: str = "",
    for_tenant: Tenant | None = None,
) -> tuple[Moved, ...]:
    """Want each server out of its source and in `target`; with `keep` in `target` too. In the order of `moves`.

    Each as `stage_move` or `stage_add`, full unless `membership` says otherwise; where that is said and the source is
    the target, as `stage_membership`. `for_tenant` are whose people stage it for themselves. Raises MoveRefused for
    more than MOST of them, or when the target is retired, and then stages none.
    """
    if len(moves) > MOST:
        raise MoveRefused(
            f"{len(moves)} servers are too many for one move; at most {MOST} go at once. Move them in parts.",
            rule="too_many",
        )
    asked = [_wish(server, source, target, membership, keep=keep) for server, source in moves]
    refusals = wishes.stage(wishes=asked, actor=actor, reason=reason, for_tenant=for_tenant)
    return tuple(
        Moved(server, source) if refusal is None else Moved(server, source, str(refusal), refusal.rule)
        for (server, source), refusal in zip(moves, refusals, strict=True)
    )


def _wish(
    server: Server, source: Partition | None, target: Partition | None, membership: Membership | None, *, keep: bool
) -> Wish:
    if target is not None and source == target and membership is not None:
        return Wish(server, source, target, membership, adds=True)
    joins = membership or Membership.FULL
    if target is not None and keep:
        return Wish(server, None, target, joins, adds=True)
    return move(server, source, target, joins)
