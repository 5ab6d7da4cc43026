"""Everything that can be wrong with a subnet value, as one family of errors.

Each message says what is wrong, where, and how to mend it, because people read it on a page.
"""


class SubnetError(ValueError):
    """The root of this room's errors."""


class InvalidGUID(SubnetError):
    """A text that names no GUID."""


class InvalidPKey(SubnetError):
    """A text or number that is no P_Key, or one that no partition may have."""


class PoolExhausted(SubnetError):
    """A pool of P_Keys in which none is left to hand out."""


class InvalidName(SubnetError):
    """A partition name that OpenSM would misread."""


class InvalidFlag(SubnetError):
    """A flag of a partition, or a line for a multicast group, that OpenSM would ignore or misread."""


class InvalidTable(SubnetError):
    """A partition table that contradicts itself."""


class InvalidFile(SubnetError):
    """Bytes that the renderer could not have produced; `line` counts from 1."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.line = line


class UnsafePlan(SubnetError):
    """A plan that is too big to go out without a person's reason."""


class InvalidListing(SubnetError):
    """Text of a diagnostic program that cannot be read."""
