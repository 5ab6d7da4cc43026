"""The one error of the lab: its message is a sentence for the person at the keyboard."""


class LabError(RuntimeError):
    """The lab cannot do what was asked; the message says why and what to do."""
