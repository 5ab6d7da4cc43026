"""What people may be told about partitions and moves. Each message says what, where and how to mend it."""


class PartitionsError(ValueError):
    """The root of this room's errors; its text is a sentence for a page."""


class PartitionRefused(PartitionsError):
    """A partition that cannot be created as asked."""


class MoveRefused(PartitionsError):
    """A move, a discard or a rollout of staged changes that may not happen; nothing was changed.

    `rule` is a short word for programs: which rule refused.
    """

    def __init__(self, sentence: str, *, rule: str) -> None:
        super().__init__(sentence)
        self.rule = rule


class StalePlan(PartitionsError):
    """A plan that is no longer what the person looked at; the text says what has changed."""


class NoRevision(PartitionsError):
    """A subnet that FabricUI has no first revision of, so that there is nothing to plan from."""


class InvalidSelection(PartitionsError):
    """A text that names no selection of staged changes."""


class MirrorBroken(PartitionsError):
    """A current revision that the rows cannot show without guessing; a person is needed."""


class AdoptionRefused(PartitionsError):
    """A running fabric that cannot be taken over as it is; the text names what stands in the way and how to mend it."""
