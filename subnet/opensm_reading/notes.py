"""What the parser's oddities mean for a person: one function for each place where something can be odd.

Each says what OpenSM will do and how to mend it. Why a file is rejected is told in causes.py.
"""

from typing import TYPE_CHECKING

from subnet.opensm_reading.headers import Header, Oddity
from subnet.opensm_reading.partitions import DEFAULT_KEY, NAME_BYTES, PartitionState
from subnet.opensm_reading.tokens import AS_DEFMEMBER, BLANKS, KINDS, MEMBERSHIPS, PORT, Member, name_and_value

if TYPE_CHECKING:
    from subnet.opensm_reading.parser import Parser

FULL_BIT = 0x8000
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_BOM = b"\xef\xbb\xbf"


def shown(text: bytes, *, most: int = 60) -> str:
    """Bytes of the file as a person may read them: no control characters, not too long."""
    whole = text.decode("utf-8", "backslashreplace")
    safe = whole
    if not whole.isprintable():
        safe = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in whole)
    return safe if len(safe) <= most else safe[: most - 1] + "…"


def cut_at_nul(parser: "Parser", text: bytes) -> bytes:
    """The line's text up to its first NUL, which ends it for OpenSM (strings of C)."""
    at = text.index(b"\0")
    if b"#" not in text[:at]:
        parser.log.add(
            "nul-byte", parser.line, parser.column(at),
            "A NUL byte ends the line for OpenSM; it ignores the rest of the line.",
            "Remove the NUL byte. The file may be of another encoding (UTF-16): save it as plain ASCII.",
        )  # fmt: skip
    return text[:at]


def long_line(parser: "Parser", text: bytes, stop: int) -> None:
    """A line that goes on behind the 4094 bytes fgets takes; harmless only when cut between two members."""
    before, after = text.rstrip(BLANKS)[-1:], parser.data[stop : stop + 1]
    is_between = (
        (parser.open is not None or b":" in text)
        and b"#" not in text
        and b"mgid" not in text
        and (before == b"," or after in (b",", b" ", b"\t") or text[-1:] in (b" ", b"\t"))
    )
    parser.log.add(
        "long-line", parser.line, parser.column(len(text)),
        "OpenSM reads at most 4094 bytes of a line and takes the rest for the next line"
        + ("; here it cuts between two members." if is_between else ", in the middle of a text."),
        "Break the line after a comma of the member list, or repeat the header with the remaining members.",
        severity="warn" if is_between else "refuse",
    )  # fmt: skip


def lone_semicolon(parser: "Parser", at: int, *, is_open: bool) -> None:
    """A `;` with nothing before it."""
    parser.log.add(
        "lone-semicolon", parser.line, parser.column(at),
        "OpenSM steps over a “;” that has nothing before it and parses what follows it, left-overs of earlier lines "
        "included; whether it takes the file is chance.",
        "Write the “;” directly behind the last member." if is_open else "Remove this “;”.",
    )  # fmt: skip


def unwritten(parser: "Parser") -> None:
    """OpenSM reads on into bytes that no line has reached."""
    parser.log.add(
        "unwritten-memory", parser.line, parser.column(0),
        "OpenSM reads on into memory that it has never written; what it does then nobody can tell.",
        "Write each “;” directly behind the last member, and none on an mgid line.",
    )  # fmt: skip


def left_open(parser: "Parser") -> None:
    """The file ends inside a statement."""
    line, column = parser.end_of_list
    parser.log.add(
        "no-final-semicolon", line, column,
        "OpenSM takes the last statement without its “;”, so a file cut short here looks the same to it.",
        "End the last statement with “;” if the file is whole.",
    )  # fmt: skip


def is_unremarkable(state: PartitionState, header: Header, *, is_new: bool) -> bool:
    """Whether `of_header` has nothing to say of a plain header, as of most."""
    goes_on = is_new or (header.name == state.name and not state.auto_numbered)
    return goes_on and (state.flags is None or not state.flags.sl)


def of_header(parser: "Parser", state: PartitionState, header: Header, head: bytes, at: int, *, is_new: bool) -> None:
    """All that can be odd about a header that OpenSM takes."""
    log, line, column = parser.log, parser.line, parser.column(at)
    for oddity in header.oddities:
        _header_oddity(parser, oddity, at)
    name = header.name or b""
    if b"\r" in head:
        carriage_return(parser, at + head.index(b"\r"), "keeps it as part of the header")
    if header.number is None or not header.number & 0x7FFF:
        _numbered_by_opensm(parser, state, name, column, is_new=is_new, gave_zero=header.number is not None)
    else:
        if header.number & FULL_BIT and header.number != 0xFFFF and log.wants("pkey-with-bit-15"):
            log.keep(
                "pkey-with-bit-15", line, column,
                f"{header.number:#06x} has bit 15 set, which is no part of a P_Key: it is {state.key:#06x}.",
                f"Write {state.key:#06x}.", severity="ok",
            )  # fmt: skip
        if not is_new and state.auto_numbered and log.wants("auto-number-claimed"):
            log.keep(
                "auto-number-claimed", line, column,
                f"OpenSM has already given {state.key:#06x} to “{shown(state.name)}” of line {state.line}, which names "
                "no P_Key: the two partitions become one, without a word in the log.",
                f"Give “{shown(state.name)}” a P_Key of its own.",
            )  # fmt: skip
    _name(parser, state, name, column, is_new=is_new)
    _sl(parser, state, header, column)


def _numbered_by_opensm(
    parser: "Parser", state: PartitionState, name: bytes, column: int, *, is_new: bool, gave_zero: bool
) -> None:
    said = "counts P_Key zero as none and " if gave_zero else ""
    is_default = not is_new and state.key == DEFAULT_KEY
    if is_default or not parser.log.wants("auto-numbered"):
        return
    if is_new:
        parser.log.keep(
            "auto-numbered", parser.line, column,
            f"OpenSM {said}gives “{shown(name)}” P_Key {state.key:#06x} because it stands here in the file; "
            "a partition put in above it changes that.",
            f"Write {shown(name)}={state.key:#06x} to keep today's P_Key.",
        )  # fmt: skip
    else:
        parser.log.keep(
            "auto-numbered", parser.line, column,
            f"OpenSM {said}looks “{shown(name)}” up by name and adds to P_Key {state.key:#06x}.",
            f"Write {shown(name)}={state.key:#06x}.",
        )  # fmt: skip


def _name(parser: "Parser", state: PartitionState, name: bytes, column: int, *, is_new: bool) -> None:
    log, line = parser.log, parser.line
    if not name:
        if log.wants("nameless"):
            log.keep(
                "nameless", line, column,
                f"The partition has no name; OpenSM calls it “{shown(state.name)}”.",
                "Give it a name before “=”.",
            )  # fmt: skip
        return
    if name.startswith(_BOM):
        log.add(
            "byte-order-mark", line, column,
            "The file begins with a byte order mark, which OpenSM keeps as part of the name.",
            "Save the file without a byte order mark.", severity="warn",
        )  # fmt: skip
    if len(name) > NAME_BYTES and log.wants("name-cut"):
        log.keep(
            "name-cut", line, column,
            f"OpenSM keeps 31 bytes of the name: “{shown(name[:NAME_BYTES])}”.",
            "Use at most 31 of A–Z, a–z, 0–9, “_”, “.” and “-”.",
        )  # fmt: skip
    if not _SAFE.issuperset(name) and log.wants("name-unsafe"):
        log.keep(
            "name-unsafe", line, column,
            f"OpenSM takes “{shown(name)}” as it stands, blanks and other characters included.",
            "Use only A–Z, a–z, 0–9, “_”, “.” and “-” in a name.",
        )  # fmt: skip
    is_other_name = not is_new and name[:NAME_BYTES] != state.name and len(state.statements) > 1
    if is_other_name and log.wants("merged-name"):
        log.keep(
            "merged-name", line, column,
            f"“{shown(name)}” is the partition {state.key:#06x} that line {state.line} calls “{shown(state.name)}”; "
            "OpenSM merges them under the first name.",
            "Use one name for one P_Key.",
        )  # fmt: skip


def _sl(parser: "Parser", state: PartitionState, header: Header, column: int) -> None:
    sl = header.flags.sl or 0
    if sl and parser.log.wants("sl-without-qos"):
        parser.log.keep(
            "sl-without-qos", parser.line, column,
            f"OpenSM uses sl {sl} only with “qos TRUE” in opensm.conf, else 0.", "Nothing, if QoS is on.",
        )  # fmt: skip
    if state.flags is not None and (state.flags.sl or 0) != sl and parser.log.wants("sl-differs"):
        parser.log.keep(
            "sl-differs", parser.line, column,
            f"The partition's sl was {state.flags.sl or 0}; this statement sets it to {sl}: the last one counts.",
            "Give every statement of the partition the same sl.",
        )  # fmt: skip


_HEADER_SAYS = {
    "flag-prefix": ("OpenSM takes “{}” for the flag it abbreviates.", "Write the flag in full."),
    "flag-unknown": ("OpenSM knows no flag “{}” and ignores it.", "Remove it, or mend its spelling (case counts)."),
    "flag-value": ("“{}” has no value that OpenSM can use as it stands.", "Give the flag a plain number it allows."),
    "membership-both": (
        "“{}” is full unless OpenSM runs with allow_both_pkeys, which takes a restart.", "Write full or limited.",
    ),
    "indx0": (
        "“{}” moves this P_Key to index 0 of its ports and Default away from it.",
        "Remove it unless programs need it; each change moves two live keys.",
    ),
    "pkey-truncated": ("OpenSM keeps 16 bits of the P_Key “{}”.", "Write a P_Key of 0x0001–0x7ffe."),
    "pkey-octal": ("OpenSM reads the P_Key “{}” as octal, because of the leading 0.", "Write it with 0x."),
    "control-byte": ("OpenSM steps over a control byte before the number “{}”.", "Remove the control byte."),
}  # fmt: skip


def _header_oddity(parser: "Parser", oddity: Oddity, at: int) -> None:
    if parser.log.wants(oddity.rule):
        message, fix = _HEADER_SAYS[oddity.rule]
        column = parser.column(at + oddity.offset)
        parser.log.keep(oddity.rule, parser.line, column, message.format(shown(oddity.text)), fix)


def carriage_return(parser: "Parser", at: int, what: str) -> None:
    """A CR where OpenSM takes it for text."""
    parser.log.add(
        "carriage-return", parser.line, parser.column(at),
        f"A carriage return is no white space for OpenSM: it {what}.",
        "Save the file with LF line ends.",
    )  # fmt: skip


def of_member(parser: "Parser", token: bytes, at: int, meaning: Member) -> None:
    """All that can be odd about a member that OpenSM takes."""
    wanted = [rule for rule in meaning.oddities if parser.log.wants(rule)]
    if not wanted and b"\r" not in token:
        return
    name, value = name_and_value(token)
    at += len(token) - len(token.lstrip(BLANKS))
    who = f"port 0x{meaning.guid:016x}" if meaning.kind == PORT else KINDS[meaning.kind] if name else "nobody"
    how = "" if meaning.membership == AS_DEFMEMBER else MEMBERSHIPS[meaning.membership]
    for rule in wanted:
        message, fix = _member_says(rule, token, name, value, who, how)
        parser.log.keep(rule, parser.line, parser.column(at), message, fix)
    if value is not None and b"\r" in value:
        carriage_return(parser, at + token.lstrip(BLANKS).index(b"\r"), "reads this member as limited")


def _member_says(rule: str, token: bytes, name: bytes, value: bytes | None, who: str, how: str) -> tuple[str, str]:
    """Message and fix of a rule that a member offends."""
    word = shown(value or b"")
    says = {
        "keyword-prefix": (f"OpenSM takes “{shown(name)}” for {who}.", f"Write {who}."),
        "membership-prefix": (f"OpenSM takes “{word}” for {how}.", f"Write {how}."),
        "membership-empty": (f"OpenSM takes “{shown(name)}=” with nothing behind it for full.", "Write full."),
        "membership-unknown": (
            f"OpenSM knows no membership “{word}” and reads limited (case counts).", "Write full or limited.",
        ),
        "membership-both": (
            f"{shown(name)}=both is full unless OpenSM runs with allow_both_pkeys, which takes a restart.",
            "Write full or limited.",
        ),
        "value-without-member": (f"OpenSM skips “{shown(token.strip(BLANKS))}”: it names nobody.", "Remove it."),
        "guid-not-hex": (
            f"Without 0x OpenSM reads “{shown(name)}” as {'octal' if name[:1] == b'0' else 'decimal'}: {who}.",
            "Write the port GUID with 0x and 16 hex digits.",
        ),
        "guid-out-of-range": (
            f"OpenSM reads “{shown(name)}” as {who}, which is no port's GUID.", "Write a port GUID of 64 bits.",
        ),
        "control-byte": (
            f"OpenSM steps over a control byte before “{shown(name.lstrip())}”.", "Remove the control byte.",
        ),
    }  # fmt: skip
    return says[rule]


def overridden(parser: "Parser", state: PartitionState, earlier: int, index: int) -> None:
    """A port that was named before, with another membership."""
    if not parser.log.wants("member-overridden"):
        return
    before, now = parser.store.spec(earlier), parser.store.spec(index)
    parser.log.keep(
        "member-overridden", now.line, now.column,
        f"Port 0x{now.guid:016x} is {before.membership} in {state.key:#06x} on line {before.line} and "
        f"{now.membership} here; the last mention wins, so it becomes {now.membership}.",
        "Name the port once.",
    )  # fmt: skip


def all_overrides(parser: "Parser", state: PartitionState, index: int) -> None:
    """ALL behind ports that were named with another membership."""
    if not parser.log.wants("keyword-overrides"):
        return
    now = parser.store.spec(index)
    parser.log.keep(
        "keyword-overrides", now.line, now.column,
        f"ALL makes every port {now.membership} in {state.key:#06x}, those named before it included.",
        "Write ALL first and the exceptions behind it.",
    )  # fmt: skip


def of_mgid(parser: "Parser", at: int, text: bytes, *, accepted: bool, reads_on: bool) -> None:
    """An mgid and what stands behind it on its line."""
    log, line, column = parser.log, parser.line, parser.column(at)
    if reads_on:
        log.add(
            "mgid-semicolon", line, column,
            "With a “;” on the line of an mgid OpenSM reads on behind the line, left-overs of earlier lines included; "
            "whether it takes the file is chance.",
            "Put the “;” behind a member on a line of its own list, not behind an mgid.",
        )  # fmt: skip
    rule = "mgid-line" if accepted else "mgid-skipped"
    if not log.wants(rule):
        pass
    elif accepted:
        log.keep(
            rule, line, column,
            f"OpenSM makes the multicast group “{_group_in(text)}”. It may log a warning, because it "
            "looks for the group's flags behind the line; that does no harm.",
            "Nothing to do: FabricUI carries the line over as it stands.",
        )  # fmt: skip
    else:
        log.keep(
            rule, line, column,
            f"OpenSM makes no multicast group of “{_group_in(text)}”: it is no multicast GID, or an IP "
            "group of another P_Key, rate or mtu than the header's.",
            "Remove the line, or mend the GID, rate or mtu.",
        )  # fmt: skip
    for token in text.split(b",")[1:]:
        name = name_and_value(token)[0]
        if name[:2] in (b"0x", b"0X") or name in (b"ALL", b"ALL_CAS", b"ALL_SWITCHES", b"ALL_ROUTERS", b"SELF"):
            if log.wants("mgid-swallows"):
                log.keep(
                    "mgid-swallows", line, column,
                    f"The mgid takes the rest of its line: OpenSM does not see the member “{shown(name)}”.",
                    "Put members on lines without an mgid.",
                )  # fmt: skip
            break


def _group_in(text: bytes) -> str:
    return shown(text.partition(b",")[0].strip())


def shared_group(parser: "Parser", offset: int) -> None:
    """Two P_Keys hold one multicast group, spelled in a scope other than the one it is kept under."""
    parser.log.add(
        "mgid-shared", parser.line, parser.column(offset),
        "Another partition makes the same multicast group, and OpenSM does not notice, because it keeps the group "
        "under another scope than spelled. It frees the group twice: it crashes when both partitions have no member, "
        "when it rejects a file, and when it ends.",
        "Let one partition make the group, or spell it in the scope of its header (ff12:… without scope=).",
    )  # fmt: skip
