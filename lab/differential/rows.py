"""What the grammar's tables say (ground truth: OpenSM, 2.1 to 2.10 and 5), each row as a way to write it.

A row writes one or more whole statements, or changes a whole file. The rows' names are what the differential counts.
"""

from collections.abc import Callable

from lab.differential.fabric import END_PORTS, SWITCH_PORTS
from lab.differential.words import BOTH, DEFAULT, FULL, LIMITED, NO_WORD, Words

Write = Callable[[Words], bytes]
Change = Callable[[Words, bytes], bytes]
LINE = 4094


def _flag(*spellings: bytes) -> Write:
    """A header with one of these flags among others, and members that take the default membership."""

    def write(words: Words) -> bytes:
        flags = [words.flag() for _ in range(words.random.randint(0, 1))] + [words.one(spellings)]
        return words.statement(words.guid() + b"," + words.gap() + words.member(), flags=flags)

    return write


def _member(*tokens: bytes) -> Write:
    """A member with one of these tokens, between others."""

    def write(words: Words) -> bytes:
        return words.statement(words.guid() + b", " + words.one(tokens) + words.membership() + b"," + words.members())

    return write


def _suffix(words_of: tuple[bytes, ...]) -> Write:
    def write(words: Words) -> bytes:
        return words.statement(words.guid() + b"=" + words.blank() + words.one(words_of) + b"," + words.member())

    return write


def _header(*texts: bytes) -> Write:
    """A header given whole, with members after it."""

    def write(words: Words) -> bytes:
        return words.one(texts) + words.blank() + b":" + words.blank() + words.members() + b";"

    return write


def _after(*lines: bytes) -> Write:
    """A statement and one of these lines after it."""

    def write(words: Words) -> bytes:
        return words.statement() + b"\n" + words.one(lines)

    return write


def _mgid(*lines: bytes) -> Write:
    """An mgid line of its own inside a statement with known flags, members before and after it."""

    def write(words: Words) -> bytes:
        head = words.header(pkey=words.number(words.one((0x10, 0x11)), bits=16), flags=[b"mtu=4", b"rate=3"])
        return head + b"\n" + words.guid() + b"\n" + words.one(lines) + b"\n" + words.members() + b";"

    return write


def _twice(words: Words) -> bytes:
    pkey = words.pkey()
    port = words.guid()
    return (
        words.statement(port + words.membership(), pkey=pkey)
        + b"\n"
        + words.statement(port + words.membership() + b"," + words.member(), pkey=pkey)
    )


def _numbered(words: Words) -> bytes:
    """Statements without a P_Key, and one that claims a number they get."""
    parts = [words.one((b"first", b"second", b"first, defmember=full", b"")) + b":" + words.members() + b";"]
    parts.append(words.one((b"other=1", b"other=0x8002", b"other=3")) + b":" + words.members() + b";")
    parts.append(words.one((b"first", b"third", b"other", b"Default")) + b":" + words.members() + b";")
    words.random.shuffle(parts)
    return b"\n".join(parts)


def _many(words: Words, *, keys: int) -> bytes:
    """More P_Keys for one port than its table holds, in no order."""
    numbers = words.random.sample(range(1, 0x7FFE), keys)
    who = words.one((b"ALL=full", words.guid() + b"," + words.guid(), words.number(SWITCH_PORTS[0].number)))
    return b"\n".join(b"m=0x%x: %s;" % (number, who) for number in numbers)


def _indx0(words: Words) -> bytes:
    pkey = words.pkey()
    first = words.statement(
        words.members(), pkey=pkey, flags=[b"indx0", *([words.flag()] if words.chance(0.5) else [])]
    )
    others = [
        b"",
        words.statement(words.members(), pkey=pkey),
        words.statement(words.members(), flags=[b"indx0"]),
        words.statement(words.members(), pkey=b"0x7fff", flags=[b"indx0"]),
        words.statement(b"ALL=full", pkey=b"0x7fff"),
    ]
    parts = [first, words.one(others), words.one(others)]
    words.random.shuffle(parts)
    return b"\n".join(parts)


def _left_over(words: Words) -> bytes:
    """A line whose text can still be in OpenSM's memory when a shorter one is read after it."""
    return words.one((b"# ", b"#", b"", b"\t")) + words.one(
        (
            words.statement(),
            b"x" * words.random.randint(1, 20) + b": " + words.members() + b"; " + words.statement(),
            words.header() + b" " + words.members(3, 8),
            b"note: ALL=full",
            words.member() + b" : " + words.member() + b" , " + words.member(),
            b" , ".join(words.one((b"mtu=5", b"scope=5", b"sl=1", b"ALL=full", b"A=0x10: ALL")) for _ in range(5)),
        )
    )  # fmt: skip


def _lone_in_a_list(words: Words) -> bytes:
    """An open statement, a line or two, and a `;` by itself."""
    lines = [words.header() + b" " + words.members(0, 3)]
    lines += [words.one((_left_over(words), b"#" + _left_over(words), words.member())) for _ in range(2)]
    lines.append(words.one((b";", b" ;", b"\t; # " + _left_over(words), b"; " + words.statement(), b",;")))
    return b"\n".join(lines[words.random.randint(0, 1) :])


def _comment_is_read(words: Words) -> bytes:
    """A comment that OpenSM reads after all: a `;` by itself takes it back from its third byte on."""
    comment = b"#" + words.one((b"..", b". ", b".", b"....", b" ;", b"")) + words.one(
        (words.statement(), words.statement(), words.name() + b": ALL=full", words.members() + b";")
    )  # fmt: skip
    return words.header() + words.members(0, 2) + b"\n" + comment + b"\n" + words.one((b";", b" ;", b";\n", b",;"))


def _cut_in_a_token(words: Words) -> bytes:
    """The 4094th byte falls inside a token whose halves OpenSM takes, or does not."""
    token = words.one(
        (
            b"17=full", b"18 = full", b"0x2c90300012341", b"33,17=full", b"ALL_SWITCHES=full", b"25", b"1713",
            b"0x11=limited", b"; B=0x11: 17", b";B=0x11:17", b"# 17, 18", b"SELF=full", b"mgid=ff12::1,sl=0",
            b"ALL ,18", b"S,ALL", b"17,ALL=full", b"0x2c9,0x2c90300012341=full",
        )
    )  # fmt: skip
    head = words.header(flags=[words.one((b"ipoib", b"defmember=full"))])
    blank = words.one((b" ", b"\t"))
    lead = blank * (LINE - len(head) - words.random.randint(1, len(token)))
    return head + lead + token + words.one((b";", b", 17;", b"\n;"))


def _mgid_over_left_overs(words: Words) -> bytes:
    """mgid lines without a comma behind the group: OpenSM looks for flags behind the line's end."""
    group = words.one((b"mgid=ff12::1", b"mgid=ff12:401b::1", b" mgid = ff12::3", b"mgid=ff12::4 # x", b"mgid=fe80::1"))
    tail = words.one((b"", b";", b" ;", b"; " + words.statement(), b"\n;", b"\n" + words.member() + b";"))
    return words.header(flags=[]) + b"\n# " + _left_over(words) + b"\n" + group + tail


def _under_both(words: Words) -> bytes:
    """Full, limited and both of one key for the same ports, one after the other."""
    pkey = words.pkey(words.one((0x10, 0x11, DEFAULT)))
    who = words.one((b"ALL", b"ALL_CAS", b"ALL_SWITCHES", b"SELF", words.guid()))
    how = [b"=full", b"=limited", b"=both", b""]
    words.random.shuffle(how)
    members = [words.one((who, words.guid(), b"ALL")) + word for word in how[: words.random.randint(2, 4)]]
    flags = [words.one((b"defmember=both", b"defmember=full", b"ipoib", b"indx0"))]
    return words.statement(b", ".join(members), pkey=pkey, flags=flags) + b"\n" + words.statement(pkey=pkey)


def _over_the_line(words: Words) -> bytes:
    """A statement whose line is longer than OpenSM reads at once, cut anywhere."""
    members = b", ".join(words.number(words.one(END_PORTS).number) + words.membership() for _ in range(40))
    head = words.header()
    lead = b" " * (LINE - len(head) - words.random.randint(0, len(members)))
    return head + lead + members + b";"


def _long_comment(words: Words) -> bytes:
    return b"# " + b"x" * words.random.randint(LINE - 4, LINE + 40) + words.one((b"", b" y: z", b"; ALL")) + b"\n"


def _shapes(words: Words) -> bytes:
    """Several statements a line, comments with delimiters, members by lines without commas."""
    return words.one(
        (
            words.statement() + words.blank() + words.statement(),
            words.statement() + b" # ; : = , ALL=full;\n" + words.statement(),
            words.header() + b"\n" + words.member() + b"\n" + words.member() + b"\n" + words.member() + b" ;",
            b"# a: b=1, c;\n\n\t\n" + words.statement(),
        )
    )


def _commas(words: Words) -> bytes:
    head = words.header(flags=[b"", b"defmember=full"] if words.chance(0.5) else [])
    return head + b", " + words.guid() + b",," + words.guid() + b" , ,\n," + words.member() + words.one((b",;", b", ;"))


STATEMENTS: dict[str, Write] = {
    "2.1 shape": _shapes,
    "2.3 long name": lambda words: words.statement().replace(b"=", b"x" * 40 + b"=", 1),
    "2.3 digit-first name with a P_Key": _header(b"2nd floor=0x12", b"9=0x13, defmember=full"),
    "2.3 colon in the name": _header(b"A:1=0x10", b"A:ALL=full, 17"),
    "2.3 no name": _header(b"=0x10", b" = 0x8011 , defmember=full", b""),
    "2.3 other bytes in the name": _header(
        b"\xff\xfe=0x10", b"a\x0bb=0x11", b"\x0c=0x10", b"\"quoted\"=0x20", b"a\x01=3"
    ),
    "2.4 hex, octal, decimal": lambda words: words.statement(pkey=words.number(words.one((0x10, 0x11)), bits=16)),
    "2.4 truncated to 15 bits": _header(b"A=0x18001", b"B=0xffff8010", b"C=98305", b"D=-32751", b"E=0x100007fff"),
    "2.4 key 0 is no key": _header(b"A=0", b"B=0x8000", b"C=0x10000", b"Default=0", b"D=-0"),
    "2.4 overflow": _header(b"A=0x10000000000000010", b"B=99999999999999999999999", b"C=-99999999999999999999999"),
    "2.4 blanks that strtoul skips": _header(b"A=\x0b0x10", b"B=\r17", b"C= \x0c +16"),
    "2.4 number only": _header(b"0x10", b"17, defmember=full", b"0", b"010"),
    "2.4 auto numbers": _numbered,
    "2.5 ipoib": _flag(b"ipoib", b"i", b"ipo", b"ipoib=0", b"ipoib=no"),
    "2.5 rate": _flag(b"rate=3", b"rate=0x10", b"r=7", b"rate=99", b"rate", b"rate=x"),
    "2.5 mtu": _flag(b"mtu=4", b"m=5", b"mtu=0", b"mtu=9", b"mtu", b"mt=4x"),
    "2.5 sl": _flag(b"sl=3", b"sl=16", b"sl=", b"sl", b"sl=0x1", b"sl=1\x0bx"),
    "2.5 scope": _flag(b"scope=2", b"s=5", b"scope=0", b"scope=16", b"sc=0x1f", b"scope"),
    "2.5 Q_Key, TClass, FlowLabel": _flag(
        b"Q_Key=1", b"Q=0x80010000", b"T=0x60", b"TClass=0", b"F=1", b"FlowLabel=0x100000", b"Q_Key", b"FlowLabel="
    ),
    "2.5 indx0": _indx0,
    "2.5 defmember": _flag(b"defmember=full", b"d=f", b"def=", b"defmember=limited", b"defmember=both", b"d=b"),
    "2.5 defmember misspelt": _flag(b"defmember=FULL", b"defmember", b"defmember=fulll", b"Defmember=full", b"d=x"),
    "2.5 unknown flag": _flag(b"IPOIB", b"indx", b"indx0x", b"nonsense=1", b"full", b"=3", b"mtux=1", b"indx0=0"),
    "2.5 two defmembers": _flag(b"defmember=full, defmember=limited", b"d=l,d=f", b"defmember=full,defmember=x"),
    "2.6 ALL": _member(b"ALL", b"A", b"AL"),
    "2.6 ALL_CAS": _member(b"ALL_CAS", b"ALL_", b"ALL_C", b"ALL_CA"),
    "2.6 ALL_SWITCHES": _member(b"ALL_SWITCHES", b"ALL_S", b"ALL_SWITCH"),
    "2.6 ALL_ROUTERS": _member(b"ALL_ROUTERS", b"ALL_R", b"ALL_ROUTER"),
    "2.6 SELF": _member(b"SELF", b"S", b"SE"),
    "2.6 NONE or nothing": _member(b"NONE", b"N", b"NON", b"", b" "),
    "2.6 number": lambda words: words.statement(words.number(words.one(END_PORTS).number) + words.membership()),
    "2.6 absent or node GUID": lambda words: words.statement(words.stranger() + b"," + words.member()),
    "2.6 overflow and sign": _member(
        b"-1", b"0x1ffffffffffffffff", b"+17", b"-255", b"99999999999999999999", b"\x0b17"
    ),
    "2.6 full": _suffix(FULL),
    "2.6 limited": _suffix(LIMITED),
    "2.6 both": _suffix(BOTH),
    "2.6 other word is limited": _suffix(NO_WORD),
    "2.6 absent suffix": lambda words: words.statement(words.guid(), flags=[words.one((b"defmember=full", b"ipoib"))]),
    "2.6 no keyword": _member(b"all", b"ALL_VCAS", b"self", b"ALLX", b"node01", b"ALL _CAS", b"SELFISH"),
    "2.7 last wins": _twice,
    "2.7 SELF before ALL": lambda words: words.statement(
        words.one((b"SELF=full, ALL=limited", b"ALL=limited, SELF=full")), pkey=words.pkey(DEFAULT)
    ),
    "2.7 both": lambda words: words.statement(
        words.guid() + b"=both," + words.one((b"ALL=b", b"ALL_CAS=both", b"SELF=both", words.member()))
    ),
    "2.7 allow_both_pkeys": _under_both,
    "2.8 mgid inherits": _mgid(b"mgid=ff12::1", b"mgid=ff12::2,sl=1", b"mgid=ff12:401b::5", b"mgid=ff12:601b::1:2"),
    "2.8 IP group differs": _mgid(
        b"mgid=ff12:401b::1,rate=7", b"mgid=ff12:601b::1,mtu=5", b"mgid=ff12:401b:1234::7,sl=1",
        b"mgid=ff12:401b:8010::7", b"mgid=ff12:401b:ffff::ffff:ffff",
    ),
    "2.8 mgid swallows its line": _mgid(
        b"mgid=ff12::3,sl=1, ALL=full", b"mgid=ff12::4, ALL=full, 17", b"mgid=ff12::5,ALL"
    ),
    "2.8 mgid inside a line": lambda words: words.statement(
        words.guid() + b", mgid=ff12::6,sl=0," + words.members() + b"\n" + words.member()
    ),
    "2.8 not multicast": _mgid(b"mgid=fe80::1", b"mgid=ff12:::1", b"mgid=", b"mgid=0x11, 17", b"mgid=1.2.3.4"),
    "2.8 not multicast with a semicolon": _after(
        b"A=0x10: mgid=fe80::1;\n", b"A=0x10:\nmgid=fe80::1, 0x11;\n", b"A=0x10: 17, mgid=x , ALL ; B=0x11:17;\n"
    ),
    "2.8 mgid with a semicolon": _after(b"A=0x10: mgid=ff12::9;\n", b"A=0x10: mgid=ff12::9,sl=1;\n"),
    "2.8 mgid over left-overs": _mgid_over_left_overs,
    "2.8 mgid without a value": _after(b"A=0x10: mgid;\n", b"A=0x11:\n mgid, 0x11\n"),
    "2.8 mgid misspelt": _mgid(b"mgidx=ff12::1", b"Mgid=ff12::1", b"mgi=ff12::1"),
    "2.9 lone semicolon": _after(b";\n", b" ;\n", b"\t; # done\n", b"\n\n;\n", b"# c\n;\n"),
    "2.9 two semicolons": _after(b";; \n", b"A=0x10: ALL;;\n", b"A=0x10: 17;; B=0x11: 17;\n"),
    "2.9 semicolons apart": _after(
        b"; ;\n", b"A=0x10: ALL=full; ;\n", b"A=0x10: 17=full ; ; B=0x11:ALL;\n", b" ; ; ; \n"
    ),
    "2.9 lone semicolon in an open list": _lone_in_a_list,
    "2.9 lone semicolon after a comment": _comment_is_read,
    "2.9 missing semicolon": lambda words: words.statement()[:-1] + b"\n" + words.statement(),
    "2.9 header over two lines": lambda words: words.name() + b"=0x10,\nipoib:" + words.members() + b";",
    "2.9 bad GUID": _member(b"0", b"0x", b"17x", b"0x11 0x12", b"0xg", b"089", b"0x0", b"17\xa0", b"-0", b"0b11", b"+"),
    "2.9 colon GUID": _member(b"0002:c903:0001:0001", b"00:02:c9:03:00:01:00:01"),
    "2.9 quoted": _member(b"\"0x11\"", b"'ALL'", b"0x11=\"full\""),
    "2.9 digit-first name": _header(b"2nd-floor", b"3 men", b"1A, ipoib", b"0x10x", b"9", b"08"),
    "2.9 two equals signs": _header(b"a=b=0x1", b"a==1", b"=a=1", b"a=0x10=0x11"),
    "2.9 key is no number": _header(b"A=8abc", b"A=0xfg", b"A=x", b"A=", b"A= ", b"A=0x10 0x11", b"A=1 # x"),
    "2.9 comment in the header": _after(b"A#x=0x10: ALL;\n", b"A=0x10 # now : ALL;\n"),
    "2.9 form feed": _after(
        b"\x0c\nA=0x10: 17;\n", b"A=0x10: 17,\x0c 18;\n", b"A=0x10:\x0c17;\n", b"\x0cA=0x10: 17;\n"
    ),
    "2.9 vertical tab, NBSP": _after(b"A=0x10: 17,\x0b18;\n", b"A=0x10: 17,\xa018;\n", b"A=0x10: ALL\xa0=full;\n"),
    "2.9 CR inside": _after(
        b"A=0x10: 17;\r\n", b"A=0x10:\r\n17;\n", b"A=0x10: 17,\r\n18;\n", b"A=0x10: 17=full\r\n;\n"
    ),
    "2.9 over 4094 bytes": _over_the_line,
    "2.2 line cut inside a token": _cut_in_a_token,
    "2.9 long comment": _long_comment,
    "not invalid: commas": _commas,
    "not invalid: blank and comment lines": lambda words: (
        words.header() + b"\n# list; of:\n\n " + words.member() + b",\n#\n\t\n" + words.member() + b";"
    ),
    "not invalid: empty group": lambda words: (
        words.header() + words.blank() + words.one((b";", b"NONE;", b",;", b"N=full;"))
    ),
    "not invalid: NUL": lambda words: words.statement() + words.one((b"\0", b" # x\0y", b"\0 garbage : ;", b"\0\n")),
    "not invalid: NUL inside": lambda words: (
        words.header() + words.guid() + b",\0" + words.guid() + b"\n" + words.guid() + b";"
    ),
    "not invalid: NUL in a header": _header(b"A\0B=0x10", b"\0A=0x10", b"A=0x10\0, ipoib", b"A=0x10, ipoib\0", b"A\0"),
    "2.10 Default": lambda words: words.default(),
    "5.3 table of a switch is full": lambda words: _many(words, keys=words.random.randint(8, 12)),
    "5.3 table of an HCA is full": lambda words: _many(words, keys=words.random.randint(63, 80)),
}  # fmt: skip

FILES: dict[str, Change] = {
    "2.9 empty": lambda words, text: b"",
    "2.9 only comments": lambda words, text: words.one((b"# A=0x10: ALL;\n", b"\n\n \t\n", b"#", b"#\n\n# x\n   ")),
    "2.9 BOM": lambda words, text: b"\xef\xbb\xbf" + words.one((b"", b"# comment\n", b"\n")) + text,
    "2.9 CR LF": lambda words, text: text.replace(b"\n", b"\r\n"),
    "2.9 no definition": lambda words, text: (
        words.one((b"hello\n", b"PartitionName=x Nodes=y\n", b"ALL=full;\n")) + text
    ),
    "not invalid: no final newline": lambda words, text: text.rstrip(b"\n"),
    "not invalid: last statement open": lambda words, text: text.rstrip(b"\n;"),
    "2.9 lone semicolon first": lambda words, text: words.one((b";\n", b" ;", b"; ;\n")) + text,
}

# The rows that say something about an option of OpenSM: their files are read with it.
UNDER_ALLOW_BOTH = {"2.7 allow_both_pkeys"}
ROWS = (*STATEMENTS, *FILES)
