"""Files for the differential: valid, odd and mutated ones, left-overs, rendered tables, each from one number.

An example's number decides everything about it. Numbers go round the rows of the grammar, so that any `len(ROWS)`
examples in a row hold every row at least once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from lab.differential.left_overs import lines
from lab.differential.rows import FILES, ROWS, STATEMENTS, UNDER_ALLOW_BOTH
from lab.differential.tables import rendered
from lab.differential.words import Words

ALLOW_BOTH, QOS = "-W", "-Q"
# How many examples of each kind in a round; a rejecting row makes a file rejected, so valid ones are many.
KINDS = ("row", "row", "row", "valid", "mutated", "row", "row", "row", "table", "lines")
_SPECIAL = (
    b";",
    b":",
    b",",
    b"=",
    b"#",
    b"\0",
    b"\r",
    b"\n",
    b" ",
    b"\t",
    b"\x0b",
    b"\x0c",
    b"\xa0",
    b"\xff",
    b"0",
    b"x",
)


@dataclass(frozen=True, slots=True)
class Example:
    """One file and the options OpenSM is started with; `rows` are those it was written to hold."""

    number: int
    kind: str
    data: bytes
    allow_both_pkeys: bool
    qos: bool
    rows: tuple[str, ...]

    @property
    def options(self) -> tuple[str, ...]:
        """OpenSM's command line words."""
        return (ALLOW_BOTH,) * self.allow_both_pkeys + (QOS,) * self.qos


def example(number: int) -> Example:
    """The example of that number."""
    random = Random(f"differential {number}")  # noqa: S311  no secret
    words = Words(random)
    kind = KINDS[number % len(KINDS)]
    rows: tuple[str, ...] = ()
    if kind == "row":
        turn = number // len(KINDS) * KINDS.count("row") + KINDS[: number % len(KINDS)].count("row")
        text, rows = _with_rows(words, ROWS[turn % len(ROWS)])
    elif kind == "table":
        text = rendered(random)
    elif kind == "lines":
        text = lines(words)
    elif kind == "valid" or words.chance(0.5):
        text = _valid(words)
    else:
        text, _ = _with_rows(words, words.one(ROWS))
    if kind == "mutated":
        for _ in range(random.randint(1, 3)):
            text = words.one(_MUTATIONS)(words, text)
    allow_both = words.chance(0.2) or bool(UNDER_ALLOW_BOTH & set(rows))
    return Example(number, kind, text, allow_both, words.chance(0.05), rows)


def _valid(words: Words) -> bytes:
    return _file(words, [words.statement() for _ in range(words.random.randint(1, 6))])


def _file(words: Words, statements: list[bytes]) -> bytes:
    if words.chance(0.6):
        statements = [words.default(), *statements]
    return b"".join(part if part.endswith(b"\n") else part + b"\n" for part in statements)


def _with_rows(words: Words, row: str) -> tuple[bytes, tuple[str, ...]]:
    """A file with the row somewhere between plain statements."""
    statements = [words.statement() for _ in range(words.random.randint(0, 3))]
    if row in STATEMENTS:
        statements.insert(words.random.randint(0, len(statements)), STATEMENTS[row](words))
    text = _file(words, statements)
    if row in FILES:
        text = FILES[row](words, text)
    return text, (row,)


def _span(words: Words, text: bytes, most: int = 12) -> tuple[int, int]:
    begin = words.random.randint(0, len(text))
    return begin, min(len(text), begin + words.random.randint(1, most))


def _flip(words: Words, text: bytes) -> bytes:
    if not text:
        return text
    at = words.random.randrange(len(text))
    return text[:at] + bytes((text[at] ^ 1 << words.random.randrange(8),)) + text[at + 1 :]


def _cut(words: Words, text: bytes) -> bytes:
    return text[: words.random.randint(0, len(text))]


def _drop(words: Words, text: bytes) -> bytes:
    begin, end = _span(words, text)
    return text[:begin] + text[end:]


def _repeat(words: Words, text: bytes) -> bytes:
    begin, end = _span(words, text, 40)
    return text[:end] + text[begin:end] + text[end:]


def _insert(words: Words, text: bytes) -> bytes:
    at = words.random.randint(0, len(text))
    return text[:at] + words.one(_SPECIAL) + text[at:]


def _change_case(words: Words, text: bytes) -> bytes:
    begin, end = _span(words, text)
    return text[:begin] + text[begin:end].swapcase() + text[end:]


def _join_lines(words: Words, text: bytes) -> bytes:
    lines = text.split(b"\n")
    at = words.random.randrange(len(lines))
    return b"\n".join(lines[:at]) + (b"\n" if at else b"") + words.one((b"", b" ", b",")).join(lines[at : at + 2]) + (
        b"\n" if lines[at + 2 :] else b""
    ) + b"\n".join(lines[at + 2 :])  # fmt: skip


def _swap_lines(words: Words, text: bytes) -> bytes:
    lines = text.split(b"\n")
    words.random.shuffle(lines)
    return b"\n".join(lines)


_MUTATIONS: tuple[Callable[[Words, bytes], bytes], ...] = (
    _flip, _flip, _cut, _drop, _repeat, _insert, _insert, _change_case, _join_lines, _swap_lines,
)  # fmt: skip
