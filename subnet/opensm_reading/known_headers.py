"""Headers that were read before: what they mean, and what there is to count when nothing new can be said of them."""

from typing import TYPE_CHECKING

from subnet.opensm_reading import notes
from subnet.opensm_reading.headers import Header, parse_header
from subnet.opensm_reading.partitions import PartitionState
from subnet.opensm_reading.store import Store

if TYPE_CHECKING:
    from subnet.opensm_reading.parser import Parser

_KEPT = 1 << 16


class KnownHeader:
    """A header as it was spelled once, and the place of its flags in the store.

    `said` are the rules that its latest statement offended, each with how often, when each was only counted; they are
    the same in the next statement of `state` that follows one with the sl `after_sl`.
    """

    __slots__ = ("after_sl", "flags_index", "header", "said", "state", "was_read")

    def __init__(self, header: Header, flags_index: int) -> None:
        self.header, self.flags_index = header, flags_index
        self.was_read = False
        self.state: PartitionState | None = None
        self.after_sl: int | None = None
        self.said: tuple[tuple[str, int], ...] = ()


class KnownHeaders:
    """The headers of one file by their text; when there are too many, it begins anew."""

    def __init__(self, store: Store) -> None:
        self._known: dict[bytes, KnownHeader] = {}
        self._store = store

    def of(self, head: bytes) -> KnownHeader:
        """The header that `head` spells."""
        known = self._known.get(head)
        if known is None:
            header = parse_header(head)
            if len(self._known) >= _KEPT:
                self._known.clear()
            flags = self._store.flags
            if not flags or flags[-1] is not header.flags:
                flags.append(header.flags)
            known = self._known[head] = KnownHeader(header, len(flags) - 1)
        return known


def tell(parser: "Parser", known: KnownHeader, head: bytes, at: int, *, is_new: bool) -> None:
    """Note all that is odd about the header of the statement that was just opened, at byte `at` of the line."""
    state, log = parser.open, parser.log
    assert state is not None  # noqa: S101  (for the type checker)
    if not is_new and known.state is state and known.after_sl == _sl(state):
        log.count(known.said)
        return
    before, kept = log.counts() if known.was_read else {}, log.kept
    notes.of_header(parser, state, known.header, head, at, is_new=is_new)
    if known.was_read and not is_new and log.kept == kept:
        known.state, known.after_sl = state, _sl(state)
        now = log.counts().items()
        known.said = tuple((rule, count - before.get(rule, 0)) for rule, count in now if count != before.get(rule))
    known.was_read = True


def _sl(state: PartitionState) -> int | None:
    return None if state.flags is None else state.flags.sl or 0
