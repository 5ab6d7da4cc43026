"""The 4096 bytes that OpenSM reads each line into, with what earlier lines left in them.

`osm_prtn_config_parse_file` has one buffer for all lines and cuts strings apart in it by writing NULs. A `;` with
nothing before it, and an mgid line, make it read past its own line's end; then these bytes decide.
"""

import re

from subnet.opensm_reading.tokens import BLANKS

LONGEST_READ = 4094  # fgets(line, sizeof(line) - 1)
_SIZE = 4096
_ROOM = 3 * _SIZE  # reading on past the buffer ends in zeros here; OpenSM has other variables there
# Which of the first 140 bytes held something before any line was read (first byte = highest bit): old pointers on the
# stack, most of the rest was zero. So it was on every run of Debian 12's opensm that was tried; nobody promises it.
_STACK_BYTES = 140
_SOME_BLANKS = re.compile(rb"[ \t\n]*")
_LAST_BLANK = max(BLANKS)  # most bytes are above it, and asking for that alone is quick
_BLANKS_AND_NUL = BLANKS + b"\0"
_STACK = 0xFCFCFCFC80FCFCFC8080C0FC80FC01FC00F
# How a noted line was parsed: a statement was open at its start; its text was one mgid with flags (a group).
CLOSED, OPEN, GROUP = 0, 1, 2
# A piece of a member list or of an mgid's flags, and the byte behind it, which became a NUL.
_PIECE = re.compile(rb"([^,= \t\n]*)([,=\n])")
_NO_LIST = re.compile(rb"[;#\0]")
_TEXT = re.compile(rb"[ \t]*[^,= \t\n]+\Z")


class Memory:
    """The line buffer. Plain lines are only noted; their cuts are made when something reads what they left.

    `written` is how many bytes any line has reached: what lies behind was never written, and its content is chance.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._bytes = bytearray(_ROOM)
        for index in range(_STACK_BYTES):
            if _STACK >> (_STACK_BYTES - 1 - index) & 1:
                self._bytes[index] = 0xFF
        self._noted: list[tuple[int, int, int]] = []
        self.written = 1  # line[0] = '\0' before the first line

    def note(self, start: int, length: int, kind: int) -> None:
        """Remember a line that reads nothing but itself; `kind` says how it was parsed: CLOSED, OPEN, or with GROUP."""
        noted = self._noted
        while noted and noted[-1][1] <= length:
            noted.pop()
        noted.append((start, length, kind))

    def behind(self, length: int) -> bytes | None:
        """The string that earlier lines left behind a line of `length` bytes and its NUL, if it is plain to see.

        Plain is what OpenSM's splitting at commas leaves as it is. None says that the buffer must be asked (`load`).
        """
        at = length + 1
        noted = self._noted
        while noted and noted[-1][1] <= length:  # the line covers them
            noted.pop()
        if noted:
            start, size, kind = noted[-1]
            return b"" if size == at else _left_of(self._data[start : start + size], at, kind)
        if not self._bytes[at]:
            return b""
        left = bytes(self._bytes[at : self._bytes.index(0, at)])
        return left if _TEXT.match(left) else None

    def load(self, start: int, length: int, upto: int, kind: int) -> bytearray:
        """The buffer after fgets has read a line into it, parsed up to byte `upto` of the line."""
        memory = self._bytes
        for began, size, was in self._noted:
            self._put(began, size)
            if was & GROUP:
                _cut_group(memory, was & OPEN)
            else:
                cut_plain(memory, text_end(memory), was & OPEN)
        self._noted.clear()
        self._put(start, length)
        end = text_end(memory)
        if upto:
            cut_plain(memory, upto, kind & OPEN)
            memory[upto] = self._data[start + upto]
        memory[end] = 0
        return memory

    def state(self) -> tuple[bytes, list[tuple[int, int]]]:
        """All that later lines can depend on, to compare; the noted lines by their lengths and kinds."""
        return bytes(self._bytes), [(size, kind) for _, size, kind in self._noted]

    def _put(self, start: int, length: int) -> None:
        self._bytes[:length] = self._data[start : start + length]
        self._bytes[length] = 0
        self.written = max(self.written, length + 1)


def _left_of(line: bytes, at: int, kind: int) -> bytes | None:
    """What is left of a noted line from byte `at` on, up to the first NUL; None when that takes a closer look.

    Only of a line that is one list from its start: there every comma, the first `=` of a token and the blanks at its
    end have become NULs, and colons are text.
    """
    if not kind & OPEN or _NO_LIST.search(line) or (not kind & GROUP and b"mgid" in line):
        return None
    found = _PIECE.match(line, at)
    if found is None:
        return None
    stop = found.start(2)
    if found[2] == b"=" and b"=" in line[line.rfind(b",", 0, at) + 1 : stop]:
        return None
    if found[2] == b"\n" and line[stop - 1] in b",= \t":
        return None
    return found[1]


def _cut_group(memory: bytearray, is_open: int) -> None:
    """Write the NULs of parsing a line whose text is a header, unless one was open, and one mgid with its flags."""
    end = text_end(memory)
    memory[end] = 0
    at = skip_blanks(memory, 0, end)
    if not is_open:
        colon = memory.index(b":", at, end)
        memory[colon] = 0
        cut_tokens(memory, at, colon, is_list=False)
        at = colon + 1
    has_flags = memory.find(b",", at, end) >= 0
    cut_tokens(memory, at, end, is_list=False)
    if not has_flags:
        # Then OpenSM takes what stands behind the NUL for flags: what is left of a comment here, or of earlier lines.
        cut_tokens(memory, end + 1, memory.index(0, end + 1), is_list=False)


def text_end(memory: bytearray) -> int:
    """Where the line's text ends: at its first NUL, or at the `#` of a comment before it."""
    end = memory.index(0)
    comment = memory.find(b"#", 0, end)
    return end if comment < 0 else comment


def cut_plain(memory: bytearray, end: int, is_open: int) -> None:
    """Write the NULs of parsing memory[0:end], every `;` of which has something before it."""
    at = 0
    memory[end] = 0
    while True:
        at = skip_blanks(memory, at, end)
        if at >= end:
            return
        stop = memory.find(b";", at, end)
        closes = stop >= 0
        stop = stop if closes else end
        memory[stop] = 0
        cut_segment(memory, at, stop, is_open)
        if not closes:
            return
        is_open = CLOSED
        at = stop + 1


def cut_segment(memory: bytearray, at: int, stop: int, is_open: int) -> None:
    """Write the NULs of `parse_part_conf` over memory[at:stop], up to an mgid token with it."""
    if not is_open:
        colon = memory.find(b":", at, stop)
        if colon < 0:
            return
        memory[colon] = 0
        cut_tokens(memory, at, colon, is_list=False)
        at = colon + 1
    cut_tokens(memory, at, stop, is_list=True)


def cut_tokens(memory: bytearray, at: int, stop: int, *, is_list: bool) -> None:
    """Write the NULs of splitting at commas and of `parse_name_token`; a member list ends at an mgid token."""
    while True:
        comma = memory.find(b",", at, stop)
        end = comma if comma >= 0 else stop
        memory[end] = 0
        first = skip_blanks(memory, at, end)
        equals = memory.find(b"=", first, end)
        if equals >= 0:
            memory[equals] = 0
            _trim(memory, skip_blanks(memory, equals + 1, end), end)
        name_end = equals if equals >= 0 else end
        _trim(memory, first, name_end)
        if comma < 0 or (is_list and memory[first : first + 5] == b"mgid\0"):
            return
        at = comma + 1


def _trim(memory: bytearray, first: int, end: int) -> None:
    """Write NULs over the blanks before `end`, as far as `first` itself."""
    if first < end and memory[end - 1] > _LAST_BLANK:
        memory[end] = 0
        return
    kept = first + 1 + len(memory[first + 1 : end + 1].rstrip(_BLANKS_AND_NUL))
    memory[kept : end + 1] = bytes(end + 1 - kept)


def skip_blanks(memory: bytearray, at: int, end: int) -> int:
    """Where the first byte that is no blank stands in memory[at:end], or `end`."""
    if at < end and memory[at] > _LAST_BLANK:
        return at
    return _SOME_BLANKS.match(memory, at, end).end()  # type: ignore[union-attr]  # none are enough to match
