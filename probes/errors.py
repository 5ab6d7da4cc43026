"""What people may be told about probes. Each message says what, where and how to mend it."""


class ProbesError(ValueError):
    """The root of this room's errors; its text is a sentence for a page."""


class ProbeRefused(ProbesError):
    """Something about probes that may not be done as asked; nothing was changed."""


class InvalidSettings(ProbesError):
    """Settings that cannot be used; `field` is which one."""

    def __init__(self, sentence: str, *, field: str) -> None:
        super().__init__(sentence)
        self.field = field
