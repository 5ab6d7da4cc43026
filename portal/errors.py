"""What a tenant's person may be told when something is refused. Each says what, where and how to mend it.

No sentence of a room below reaches a tenant as it is: those are written for operators, and name what is others'.
"""

from collections.abc import Mapping


class PortalError(ValueError):
    """The root of this room's errors; its text is a sentence for a tenant's page."""


class Refused(PortalError):
    """Something that may not be done now, or not by this tenant; nothing was changed."""


class MovesRefused(Refused):
    """Of several moves those that may not be, by their place, each with its sentence; none of them was staged."""

    def __init__(self, sentences: Mapping[int, str]) -> None:
        super().__init__(next(iter(sentences.values())))
        self.sentences = sentences


class OverQuota(Refused):
    """More than the tenant may have; the provider raises it on request."""


class RequestMoved(Refused):
    """A request that is not any more as whoever acts on it saw it; nothing was changed."""
