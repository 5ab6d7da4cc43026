"""Why OpenSM rejects a file, as far as it can be guessed: the place to mend, not only the place where it stumbles."""

import re
from typing import TYPE_CHECKING

from subnet.opensm_reading.cnumbers import strtoul
from subnet.opensm_reading.headers import parse_header
from subnet.opensm_reading.notes import shown
from subnet.opensm_reading.tokens import BAD, BLANKS, name_and_value, understand

if TYPE_CHECKING:
    from subnet.opensm_reading.parser import Parser, Rejected

_KEYWORDS = (b"ALL", b"ALL_CAS", b"ALL_SWITCHES", b"ALL_ROUTERS", b"SELF", b"NONE")
_COLON_GUID = re.compile(rb"[0-9a-fA-F]{2,4}(:[0-9a-fA-F]{0,4}){2,}")
_HEX = re.compile(rb"[0-9a-fA-F]*[a-fA-F][0-9a-fA-F]*\Z")
_HEADER = re.compile(rb"[^,:;=#]*(=[^,:;=#]*)?(,[^:;#]*)?:")
_HOST = re.compile(rb"[A-Za-z][A-Za-z0-9_.-]*(\[[^\]]*\][A-Za-z0-9_.-]*)?\Z")
_RANGE_COMMA = re.compile(rb"\[[^\],]*\Z")
_SCHEDULER = re.compile(rb"(PartitionName|NodeName)=", re.IGNORECASE)
_BOM = b"\xef\xbb\xbf"
_LOOK_AHEAD = 4096


def tell(parser: "Parser", rejected: "Rejected", text: bytes) -> None:
    """Explain a rejection; `text` is the line as it was read."""
    from subnet.opensm_reading import parser as messages

    if rejected.message == messages.NO_DEFINITION:
        _no_definition(parser, rejected, text)
    elif rejected.message == messages.BAD_DEFINITION:
        _bad_definition(parser, rejected)
    elif rejected.message == messages.BAD_GUID:
        _bad_member(parser, rejected, text)
    else:
        parser.log.add(
            "mgid-without-value", parser.line, rejected.column,
            "OpenSM crashes at an mgid without a value, and again each time it is started with this file.",
            "Write mgid=GID, or remove it.",
        )  # fmt: skip


def tell_nothing(parser: "Parser") -> None:
    """A file that ends before anything was defined."""
    what = "The file is empty" if not parser.data.strip(BLANKS) else "The file defines nothing (only comments)"
    parser.log.add(
        "no-definition", 1, 1,
        f"{what}. OpenSM rejects it: every port becomes a full member of Default, all other partitions go.",
        "Write at least the Default rule.",
    )  # fmt: skip


def _add(parser: "Parser", rule: str, column: int, message: str, fix: str) -> None:
    parser.log.add(rule, parser.line, column, f"{message} OpenSM rejects the whole file.", fix)


def _no_definition(parser: "Parser", rejected: "Rejected", text: bytes) -> None:
    token = rejected.token.strip(BLANKS)
    if parser.log.has("unwritten-memory"):
        return
    if _SCHEDULER.search(text):
        _scheduler_file(parser, rejected)
    elif token.startswith(_BOM):
        _add(
            parser, "byte-order-mark", rejected.column,
            "The file begins with a byte order mark, which OpenSM takes for text that must begin a definition.",
            "Save the file without a byte order mark.",
        )  # fmt: skip
    elif b"\r" in token:
        _add(
            parser, "carriage-return", rejected.column + rejected.token.index(b"\r"),
            "A carriage return is no white space for OpenSM: it expects a definition here.",
            "Save the file with LF line ends.",
        )  # fmt: skip
    elif parser.log.has("lone-semicolon") or parser.log.has("mgid-semicolon"):
        _add(
            parser, "no-header", rejected.column,
            f"Behind the “;” OpenSM reads “{shown(token)}”, where a definition must begin.",
            "Mend the “;” that is named above.",
        )  # fmt: skip
    elif b":" in _following(parser, text):
        _add(
            parser, "header-over-lines", rejected.column + len(rejected.token.rstrip(BLANKS)),
            "A header must stand on one line, its “:” included.", "Join the lines up to the “:”.",
        )  # fmt: skip
    else:
        _add(
            parser, "no-header", rejected.column,
            f"“{shown(token)}” stands where a definition must begin, and has no “:”.",
            "Write NAME=0xPKEY : members ; or make the line a comment.",
        )  # fmt: skip


def _scheduler_file(parser: "Parser", rejected: "Rejected") -> None:
    _add(
        parser, "scheduler-file", rejected.column,
        f"“{shown(rejected.token.strip(BLANKS))}”: this is the file of a job scheduler (Slurm), not of OpenSM.",
        "Name the file that OpenSM reads, /etc/opensm/partitions.conf as a rule.",
    )  # fmt: skip


def _following(parser: "Parser", text: bytes) -> bytes:
    """What stands behind the line, up to the next `;`, without comments; nothing when the line itself has a `;`."""
    if b";" in text:
        return b""
    start = parser.data.find(text) + len(text)
    after = parser.data[start : start + _LOOK_AHEAD]
    return re.sub(rb"#[^\n]*", b"", after).partition(b";")[0]


def _bad_definition(parser: "Parser", rejected: "Rejected") -> None:
    if _SCHEDULER.search(rejected.token):
        _scheduler_file(parser, rejected)
        return
    header = parse_header(rejected.token)
    if not header.is_bad:
        _add(
            parser, "no-pkey-left", rejected.column,
            "OpenSM has given away every P_Key up to 0x7ffe and finds none for this partition.",
            "Write P_Keys, and fewer partitions.",
        )  # fmt: skip
        return
    name, value = name_and_value(rejected.token.split(b",")[0])
    if value is None:
        message = f"“{shown(name)}” begins with a digit, so OpenSM takes it for a P_Key, which it is not."
        fix = "Write NAME=0xPKEY; a name that begins with a digit needs a P_Key."
    else:
        message = f"“{shown(value)}” is no P_Key."
        fix = "Write 0x and four hex digits, as in 0x0010."
    _add(parser, "bad-pkey", rejected.column, message, fix)


def _bad_member(parser: "Parser", rejected: "Rejected", text: bytes) -> None:
    token, column = rejected.token, rejected.column
    blanks = len(token) - len(token.lstrip(BLANKS))
    column += blanks
    name, _ = name_and_value(token)
    at = column - parser.column(0)
    rest = text[at:].partition(b"#")[0]
    if b"\r" in token:
        _add(
            parser, "carriage-return", column - blanks + token.index(b"\r"),
            "A carriage return is no white space for OpenSM: it makes a member of it.",
            "Save the file with LF line ends.",
        )  # fmt: skip
        if not name.strip(b"\r"):
            return
    if _COLON_GUID.match(rest):
        rule, fix = "guid-with-colons", "Write the port GUID as 0x and 16 hex digits."
        message = f"“{shown(rest.split(b',')[0].strip())}” is no number: OpenSM knows no GUID with colons."
    elif _HEADER.match(rest):
        _missing_semicolon(parser, text, at)
        rule, fix = "bad-member", "End the statement before with “;”."
        message = f"“{shown(token.strip(BLANKS))}” stands in the member list of the statement before, and is no member."
    elif name.upper() in _KEYWORDS:
        rule, fix = "keyword-case", f"Write {name.upper().decode()}."
        message = f"“{shown(name)}” is no keyword: case counts."
    elif _HEX.match(name):
        rule, fix = "guid-without-0x", f"Write 0x{shown(name)}."
        message = f"“{shown(name)}” is no number for OpenSM: a GUID begins with 0x."
    elif name and strtoul(name) == (0, len(name)):
        rule, fix = "guid-zero", "Remove it."
        message = f"“{shown(name)}” is zero, which is no port."
    else:
        rule = "host-name" if _HOST.match(_with_range(name, rest)) else "bad-member"
        fix = "Write port GUIDs (0x and 16 hex digits) or the keywords ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, SELF."
        message = f"“{shown(_with_range(name, rest))}” is no port GUID and no keyword."
        if rule == "host-name":
            message = f"“{shown(_with_range(name, rest))}” is no member: OpenSM knows no host names and no ranges."
    _add(parser, rule, column, message, fix)
    if rule == "bad-member":
        _hosts(parser, rest, column)


def _missing_semicolon(parser: "Parser", text: bytes, at: int) -> None:
    """Point at the end of the statement before, which lacks its `;`."""
    if text[:at].strip(BLANKS):
        line, column = parser.line, parser.column(len(text[:at].rstrip(b" \t\n,")))
    else:
        line, column = parser.end_of_list
    parser.log.add(
        "missing-semicolon", line, column,
        "The statement has no “;” here, so OpenSM reads the next header as its members and rejects the whole file.",
        "Put a “;” here.",
    )  # fmt: skip


def _with_range(name: bytes, rest: bytes) -> bytes:
    """A member's name, with the rest of a range that its comma cut in two."""
    if _RANGE_COMMA.search(name) and b"]" in rest:
        return rest[: rest.index(b"]") + 1].strip(BLANKS)
    return name


def _hosts(parser: "Parser", rest: bytes, column: int) -> None:
    """Further names of hosts in a statement whose header was read as a member."""
    head, colon, members = rest.partition(b":")
    offset = column + len(head) + len(colon)
    for token in members.partition(b";")[0].split(b","):
        name, _ = name_and_value(token)
        if understand(token).kind == BAD and _HOST.match(name):
            _add(
                parser, "host-name", offset + len(token) - len(token.lstrip(BLANKS)),
                f"“{shown(name)}” is no member: OpenSM knows no host names and no ranges.",
                "Write port GUIDs (0x and 16 hex digits).",
            )  # fmt: skip
        offset += len(token) + 1
