"""Files of short lines in which OpenSM reads on in what earlier lines left in its buffer.

Comments, open lists, mgid lines without a comma and a `;` with nothing before it follow each other in any order.
"""

from lab.differential.words import Words


def lines(words: Words) -> bytes:
    """Three to a dozen lines; about a third of such files is accepted."""
    statement = words.statement()
    inside = (
        b"17=full", b"18,33", b"ALL", b"SELF=full", b"  ", b"\0", b"17,\0 B=0x11: 18;", words.members(),
        b"# x", b"#..B=0x11: ALL=full;", b"#...C=0x12: 18;33=full", b"# D=0x13: 33=full, 17; E=0x14:",
        b"# " + statement, b"#" + statement, b"mgid=ff12::1", b"mgid=ff12::1,sl=1", b"mgid=ff12:401b::3",
    )  # fmt: skip
    closing = (
        b";", b" ;", b",;", b"; ", b"\t;", b"; ;", b"; # " + statement, b"17;", b"18;17:", b"; G=0x17: 18;",
        b"mgid=ff12::7;", b"mgid=fe80::1;",
    )  # fmt: skip
    opening = (
        b"D=0x14: 17", b"D=0x14:", b"F=0x16, defmember=full: 18", words.header(), statement, b"E=0x15: 17; F=0x16: 18",
        b"# H=0x18: ALL;",
    )  # fmt: skip
    written: list[bytes] = []
    is_open = False
    for _ in range(words.random.randint(3, 12)):
        if not is_open:
            written.append(words.one(opening if words.chance(0.85) else inside + closing))
            is_open = not written[-1].endswith(b";")
        elif words.chance(0.65):
            written.append(words.one(inside))
        else:
            written.append(words.one(closing))
            is_open = False
    return b"\n".join(written) + words.one((b"", b"\n"))
