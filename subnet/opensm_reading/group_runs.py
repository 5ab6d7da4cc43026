"""Lines that are one mgid each, many in a row: what parser.py makes of them one by one, with less to do a line.

Only the most usual spelling, only in an open statement, and only once every finding about such lines is merely counted;
any other line ends the run, and so does one of which there is more to say. Lines of one prefix and the same flags
differ in the end of their GID alone, so what OpenSM makes of a group is found out once for all of them.
"""

import re
from typing import TYPE_CHECKING, NamedTuple

from subnet.opensm_reading.memory import GROUP, LONGEST_READ, OPEN
from subnet.opensm_reading.mgids import makes_group, multicast, stored
from subnet.opensm_reading.tokens import BLANKS

if TYPE_CHECKING:
    from subnet.opensm_reading.headers import Header
    from subnet.opensm_reading.parser import Parser

# Blanks, the mgid up to the last two groups of its GID, those, and its flags.
_LINE = re.compile(
    rb"([ \t]*)(mgid=([fF]{2}[0-9a-fA-F]{2}(?::[0-9a-fA-F]{1,4}){0,4}::)([0-9a-fA-F]{1,4})(?::([0-9a-fA-F]{1,4}))?"
    rb"(?:,([^;#\0\n]*))?)\n"
)
_MEMBER = re.compile(rb"(?:\A|,)[ \t]*(?:0[xX]|ALL|SELF)")
# Flags that change nothing about which group it is and whether OpenSM makes it.
_IDLE = re.compile(rb"(?:\A|,)[ \t]*(?:sl|Q_Key|TClass|FlowLabel)=[^,]*")
_KEPT = 1 << 12


class _Kind(NamedTuple):
    """What all groups of one prefix and the same flags have in common.

    `head` is the start of their GIDs, `kept_heads` those of the GIDs they are kept under.
    """

    head: bytes
    kept_heads: tuple[bytes, ...]
    accepted: bool


def read(parser: "Parser", at: int, end: int) -> int:
    """Read mgid lines from byte `at` of the file, where a line begins, to `end`; return where another one begins."""
    state, header = parser.open, parser.header
    if state is None or header is None or not parser.log.is_full("mgid-line"):
        return at
    data, match = parser.data, _LINE.match
    found = match(data, at, end)
    if found is None:  # as behind every header whose list is one mgid
        return at
    memory, holders, key = parser.memory, parser.groups.holders, state.key
    one = frozenset({key})
    kinds: dict[tuple[bytes, bool, bool, bytes], _Kind | None] = {}
    texts: list[bytes] = []
    accepted = bytearray()
    last_at = last = blank = 0  # the line before, which memory does not know yet
    left: bytes | None = None  # what earlier lines left behind one of that length
    while found is not None:
        blanks, text, prefix, high, low, flags = found.groups()
        length = found.end() - at
        if length != last:
            if length > LONGEST_READ:
                break
            if last:
                memory.note(last_at, last, OPEN | GROUP)
            last, left = 0, None
        is_own = flags is not None
        if flags is None:
            if left is None:
                left = memory.behind(length)
            if left is None:
                break
            flags = left
        elif flags:
            flags = _IDLE.sub(b"", flags)
        of = prefix, low is None, is_own, flags
        kind = kinds.get(of)
        if kind is None:
            if len(kinds) >= _KEPT:
                kinds.clear()
            if is_own and _MEMBER.search(flags):
                break  # a member that OpenSM does not see is to be noted
            kind = kinds[of] = _kind(parser, header, prefix + high + (b"" if low is None else b":" + low), flags)
            if kind is None:
                break
        tail = int(high, 16).to_bytes(2) if low is None else (int(high, 16) << 16 | int(low, 16)).to_bytes(4)
        if kind.kept_heads and kind.head + tail not in holders:
            gids = [head + tail for head in kind.kept_heads]
            if any(key not in holders.get(gid, one) for gid in gids):
                break  # another partition's too: that is to be said
            for gid in gids:
                holders.setdefault(gid, one)
        texts.append(text.rstrip(BLANKS) if found[6] else text)
        accepted.append(kind.accepted)
        last_at, last, blank = at, length, len(blanks)
        at += length
        found = match(data, at, end)
    if last:
        memory.note(last_at, last, OPEN | GROUP)
    if texts:
        parser.store.mgids.extend(texts, accepted, statement=len(parser.store.of_first) - 1, line=parser.line)
        rules = ("mgid-line", sum(accepted)), ("mgid-skipped", len(accepted) - sum(accepted))
        parser.log.count(rules)
        parser.go_on(len(texts), len(texts), 0)
        parser.end_of_list = parser.line - 1, parser.column(at - last_at - blank)
    return at


def _kind(parser: "Parser", header: "Header", spelled: bytes, flags: bytes) -> _Kind | None:
    """What OpenSM makes of a group and of all that differ only in its last or last two numbers; None for one by one."""
    state, log, address = parser.open, parser.log, multicast(spelled)
    # A broadcast group is told by its whole GID.
    if state is None or address is None or address[4:6] == b"\xff\xff":
        return None
    group = parser.groups.flags_of(header.group, flags)
    accepted = makes_group(address, key=state.key, header=header.group, group=group)
    if not accepted and not log.is_full("mgid-skipped"):
        return None
    fixed = 14 if b":" not in spelled[spelled.index(b"::") + 2 :] else 12
    kept = tuple(gid[:fixed] for gid in stored(address, group=group)) if accepted else ()
    return _Kind(address[:fixed], kept, accepted)
