"""One line many times over: it is read some times, and once it changes nothing any more, the rest is counted.

Nobody writes twelve million equal statements, but a file may hold them, and an answer must come in bounded time. What
is counted is exactly what reading on would append: the columns go on by the same steps, the findings are only counted
by then, and the last copies are read again, so that everything that points at a last mention does.
"""

from array import array
from typing import TYPE_CHECKING, NamedTuple

from subnet.opensm_reading.log import MOST_PER_RULE
from subnet.opensm_reading.memory import LONGEST_READ

if TYPE_CHECKING:
    from subnet.opensm_reading.parser import Parser

_WARM = MOST_PER_RULE + 4  # copies after which every finding of theirs is only counted
_LAST = 2  # copies read behind those that are counted
_LEAST = 1 << 15  # bytes of a run that is worth it
_READS = 16  # of a line without end at most so many make one copy
_AT_A_TIME = 1 << 16


class _Column(NamedTuple):
    """One column of the store, and by how much each copy's values are more than those of the copy before."""

    values: "array[int] | bytearray"
    step: int


class _Mark(NamedTuple):
    """How far everything has come between two copies."""

    lengths: tuple[int, ...]
    counts: dict[str, int]
    place: tuple[int, int, int]  # OpenSM's lines, the editor's lines, bytes of this line before
    rest: tuple[object, ...]  # what must be the same


def read(parser: "Parser", at: int, stop: int) -> int:
    """Read copies of the text from `at` to `stop`, which OpenSM reads at once, if enough follow; return where it ended.

    With too few it only remembers to look no more before their end. Raises what reading raises.
    """
    data = parser.data
    length = stop - at
    if length == LONGEST_READ and data[stop - 1] != 10:
        length = _period(data, at)
    end = _end_of_copies(data, at, length)
    parser.repeats_from = end
    times = (end - at) // length
    if end - at < _LEAST or times < 2 * _WARM:
        return at
    done = at + _WARM * length
    parser.read(at, done)
    marks = [_mark(parser)]
    for _ in range(2):
        parser.read(done, done + length)
        done += length
        marks.append(_mark(parser))
    more = times - _WARM - 2 - _LAST
    if _count(parser, *marks, times=more):
        done += more * length
    return done


def _period(data: bytes, at: int) -> int:
    """How many bytes of a line without end make one copy: so many times what OpenSM reads at once."""
    for length in range(LONGEST_READ, _READS * LONGEST_READ + 1, LONGEST_READ):
        if data.startswith(data[at : at + length], at + length):
            return length
    return LONGEST_READ


def _end_of_copies(data: bytes, at: int, length: int) -> int:
    """Where the copies of data[at : at + length] that follow one another end."""
    one = data[at : at + length]
    few, many = one * 16, b""
    while data.startswith(few, at):
        many = many or one * max(16, _AT_A_TIME // length)
        while data.startswith(many, at):
            at += len(many)
        if data.startswith(few, at):
            at += len(few)
    while data.startswith(one, at):
        at += length
    return at


def _columns(
    parser: "Parser", *, specs: int = 0, statements: int = 0, texts: int = 0, lines: int = 0, column: int = 0
) -> list[_Column]:
    """Every column that reading appends to, with the step that a copy of so many makes."""
    store, mgids = parser.store, parser.store.mgids
    return [
        _Column(store.codes, 0), _Column(store.guids, 0), _Column(store.lines, lines), _Column(store.columns, column),
        _Column(store.of_first, specs), _Column(store.of_line, lines), _Column(store.of_flags, 0),
        _Column(mgids.texts, 0), _Column(mgids.ends, texts), _Column(mgids.lines, lines),
        _Column(mgids.statements, statements), _Column(mgids.accepted, 0),
        *(_Column(state.statements, statements) for state in parser.partitions.by_key.values()),
    ]  # fmt: skip


def _mark(parser: "Parser") -> _Mark:
    return _Mark(
        tuple(len(column.values) for column in _columns(parser)), parser.log.counts(), parser.place, parser.standing()
    )


def _count(parser: "Parser", first: _Mark, second: _Mark, third: _Mark, *, times: int) -> bool:
    """Append what `times` more copies would, if two in a row did the same; say whether they did."""
    reads, line, before = (new - old for old, new in zip(second.place, third.place, strict=True))
    if first.rest != second.rest or second.rest != third.rest or first.counts.keys() != third.counts.keys():
        return False
    grown = [new - old for old, new in zip(second.lengths, third.lengths, strict=True)]
    specs, statements, texts = grown[0], grown[4], grown[7]
    columns = _columns(parser, specs=specs, statements=statements, texts=texts, lines=line, column=before)
    for column, one, two in zip(columns, first.lengths, second.lengths, strict=True):
        if [value + column.step for value in column.values[one:two]] != list(column.values[two:]):
            return False
    added = {rule: count - second.counts[rule] for rule, count in third.counts.items()}
    if added != {rule: count - first.counts[rule] for rule, count in second.counts.items()}:
        return False
    for column, two in zip(columns, second.lengths, strict=True):
        _extend(column, two, times)
    parser.log.count((rule, count * times) for rule, count in added.items())
    parser.go_on(reads * times, line * times, before * times)
    return True


def _extend(column: _Column, first: int, times: int) -> None:
    """Append the values from `first` on again, `times` times, each time the step more."""
    values, step = column
    part = values[first:]
    if not part:
        return
    at_once = max(1, _AT_A_TIME // len(part))
    for done in range(0, times, at_once):
        copies = range(done + 1, min(done + at_once, times) + 1)
        if isinstance(values, bytearray):
            values += bytes(part) * len(copies)
        elif step:
            values.extend(array(values.typecode, [value + step * copy for copy in copies for value in part]))
        else:
            values.extend(array(values.typecode, part) * len(copies))
