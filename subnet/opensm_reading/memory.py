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
        self._noted: list[tuple[int, int, bool]] = []
        self.written = 1  # line[0] = '\0' before the first line

    def note(self, start: int, length: int, is_open: bool) -> None:
        """Remember a line that reads nothing but itself; `is_open` says that a statement was open at its start."""
        noted = self._noted
        while noted and noted[-1][1] <= length:
            noted.pop()
        noted.append((start, length, is_open))

    def load(self, start: int, length: int, upto: int, is_open: bool) -> bytearray:
        """The buffer after fgets has read a line into it, parsed up to byte `upto` of the line."""
        memory = self._bytes
        for began, size, was_open in self._noted:
            self._put(began, size)
            cut_plain(memory, text_end(memory), was_open)
        self._noted.clear()
        self._put(start, length)
        end = text_end(memory)
        if upto:
            cut_plain(memory, upto, is_open)
            memory[upto] = self._data[start + upto]
        memory[end] = 0
        return memory

    def _put(self, start: int, length: int) -> None:
        self._bytes[:length] = self._data[start : start + length]
        self._bytes[length] = 0
        self.written = max(self.written, length + 1)


def text_end(memory: bytearray) -> int:
    """Where the line's text ends: at its first NUL, or at the `#` of a comment before it."""
    end = memory.index(0)
    comment = memory.find(b"#", 0, end)
    return end if comment < 0 else comment


def cut_plain(memory: bytearray, end: int, is_open: bool) -> None:
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
        is_open = False
        at = stop + 1


def cut_segment(memory: bytearray, at: int, stop: int, is_open: bool) -> None:
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
