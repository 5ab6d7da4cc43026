"""Specs and statements in columns, so that fifty megabytes of members fit in memory; read back as values.

A `Spec` is made when somebody asks for it. The file's order is the order of the columns.
"""

from abc import abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, overload

from subnet.opensm_reading.tokens import ALL, KINDS, MEMBERSHIPS, NONE, PORT
from subnet.opensm_reading.values import Flags, MgidLine, Spec, Statement

_AT_A_TIME = 1 << 16  # specs copied out of the columns to be gone through


class Store:
    """All specs and statements of one file.

    A spec's code is kind * 4 + membership. A statement begins at a spec; it ends where the next one begins.
    """

    __slots__ = ("codes", "columns", "flags", "guids", "lines", "mgids", "of_first", "of_flags", "of_line", "widths")

    def __init__(self) -> None:
        self.guids = array("Q")
        self.codes = bytearray()
        self.lines = array("I")
        self.columns = array("I")
        self.of_first = array("I")
        self.of_line = array("I")
        self.of_flags = array("I")
        self.flags: list[Flags] = []
        self.mgids = MgidStore()

    def spec(self, index: int) -> Spec:
        """The spec at `index` of the file."""
        code = self.codes[index]
        return Spec(
            line=self.lines[index],
            column=self.columns[index],
            kind=KINDS[code >> 2],  # type: ignore[arg-type]  # the tuple holds exactly the kinds
            guid=self.guids[index] if code >> 2 == PORT else None,
            membership=MEMBERSHIPS[code & 3],  # type: ignore[arg-type]  # the tuple holds the three words
        )

    def flags_of(self, statement: int) -> Flags:
        """The flags of a statement's header."""
        return self.flags[self.of_flags[statement]]

    def span(self, statement: int) -> range:
        """Which specs a statement holds."""
        last = statement + 1 == len(self.of_first)
        return range(self.of_first[statement], len(self.codes) if last else self.of_first[statement + 1])

    def statement(self, index: int) -> Statement:
        """The statement at `index` of the file."""
        return Statement(
            line=self.of_line[index],
            flags=self.flags_of(index),
            specs=Specs(self, self.span(index)),
            mgids=Mgids(self.mgids, self.mgids.span(index)),
        )


class MgidStore:
    """All mgid lines of one file, in its order; their texts stand one behind the other."""

    __slots__ = ("accepted", "ends", "lines", "statements", "texts")

    def __init__(self) -> None:
        self.texts = bytearray()
        self.ends = array("Q")
        self.lines = array("I")
        self.statements = array("I")
        self.accepted = bytearray()

    def add(self, text: bytes, *, statement: int, line: int, accepted: bool) -> None:
        """Append a line; those of one statement follow one another."""
        self.texts += text
        self.ends.append(len(self.texts))
        self.lines.append(line)
        self.statements.append(statement)
        self.accepted.append(accepted)

    def extend(self, texts: list[bytes], accepted: bytearray, *, statement: int, line: int) -> None:
        """Append the texts of lines that follow one another, each a line of its own."""
        ends = accumulate(map(len, texts), initial=len(self.texts))
        next(ends)
        self.ends.extend(ends)
        self.texts += b"".join(texts)
        self.lines.extend(range(line, line + len(texts)))
        self.statements.extend(array("I", (statement,)) * len(texts))
        self.accepted += accepted

    def __len__(self) -> int:
        return len(self.lines)

    def line(self, index: int) -> MgidLine:
        """The mgid line at `index` of the file."""
        text = self.texts[self.ends[index - 1] if index else 0 : self.ends[index]]
        return MgidLine(self.lines[index], text.decode("utf-8", "backslashreplace"), bool(self.accepted[index]))

    def of(self, span: range) -> Iterator[tuple[int, str, bool]]:
        """Line, text and acceptance of the mgid lines in a span."""
        texts, begin = self.texts, self.ends[span.start - 1] if span.start else 0
        for index in span:
            end = self.ends[index]
            yield self.lines[index], texts[begin:end].decode("utf-8", "backslashreplace"), bool(self.accepted[index])
            begin = end

    def span(self, statement: int) -> range:
        """Which mgid lines a statement holds."""
        first = bisect_left(self.statements, statement)
        return range(first, bisect_right(self.statements, statement, lo=first))


class _Column[Item](Sequence[Item]):
    """A sequence whose items are made when asked for; equal to any sequence of equal items."""

    __slots__ = ()

    @abstractmethod
    def _indexes(self) -> Sequence[int]:
        """Where the items stand in the store, in file order."""

    @abstractmethod
    def _item(self, index: int) -> Item:
        """The item that stands there."""

    def __len__(self) -> int:
        return len(self._indexes())

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(index, slice):
            return tuple(self._item(one) for one in self._indexes()[index])
        return self._item(self._indexes()[index])

    def __iter__(self) -> Iterator[Item]:
        return (self._item(index) for index in self._indexes())

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(one == two for one, two in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


class Specs(_Column[Spec]):
    """The specs of one statement."""

    __slots__ = ("_span", "_store")

    def __init__(self, store: Store, span: range) -> None:
        self._store, self._span = store, span

    def _indexes(self) -> Sequence[int]:
        return self._span

    def _item(self, index: int) -> Spec:
        return self._store.spec(index)


class Mgids(_Column[MgidLine]):
    """The mgid lines of one statement."""

    __slots__ = ("_span", "_store")

    def __init__(self, store: MgidStore, span: range) -> None:
        self._store, self._span = store, span

    def _indexes(self) -> Sequence[int]:
        return self._span

    def _item(self, index: int) -> MgidLine:
        return self._store.line(index)


class Statements(_Column[Statement]):
    """The statements of one partition, in file order; what all of them say together is read without making them."""

    __slots__ = ("_indices", "_store")

    def __init__(self, store: Store, indices: "array[int]") -> None:
        self._store, self._indices = store, indices

    def _indexes(self) -> Sequence[int]:
        return self._indices

    def _item(self, index: int) -> Statement:
        return self._store.statement(index)

    def lines(self) -> Iterator[int]:
        """The line of each statement's header."""
        return map(self._store.of_line.__getitem__, self._indices)

    def flags(self) -> tuple[list[Flags], Flags]:
        """The flags of the statements in the order of their first use, each once, and those of the last statement."""
        of_flags, flags = self._store.of_flags, self._store.flags
        used = dict.fromkeys(map(of_flags.__getitem__, self._indices))
        return [flags[index] for index in used], flags[of_flags[self._indices[-1]]]

    def mgids(self) -> Iterator[tuple[int, str, bool]]:
        """Line, text and acceptance of all mgid lines, as in `MgidLine`."""
        mgids = self._store.mgids
        for index in self._indices if len(mgids) else ():
            yield from mgids.of(mgids.span(index))

    def mentions(self) -> dict[str | int, str]:
        """Who is named, a keyword or a number, with the membership of the last mention, in the order of that.

        ALL takes back every mention before it; NONE names nobody.
        """
        codes, guids, found = self._store.codes, self._store.guids, dict[str | int, str]()
        for index in self._indices:
            span = self._store.span(index)
            for first in range(span.start, span.stop, _AT_A_TIME):
                last = min(first + _AT_A_TIME, span.stop)
                for code, guid in zip(codes[first:last], guids[first:last], strict=True):
                    kind = code >> 2
                    if kind == NONE:
                        continue
                    if kind == ALL:
                        found.clear()
                    who = KINDS[kind] if kind else guid
                    found.pop(who, None)
                    found[who] = MEMBERSHIPS[code & 3]
        return found
