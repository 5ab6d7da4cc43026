"""A clock that a test turns: the time that passes, and the wall clock that somebody may set."""

from datetime import UTC, datetime, timedelta


class Clock:
    """A clock that a test turns; it moves a little at every look."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.jumped = timedelta()

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=10)
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def jump(self, seconds: float) -> None:
        """Set the wall clock; no time passes."""
        self.jumped += timedelta(seconds=seconds)
        self.now += timedelta(seconds=seconds)

    def uptime_s(self) -> float:
        """Since the machine booted, whatever the wall clock says."""
        return (self.now - self.jumped - datetime(2025, 1, 1, tzinfo=UTC)).total_seconds()
