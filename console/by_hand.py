"""How many manual actions a site was spared: its proven rollouts as they would have been by hand, less the work here.

Pure. Counted with care: only rollouts that were proven count as work that was spared, but every move, discard and
button here counts as work, also for what came to nothing. What a registration, a plan or a look spares is not counted.
"""

from dataclasses import dataclass
from typing import Final

REVIEW_AND_CONFIRM: Final = 2  # a rollout: its plan read, its button pressed


@dataclass(frozen=True, slots=True)
class Work:
    """What happened, in numbers of the trail and the rollouts."""

    ports: int  # whose partitions a proven rollout changed; one port in two rollouts counts twice
    files: int  # placed by proven rollouts, one a manager host
    proven: int  # rollouts
    started: int  # rollouts, whatever became of them
    staged: int  # moves that people staged or discarded


@dataclass(frozen=True, slots=True)
class Spared:
    """The two ways side by side, each step with how often it is taken."""

    by_hand: tuple[tuple[str, int], ...]
    here: tuple[tuple[str, int], ...]

    @property
    def by_hand_total(self) -> int:
        """All steps by hand."""
        return sum(count for _, count in self.by_hand)

    @property
    def here_total(self) -> int:
        """All steps here."""
        return sum(count for _, count in self.here)

    @property
    def removed(self) -> int:
        """How many manual actions were removed; never less than none."""
        return max(0, self.by_hand_total - self.here_total)


def spared(work: Work) -> Spared:
    """Both ways for this work: by hand a GUID is looked up, written into the file, and its table checked at the end."""
    return Spared(
        by_hand=(
            ("port GUIDs looked up", work.ports),
            ("lines edited", work.ports),
            ("files copied to a manager host", work.files),
            ("reloads signalled", work.proven),
            ("P_Key tables checked", work.ports),
        ),
        here=(
            ("moves staged or taken back", work.staged),
            ("plans reviewed and confirmed", work.started * REVIEW_AND_CONFIRM),
        ),
    )
