"""What is printed: tables for people, JSON for programs. Nothing that comes from outside reaches a terminal unseen."""

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, TextIO

_TOKEN: Final = re.compile(r"fui_[A-Za-z0-9_\-]+")
_COLOURS: Final = {
    "PROVEN": "32", "DONE": "32", "REFUSED": "31", "STUCK": "31", "RESTORED": "31", "FAILED": "31", "UNPROVEN": "33",
    "DEGRADED": "33", "CANCELLED": "33",
}  # fmt: skip


def plain(value: object) -> str:
    """A value on one line of a terminal: controls and what turns the writing around are spelled out."""
    text = "" if value is None else str(value)
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in without_tokens(text))


def without_tokens(text: str) -> str:
    """The text with whatever looks like a token taken out."""
    return _TOKEN.sub("fui_…", text)


class Printer:
    """Prints the outcome of one command to `out`, and its progress to `err`."""

    def __init__(self, *, as_json: bool, quiet: bool = False, out: TextIO | None = None, err: TextIO | None = None):
        self.as_json, self.quiet = as_json, quiet
        self.out, self.err = out or sys.stdout, err or sys.stderr
        is_dumb = os.environ.get("TERM") == "dumb" or bool(os.environ.get("NO_COLOR"))
        self.has_colour = self.out.isatty() and not is_dumb

    def tell(self, sentence: str) -> None:
        """Progress, for whoever watches."""
        if not self.quiet:
            self.warn(sentence)

    def warn(self, sentence: str) -> None:
        """What has to be read, on stderr; its own line breaks stay."""
        self.err.write("".join(f"{plain(line)}\n" for line in sentence.split("\n")))
        self.err.flush()

    def show(self, shape: dict[str, Any], lines: Iterable[str]) -> None:
        """The outcome: `shape` with --json, else the `lines`."""
        if self.as_json:
            self.out.write(json.dumps(shape, indent=2, ensure_ascii=True) + "\n")
        else:
            self.out.writelines(f"{line}\n" for line in lines)
        self.out.flush()

    def state(self, word: object) -> str:
        """A state, coloured where there is colour; the word says it all."""
        text = plain(word)
        return f"\033[{_COLOURS[text]}m{text}\033[0m" if self.has_colour and text in _COLOURS else text


def table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Rows under their names, in columns as wide as what stands in them."""
    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [max(len(line[place]) for line in [list(names), *cells]) for place in range(len(names))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in [list(names), *cells]
    ]


def count(number: int, one: str, many: str) -> str:
    """A number with its word."""
    return f"{number} {one if number == 1 else many}"
