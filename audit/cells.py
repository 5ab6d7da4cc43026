"""Rows as CSV that a spreadsheet opens without calculating anything. Anybody may have typed what stands in one."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

# How a cell begins that some spreadsheet calculates; the wide ones are = + - @ to those of East Asia.
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "\uff1d", "\uff0b", "\uff0d", "\uff20")


class _Echo:
    """A file that gives back what is written to it."""

    def write(self, value: str) -> str:
        return value


def lines(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """The line of the columns' names and one for each of `rows`, each with its end."""
    yield line(columns)
    yield from map(line, rows)


def line(values: Iterable[object]) -> str:
    """A row with its end; every cell is harmless."""
    return str(csv.writer(_Echo()).writerow([harmless(value) for value in values]))


def harmless(value: object) -> object:
    """A cell that no spreadsheet takes for a formula (a host's answer may begin with anything); None is empty."""
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return value
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA) else text
