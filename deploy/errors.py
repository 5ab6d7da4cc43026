"""Everything a person can be told when a revision or a rollout is refused. Each message says what to do next."""

from collections.abc import Sequence
from typing import Final

from subnet.policy import Violation


class DeployError(Exception):
    """The root of this room's errors."""


class StaleRevision(DeployError):
    """The revision (or the plan behind it) does not stand on what is current any more."""


class StaleObservation(StaleRevision):
    """The tables to compare with are too old, or were read before something was placed."""


class NothingToDo(DeployError):
    """The table is already the current one."""


class SubnetBusy(DeployError):
    """Another rollout holds the subnet."""


class SubnetFrozen(DeployError):
    """The subnet is frozen: a person has stopped all rollouts."""


class FabricAlarm(DeployError):
    """Isolation is lost, or somebody else's SM is at work: nothing is rolled out before that is mended."""


class NotWritable(DeployError):
    """FabricUI may not go this far on this subnet: its mode, or its manager hosts, do not allow it."""


class TooLate(DeployError):
    """The rollout is past the point where this could still be done, or not yet where it can be."""


class ReasonNeeded(DeployError):
    """A person has to say why."""


class NotFit(DeployError):
    """A qualification that refuses by itself cannot be signed."""


class KeyUnusable(DeployError):
    """FabricUI's own key for the manager hosts cannot be used, made or changed as it stands."""


class NotReversible(DeployError):
    """Going back would give a tenant ports that it has no more: nothing may do that by itself."""


class DeadlineOutOfRange(DeployError):
    """A time to confirm that nobody could keep, or that nobody would remember."""


class StandbyNeeded(DeployError):
    """Every standby must hold this revision before the fabric does; no reason overrides that."""


class AdoptionRefused(DeployError):
    """What stands on the manager hosts cannot become the first revision as it is; nothing was changed."""


class AdoptionUnfinished(DeployError):
    """The adopted table has to be placed as it is before anything in it may change."""


class Immutable(DeployError):
    """Somebody tried to change or remove a revision."""


class PolicyRefused(DeployError):
    """The table breaks a rule; `violations` are those that refuse it, in the order of the check."""

    SHOWN: Final = 5

    def __init__(self, violations: Sequence[Violation]) -> None:
        self.violations = tuple(violations)
        more = len(self.violations) - self.SHOWN
        sentences = [violation.sentence for violation in self.violations[: self.SHOWN]]
        super().__init__(" ".join(sentences) + (f" (and {more} more)" if more > 0 else ""))


class ClaimLost(DeployError):
    """Another worker, or a person, has moved the rollout on: this worker stops without touching anything more."""
