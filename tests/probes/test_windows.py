"""Blackout windows, around midnight and around the week."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.windows import DAYS, InvalidWindow, Window, is_closed, next_open, parse

MONDAY_8 = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


def at(day: str, clock: str) -> datetime:
    hours, minutes = clock.split(":")
    return MONDAY_8.replace(day=30, hour=int(hours), minute=int(minutes)).replace(day=30) + (
        datetime(2026, 12, 1, tzinfo=UTC) - datetime(2026, 11, 30, tzinfo=UTC)
    ) * DAYS.index(day)


@pytest.mark.parametrize(
    ("text", "day", "clock", "closed"),
    [
        ("09:00-17:30", "Sun", "09:00", True),
        ("09:00-17:30", "Sun", "08:59", False),
        ("09:00-17:30", "Sun", "17:30", False),
        ("Mon-Fri 09:00-17:30", "Fri", "12:00", True),
        ("Mon-Fri 09:00-17:30", "Sat", "12:00", False),
        ("Sat 22:00-02:00", "Sat", "23:00", True),
        ("Sat 22:00-02:00", "Sun", "01:59", True),
        ("Sat 22:00-02:00", "Sun", "02:00", False),
        ("Sat 22:00-02:00", "Sat", "01:00", False),  # that is Friday's night
        ("Sat-Mon 10:00-11:00", "Mon", "10:30", True),
        ("Sat-Mon 10:00-11:00", "Tue", "10:30", False),
        ("Sun 22:00-02:00", "Mon", "01:00", True),
        ("00:00-24:00", "Wed", "23:59", True),
        ("Mon 09:00-10:00\n\nTue 09:00-10:00", "Tue", "09:30", True),
        ("", "Mon", "09:30", False),
    ],
)
def test_what_is_closed_when(text, day, clock, closed):
    assert is_closed(parse(text), at(day, clock)) is closed


@pytest.mark.parametrize(
    "line",
    ["9:00-10:00", "09:00", "Mo 09:00-10:00", "Xyz 09:00-10:00", "09:00-25:00", "24:00-25:00", "09:60-10:00", "x"],
)
def test_other_lines_are_refused(line):
    with pytest.raises(InvalidWindow):
        parse(line)
    with pytest.raises(InvalidWindow, match="too many"):
        parse("09:00-10:00\n" * 21)


WINDOWS = st.builds(
    lambda first, length, begins, ends: Window(
        frozenset((first + offset) % 7 for offset in range(length)), begins, ends
    ),
    st.integers(0, 6), st.integers(1, 7), st.integers(0, 1439), st.integers(0, 1440),
)  # fmt: skip


@given(WINDOWS)
def test_a_window_survives_being_written_and_read(window):
    assert parse(str(window)) == (window,)


def test_the_next_open_minute():
    assert next_open(parse("Mon 07:00-09:00"), MONDAY_8) == MONDAY_8.replace(hour=9)
    assert next_open((), MONDAY_8) == MONDAY_8
    assert next_open(parse("00:00-24:00"), MONDAY_8) is None
