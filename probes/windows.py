"""Blackout windows: hours of the week in which no probe begins. Pure; all times are UTC, as everywhere."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MOST: Final = 20
_DAY_MINUTES: Final = 24 * 60
_LINE = re.compile(
    r"\A(?:(?P<first>[A-Z][a-z]{2})(?:-(?P<last>[A-Z][a-z]{2}))?\s+)?"
    r"(?P<from_h>[0-2][0-9]):(?P<from_m>[0-5][0-9])-(?P<to_h>[0-2][0-9]):(?P<to_m>[0-5][0-9])\Z",
    re.ASCII,
)


class InvalidWindow(ValueError):
    """A line that is no window; the text says how one is written."""


@dataclass(frozen=True, slots=True)
class Window:
    """From `begins` to before `ends`, in minutes of the day, on each of `days` (0 is Monday).

    A window that ends at or before it begins goes on past midnight and belongs to the day on which it began.
    """

    days: frozenset[int]
    begins: int
    ends: int

    def covers(self, now: datetime) -> bool:
        """Whether `now` lies in it."""
        minute = now.hour * 60 + now.minute
        if self.begins < self.ends:
            return now.weekday() in self.days and self.begins <= minute < self.ends
        if minute >= self.begins:
            return now.weekday() in self.days
        return minute < self.ends and (now.weekday() - 1) % 7 in self.days

    def __str__(self) -> str:
        days = sorted(self.days)
        hours = "-".join(f"{at // 60:02}:{at % 60:02}" for at in (self.begins, self.ends))
        if len(days) == 7:
            return hours
        is_run = days == list(range(days[0], days[-1] + 1))
        if not is_run:  # it wraps around the week: Sat-Mon
            first = next(day for day in days if (day - 1) % 7 not in self.days)
            return f"{DAYS[first]}-{DAYS[(first + len(days) - 1) % 7]} {hours}"
        return f"{DAYS[days[0]]} {hours}" if len(days) == 1 else f"{DAYS[days[0]]}-{DAYS[days[-1]]} {hours}"


def parse(text: str) -> tuple[Window, ...]:
    """One window a line: `09:00-17:30`, `Mon-Fri 09:00-17:30`, `Sat 22:00-02:00`. Raises InvalidWindow."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > MOST:
        raise InvalidWindow(f"{len(lines)} windows are too many; {MOST} is the most.")
    return tuple(_parse_line(line) for line in lines)


def _parse_line(line: str) -> Window:
    match = _LINE.match(line)
    wrong = InvalidWindow(f"“{line[:60]}” is no window. Write for example Mon-Fri 09:00-17:30, in UTC.")
    if match is None:
        raise wrong
    begins = int(match["from_h"]) * 60 + int(match["from_m"])
    ends = int(match["to_h"]) * 60 + int(match["to_m"])
    if begins >= _DAY_MINUTES or ends > _DAY_MINUTES:
        raise wrong
    first, last = match["first"], match["last"] or match["first"]
    if first is None:
        return Window(frozenset(range(7)), begins, ends)
    if first not in DAYS or last not in DAYS:
        raise wrong
    start, length = DAYS.index(first), (DAYS.index(last) - DAYS.index(first)) % 7 + 1
    return Window(frozenset((start + offset) % 7 for offset in range(length)), begins, ends)


def is_closed(windows: Sequence[Window], now: datetime) -> bool:
    """Whether no probe may begin now."""
    return any(window.covers(now) for window in windows)


def next_open(windows: Sequence[Window], now: datetime) -> datetime | None:
    """The next minute, from `now` on, at which a probe may begin; None if the windows leave no minute of the week."""
    at = now.replace(second=0, microsecond=0) if is_closed(windows, now) else now
    for _ in range(7 * _DAY_MINUTES + 1):
        if not is_closed(windows, at):
            return at
        at += timedelta(minutes=1)
    return None
