"""What a partition file of 50 MB may look like, at any size; and random lines in which mgids and left-overs meet."""

from collections.abc import Callable
from random import Random

_DEFAULT = b"Default=0x7fff, ipoib : ALL=limited, SELF=full;\n"
_OPEN = _DEFAULT + b"A=0x10 :\n"
_LAST = b" ALL=full;\n"


def _of(line: Callable[[int], bytes], head: bytes = _OPEN, tail: bytes = _LAST) -> Callable[[int], bytes]:
    """A file of about so many bytes: head, lines by their number, tail."""

    def made(size: int) -> bytes:
        parts, left, number = [head], size - len(head) - len(tail), 0
        while left > 0:
            number += 1
            parts.append(line(number))
            left -= len(parts[-1])
        return b"".join((*parts, tail))

    return made


def _guid(number: int) -> bytes:
    return b"0x%016x" % (0x0002C90300000000 + number * 7919)


def _mgid(number: int) -> bytes:
    return b"mgid=ff1%x:401b::%x:%x" % (2 + number % 3, number >> 16, number * 37 & 0xFFFF)


SHAPES: dict[str, Callable[[int], bytes]] = {
    "members": _of(lambda n: b" %s=full,\n" % _guid(n)),
    "members_commented": _of(lambda n: b" %s=full, # port %d\n" % (_guid(n), n)),
    "members_overridden": _of(lambda n: b" 0x%x=%s\n" % (n // 2 % 1000 + 1, b"full" if n % 2 else b"limited")),
    "members_odd": _of(lambda n: b"0x%x=FULL\n %d=f\n" % (n * 7 + 1, n * 5 + 1)),
    "keywords": _of(lambda n: b" ALL=full,\n SELF=limited,\n ALL_CAS=full, ALL_SWITCHES\n NONE\n"),
    "comments": _of(lambda n: b"# server srv-%d, 2 ports\n" % n),
    "mgid": _of(lambda n: b" mgid=ff12:401b::%x:%x\n" % (n >> 16, n & 0xFFFF)),
    "mgid_lengths": _of(lambda n: b"%s%s\n" % (b" " * (n % 3), _mgid(n))),
    "mgid_flags": _of(lambda n: b" %s,sl=%d,Q_Key=0x%x\n" % (_mgid(n), n % 16, n)),
    "mgid_scopes": _of(lambda n: b" mgid=ff1%x::%x,scope=%d\n" % (n % 16, n % 50, n % 17)),
    "mgid_commented": _of(lambda n: b" %s # scope=%d\n" % (_mgid(n), n % 20)),
    "mgid_mixed": _of(lambda n: b" %s\n %s=full,\n" % (_mgid(n), _guid(n))),
    "mgid_swallows": _of(lambda n: b" %s,sl=1, %s=full\n" % (_mgid(n), _guid(n))),
    "mgid_skipped": _of(lambda n: b"mgid=x\n"),
    "mgid_same": _of(lambda n: b"mgid=ff12::1\n"),
    "mgid_header": _of(
        lambda n: b"P%d=0x%x,ipoib : %s\n%s=full;\n" % (n % 320, n % 320 + 1, _mgid(n), _guid(n)), _DEFAULT, b""
    ),
    "mgid_semicolon": _of(lambda n: b"A=0x10:mgid=fe80::1;\n", b"", b""),
    "mgid_shared": _of(lambda n: b"P%d=%d:mgid=ff15::%d\nNONE;\n" % (n % 7, n % 7 + 1, n % 11), b"", b""),
    "statements": _of(lambda n: b"P%d=0x%x : %s=full;\n" % (n % 320, n % 320 + 1, _guid(n)), _DEFAULT, b""),
    "statements_nameless": _of(lambda n: b"=0x%x : %s=full;\n" % (n % 320 + 1, _guid(n)), _DEFAULT, b""),
    "statements_keyless": _of(lambda n: b"P%d : %s=full;\n" % (n % 320, _guid(n)), _DEFAULT, b""),
    "statements_flags": _of(
        lambda n: b"P%d=0x%x, ipoib, sl=%d, rate=7, defmember=full : %s;\n" % (n % 3, n % 32 + 1, n % 5, _guid(n)),
        _DEFAULT, b"",
    ),
    "statements_names": _of(lambda n: b"P%d=0x%x:0x%x;\n" % (n, n % 320 + 1, n + 100), _DEFAULT, b""),
    "long_lines": _of(lambda n: b",".join(_guid(n * 150 + at) for at in range(150)) + b",\n"),
    "crlf": _of(lambda n: b" %s=full,\r\n" % _guid(n)),
    "nuls_in": _of(lambda n: b" %s=full,\0\n" % _guid(n)),
    "semicolons": lambda size: b";" * size,
    "nuls": lambda size: b"\0" * size,
    "newlines": lambda size: b"\n" * size,
    "random": lambda size: Random(1).randbytes(size),  # noqa: S311  no secret
    "one_line": lambda size: b"A:" + b"1," * (size // 2),
    "one_line_of_statements": lambda size: b"1:2;" * (size // 4),
    "tiny_statements": lambda size: b"1:2;\n" * (size // 5),
    "tiny_members": _of(lambda n: b"2\n"),
    "tiny_keywords": _of(lambda n: b"A\n"),
    "nul_lines": _of(lambda n: b"\0\n"),
    "hash_lines": _of(lambda n: b"#\n"),
    "blank_lines": _of(lambda n: b" \n"),
    "auto_numbers": lambda size: b":1;\n" * (size // 4),
}  # fmt: skip

_PIECES = (
    b"\n", b"\n", b";\n", b",", b"#", b"\0\n", b"A=0x10:", b"B=0x11,rate=7:", b"=0x12,scope=3:", b"C:", b"0x21",
    b"ALL=full", b"scope=9", b"mgid=ff12::1", b"mgid=x", b"mgid=ff15::9,ALL", b" # rate=9,scope=3\n", b"17=both",
    b"N", b"mgid",
)  # fmt: skip
_COPIED = (
    b"1:2;", b"A:1;", b":1;", b"N", b"2,3=full,", b"mgid=ff12::1", b";", b"A=0x10:0x2=full,0x2;",
    b"0x2,0x2=full", b"ALL,17=full", b"\0", b"# sl=3", b",", b"P=5,sl=3:ALL;", b"mgid=", b"mgid=ff13::1,scope=3",
)  # fmt: skip


def lines_of(random: Random) -> bytes:
    """Lists, mgids of many lengths, headers and comments in any order, and now and then a line many times over."""
    one, parts = random.choice, [b"A=0x10%s:\n" % random.choice((b"", b",rate=7", b",scope=3"))]
    for _ in range(random.randint(3, 40)):
        chance = random.random()
        if chance < 0.6:
            middle = one((b"", b"401b:", b"601b:8010:", b"401b:ffff:", b":1"))
            gid = b"ff1%x:%s:%x" % (one((2, 5, 14)), middle, random.getrandbits(one((4, 8, 16))))
            flags = one(
                (b"", b"", b":77", b" ", b",sl=3 ", b",scope=%d" % random.randint(0, 17), b",0x11", b"#,scope=3")
            )
            parts.append(b"%smgid=%s%s\n" % (b" " * one((0, 0, 1, 7)), gid, flags))
        elif chance < 0.95:
            parts += [one(_PIECES) for _ in range(random.randint(1, 4))]
        else:
            parts.append((one(_COPIED) + one((b"\n", b"\n", b""))) * one((3, 250, 600)))
    return b"".join(parts)
