"""OpenSM's parser, line by line: `osm_prtn_config_parse_file` and `parse_part_conf` of osm_prtn_config.c.

Most lines read nothing but themselves and are split with bytes methods. A line with a `;` that has nothing before it,
or with an mgid, is walked through in the line buffer as OpenSM does (memory.py), because it may read what earlier
lines left there; but an mgid that has its line to itself reads at most one string of it, which mostly is plain to see.
A line many times over is read some times and then counted (repeats.py).
"""

import re

from subnet.opensm_reading import causes, group_runs, notes, repeats, whole
from subnet.opensm_reading.headers import Header
from subnet.opensm_reading.known_headers import KnownHeaders, tell
from subnet.opensm_reading.log import Log
from subnet.opensm_reading.memory import GROUP, LONGEST_READ, Memory, cut_segment, cut_tokens, skip_blanks
from subnet.opensm_reading.mgids import Groups, multicast
from subnet.opensm_reading.partitions import Partitions, PartitionState
from subnet.opensm_reading.store import Store
from subnet.opensm_reading.tokens import (
    ALL,
    AS_DEFMEMBER,
    BAD,
    BLANKS,
    NOBODY,
    NONE,
    PORT,
    Member,
    name_and_value,
    understand,
)  # fmt: skip
from subnet.opensm_reading.values import Rejection

NO_DEFINITION = "no partition definition found"
BAD_DEFINITION = "bad partition definition"
BAD_GUID = "bad PortGUID"
CRASHES = "OpenSM crashes"
CRASH = f"{CRASHES}: mgid without a value"
CRASH_OF_SHARED = f"{CRASHES}: it frees a multicast group of two partitions twice"
NOTHING = "no definition found"
_KEPT_MEANINGS = 1 << 16
_LF = 10
_MGID = re.compile(rb"[ \t\n]*mgid[ \t\n]*(?:=|\Z)")
# The start of a line whose list begins with an mgid: behind a header, and in an open statement.
_ALONE = re.compile(rb"[^:;]*:(?=[ \t]*mgid[ \t\n]*=)")
_ALONE_IN_OPEN = re.compile(rb"[ \t]*(?=mgid[ \t\n]*=)")
_EMPTY_LINES = re.compile(rb"\n+")


class Rejected(Exception):
    """OpenSM gives the file up, with this message; `column` and `token` say what it stumbled on."""

    def __init__(self, message: str, column: int, token: bytes) -> None:
        super().__init__(message)
        self.message, self.column, self.token = message, column, token


class Parser:
    """One reading of one file. `run` fills `partitions`, `store` and `log` and says whether OpenSM takes the file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.partitions = Partitions()
        self.store = Store()
        self.log = Log()
        self.groups = Groups()
        self.memory = Memory(data)
        self.open: PartitionState | None = None
        self.end_of_list = (0, 0)  # line and column behind the last text of the open statement
        self.header: Header | None = None
        self._meanings: dict[bytes, Member] = {}
        self._headers = KnownHeaders(self.store)
        self._taken = False
        # Where the text being parsed stands: OpenSM's line number, the editor's, and the column of its first byte.
        self._reads = 0
        self._line = 1
        self._before = 0
        self._fixed_column = 0
        self._text = b""
        self._after_mgid = False  # the line before was an mgid alone
        self.repeats_from = 0  # before this byte repeated lines were looked for

    def run(self) -> Rejection | None:
        """Parse the whole file."""
        try:
            self.read(0, len(self.data))
        except Rejected as rejected:
            causes.tell(self, rejected, self._text)
            return Rejection(self._reads, rejected.message)
        if not self._taken:
            causes.tell_nothing(self)
            return Rejection(None, NOTHING)
        if self.open is not None:
            notes.left_open(self)
        whole.note(self)
        return None

    def read(self, at: int, end: int) -> None:
        """Read the lines from byte `at` to `end` of the file. Raises Rejected."""
        data, size = self.data, len(self.data)
        while at < end:
            if self._after_mgid:
                self._after_mgid = False
                at = group_runs.read(self, at, end)
                continue
            if data[at] == _LF:
                # Empty lines, however many: each is read, and nothing comes of it.
                stop = _EMPTY_LINES.match(data, at, end).end()  # type: ignore[union-attr]  # there is at least one
                self.memory.note(at, 1, self.open is not None)
                self._reads += stop - at
                self._line += stop - at
                self._before = 0
                at = stop
                continue
            newline = data.find(b"\n", at, at + LONGEST_READ)
            stop = newline + 1 if newline >= 0 else min(at + LONGEST_READ, size)
            text = data[at:stop]
            if stop > self.repeats_from and (newline < 0 or data.startswith(text, stop)):
                at = repeats.read(self, at, stop)
                continue
            self._reads += 1
            if newline < 0 and stop < size:
                notes.long_line(self, text, stop)
            self._text = text
            self._read_line(at, text)
            if newline >= 0:
                self._line += 1
                self._before = 0
            else:
                self._before += stop - at
            at = stop

    @property
    def line(self) -> int:
        """The editor's line that is being read."""
        return self._line

    @property
    def place(self) -> tuple[int, int, int]:
        """OpenSM's count of the lines read, the editor's line, and how many bytes of that one were read before."""
        return self._reads, self._line, self._before

    def go_on(self, reads: int, lines: int, before: int) -> None:
        """Count lines as read that were not (repeats.py)."""
        self._reads += reads
        self._line += lines
        self._before += before

    def standing(self) -> tuple[object, ...]:
        """What the next line's meaning can hang on and a line like the one before may have changed, to compare."""
        since_all = self.open.since_all if self.open is not None else 0
        known = len(self.partitions.by_key), len(self.groups.holders)
        return self.open, self.header, since_all, known, self.log.kept, self.memory.state()

    def column(self, offset: int) -> int:
        """The column of a byte of the line as it was read; left-overs have none and stand at the `;`."""
        return self._fixed_column or self._before + offset + 1

    def _read_line(self, start: int, text: bytes) -> None:
        """What the parser does with one line as fgets reads it."""
        length, was_open = len(text), self.open is not None
        if b"\0" in text:
            text = notes.cut_at_nul(self, text)
        comment = text.find(b"#")
        if comment >= 0:
            text = text[:comment]
        if b"mgid" in text:
            if not self._mgid_alone(start, length, text):
                self._walk(start, length, 0, was_open)
            return
        at = 0
        while True:
            rest = text[at:].lstrip(BLANKS) if at else text.lstrip(BLANKS)
            if not rest:
                break
            at = len(text) - len(rest)
            semicolon = text.find(b";", at)
            if semicolon == at:
                self._walk(start, length, at, was_open)
                return
            self._segment(text[at:semicolon] if semicolon >= 0 else rest, at)
            if semicolon < 0:
                self.end_of_list = (self._line, self.column(at + len(rest.rstrip())))
                break
            self.open = None
            at = semicolon + 1
        self.memory.note(start, length, was_open)

    def _mgid_alone(self, start: int, length: int, text: bytes) -> bool:
        """Read a line whose list is one mgid to its end, without the buffer; False, and nothing done, if that fails.

        `text` is the line without its comment. It fails on a `;`, on a NUL, and where what earlier lines left, which
        OpenSM takes for the flags of an mgid that has none, is not plain to see.
        """
        was_open = self.open is not None
        found = (_ALONE_IN_OPEN if was_open else _ALONE).match(text)
        if found is None or b";" in text or self.data.find(b"\0", start, start + length) >= 0:
            return False
        mgid = found.end()
        token, comma, own = text[mgid:].partition(b",")
        flags: bytes | None = own
        if not comma:
            # OpenSM takes what stands behind the text's NUL for flags: the rest of a comment, or left-overs.
            rest = start + len(text) + 1
            flags = self.data[rest : start + length] if len(text) < length else self.memory.behind(length)
            if flags is None:
                return False
        first = len(text) - len(text.lstrip(BLANKS))
        if not was_open:
            self._open_statement(text[first : mgid - 1], first)
        self._taken = True
        address = multicast(token.partition(b"=")[2].strip(BLANKS))
        self._make_group(mgid, text[mgid:], address, flags or b"", closes=False)
        self.memory.note(start, length, was_open | (0 if address is None else GROUP))
        self.end_of_list = (self._line, self.column(len(text) - first))
        self._after_mgid = length < LONGEST_READ
        return True

    def _walk(self, start: int, length: int, upto: int, was_open: bool) -> None:
        """Go through the line from byte `upto` in OpenSM's own buffer, and on wherever it reads."""
        memory = self.memory.load(start, length, upto, was_open)
        at = upto
        try:
            while True:
                at = skip_blanks(memory, at, len(memory))
                if at > length:
                    # Behind the line's own NUL: what follows was left by earlier lines.
                    self._fixed_column = self._fixed_column or self.column(length - 1)
                    if at >= self.memory.written:
                        notes.unwritten(self)
                if memory[at] == 0:
                    return
                stop = memory.index(0, at)
                semicolon = memory.find(b";", at, stop)
                closes = semicolon >= 0
                first = at
                if closes:
                    stop = semicolon
                    memory[stop] = 0
                    if stop == at:
                        # parse_part_conf steps over the NUL that was the `;` and takes what follows.
                        notes.lone_semicolon(self, at, is_open=self.open is not None)
                        first = at + 1
                        stop = memory.index(0, first)
                was_open = self.open is not None
                text = bytes(memory[first:stop])
                mgid = self._segment(text, first)
                cut_segment(memory, first, stop, was_open)
                at = stop + 1
                if mgid is not None:
                    at = self._group(memory, first, text, mgid, closes=closes)
                if not closes:
                    self.end_of_list = (self._line, self.column(len(text)))
                    return
                self.open = None
        finally:
            self._fixed_column = 0

    def _segment(self, text: bytes, at: int) -> int | None:
        """`parse_part_conf` on one string; where its mgid token begins, or None without one.

        `at` is its byte in the line. Raises Rejected.
        """
        offset = 0
        if self.open is None:
            head, colon, text = text.partition(b":")
            if not colon:
                raise Rejected(NO_DEFINITION, self.column(at), head)
            self._open_statement(head, at)
            offset = len(head) + 1
        mgid = self._members(text, at + offset)
        self._taken = True
        return None if mgid is None else mgid + offset

    def _open_statement(self, head: bytes, at: int) -> None:
        known = self._headers.of(head)
        header = known.header
        if header.is_bad:
            raise Rejected(BAD_DEFINITION, self.column(at), head)
        found = self.partitions.of_header(header, line=self._line)
        if found is None:
            raise Rejected(BAD_DEFINITION, self.column(at), head)
        state, is_new = found
        self.open, self.header = state, header
        store = self.store
        state.statements.append(len(store.of_first))
        store.of_first.append(len(store.codes))
        store.of_line.append(self._line)
        store.of_flags.append(known.flags_index)
        if not header.is_plain or not notes.is_unremarkable(state, header, is_new=is_new):
            tell(self, known, head, at, is_new=is_new)
        state.flags = header.flags

    def _members(self, text: bytes, at: int) -> int | None:
        """The members of a list; where an mgid token begins, which ends it."""
        state, header, store = self.open, self.header, self.store
        assert state is not None and header is not None  # noqa: S101, PT018  (opened above; for the type checker)
        meanings, named = self._meanings, state.named
        defmember, indx0, line = header.defmember, header.indx0, self._line
        codes, guids, lines, columns = store.codes, store.guids, store.lines, store.columns
        fixed, before = self._fixed_column, self._before + 1
        offset = at
        for token in text.split(b","):
            meaning = meanings.get(token)
            if meaning is None:
                if _MGID.match(token):
                    return offset - at
                meaning = understand(token)
                if len(meanings) >= _KEPT_MEANINGS:
                    meanings.clear()
                meanings[token] = meaning
            kind, guid, membership, oddities = meaning
            if kind == PORT:
                if membership == AS_DEFMEMBER:
                    membership = defmember
                index = len(codes)
                codes.append(membership)  # PORT is kind 0
                guids.append(guid)
                lines.append(line)
                columns.append(fixed or before + offset + len(token) - len(token.lstrip(BLANKS)))
                earlier = named.get(guid)
                if earlier is not None and codes[earlier] & 3 != membership:
                    notes.overridden(self, state, earlier, index)
                named[guid] = index
                state.since_all |= 1 << membership
                if indx0:
                    state.indx0_named[guid] = index
            elif kind == BAD:
                raise Rejected(BAD_GUID, self.column(offset), token)
            elif kind != NOBODY:
                if membership == AS_DEFMEMBER:
                    membership = defmember
                index = len(codes)
                codes.append(kind << 2 | membership)
                guids.append(0)
                lines.append(line)
                columns.append(fixed or before + offset + len(token) - len(token.lstrip(BLANKS)))
                if kind != NONE:
                    if kind == ALL:
                        if state.since_all & ~(1 << membership):
                            notes.all_overrides(self, state, index)
                        state.since_all = 0
                    state.scopes[kind] = index
                    if indx0:
                        state.indx0_scopes[kind] = index
            if oddities:
                notes.of_member(self, token, offset, meaning)
            offset += len(token) + 1
        return None

    def _group(self, memory: bytearray, first: int, text: bytes, mgid: int, *, closes: bool) -> int:
        """`mgroup_create` for the mgid token at byte `mgid` of `text`; where OpenSM goes on in the buffer."""
        comma = text.find(b",", mgid)
        token = text[mgid:comma] if comma >= 0 else text[mgid:]
        spelled = name_and_value(token)[1]
        if spelled is None:
            raise Rejected(CRASH, self.column(first + mgid), token)
        beyond = first + mgid + len(token) + 1
        address = multicast(spelled)
        flags = b""
        if address is not None:
            end = memory.index(0, beyond)
            flags = bytes(memory[beyond:end])
            cut_tokens(memory, beyond, end, is_list=False)
            beyond = end + 1
        self._make_group(first + mgid, text[mgid:], address, flags, closes=closes)
        return beyond

    def _make_group(self, at: int, text: bytes, address: bytes | None, flags: bytes, *, closes: bool) -> None:
        """Ask for the group that `text`, at byte `at` of the line, names; no address is no multicast GID."""
        state, header = self.open, self.header
        assert state is not None and header is not None  # noqa: S101, PT018  (an mgid stands in an open statement)
        accepted = False
        if address is not None:
            accepted, shared = self.groups.make(address, key=state.key, header=header.group, flags=flags)
            for _ in range(shared):
                notes.shared_group(self, at)
        self.store.mgids.add(
            text.strip(BLANKS), statement=len(self.store.of_first) - 1, line=self._line, accepted=accepted
        )
        reads_on = closes and address is not None and b"," not in text
        notes.of_mgid(self, at, text, accepted=accepted, reads_on=reads_on)
