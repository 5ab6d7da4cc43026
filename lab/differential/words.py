"""Random words of the partition language: numbers, names, blanks and members in every spelling OpenSM takes.

All randomness comes from one seeded generator, so that a seed always gives the same file.
"""

from collections.abc import Sequence
from random import Random

from lab.differential.fabric import END_PORTS, NODE_GUIDS
from subnet.guid import GUID

# Few, so that statements meet; both bytes differ, because OpenSM orders keys with their bytes swapped.
PKEYS = (0x1, 0x2, 0x3, 0x10, 0x11, 0x20, 0x80, 0x101, 0x210, 0x1234, 0x2001, 0x7F00, 0x7FFE)
DEFAULT = 0x7FFF
NAMES = (b"A", b"B", b"storage", b"Default", b"two words", b"x-y_z.9", b"Gro\xc3\x9f", b"\xa0nbsp", b"0x", b"ALL", b"")
FULL = (b"full", b"full", b"f", b"fu", b"ful", b"")
LIMITED = (b"limited", b"limited", b"l", b"limi")
BOTH = (b"both", b"b", b"bo")
NO_WORD = (b"FULL", b"Full", b"none", b"fullx", b"rw", b"1", b"LIMITED", b"full\xa0", b"\x0cfull")
KEYWORDS = (
    b"ALL", b"ALL", b"A", b"AL", b"ALL_CAS", b"ALL_", b"ALL_C", b"ALL_SWITCHES", b"ALL_S", b"ALL_ROUTERS", b"ALL_R",
    b"SELF", b"SELF", b"S", b"SEL", b"NONE", b"N", b"NO",
)  # fmt: skip
ABSENT = (0xDEADBEEF, 0x0002C9030001, 0x5, 0xFFFFFFFFFFFFFFFF)


class Words:
    """Draws words; every method returns bytes."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def one[Item](self, of: Sequence[Item]) -> Item:
        """One item, each as likely."""
        return self.random.choice(of)

    def chance(self, share: float) -> bool:
        """True in that share of the calls."""
        return self.random.random() < share

    def blank(self) -> bytes:
        """What may stand around any delimiter, mostly nothing or one blank."""
        return self.one((b"", b"", b" ", b" ", b"\t", b"  ", b" \t "))

    def gap(self) -> bytes:
        """What separates members or statements, a line end included."""
        return self.one((b"", b" ", b"\n", b"\n ", b"\n\n\t", b" # no; news: here=this\n ", b"\t"))

    def number(self, value: int, *, bits: int = 64) -> bytes:
        """`value` in a spelling that strtoul reads as `value` modulo the width of the field."""
        spellings = [f"0x{value:x}", f"0x{value:x}", f"0x{value:04x}", f"0X{value:X}", f"{value}", f"0{value:o}"]
        if bits == 64:
            spellings += [f"0x{value:016x}", f"0x{value:020x}", f"-{2**64 - value}"] if value else []
        return self.one(spellings).encode()

    def pkey(self, value: int | None = None) -> bytes:
        """A P_Key's number: with and without bit 15, and with bits above the 16 that OpenSM keeps."""
        value = self.one(PKEYS) if value is None else value
        value |= self.one((0, 0, 0, 0x8000, 0x10000, 0x8000 | 0x120000))
        return self.number(value, bits=16)

    def name(self) -> bytes:
        """A name that has no delimiter in it and does not begin with a digit."""
        return self.one(NAMES[:-3]) if self.chance(0.8) else b"n" + bytes(self.one(b"abcXYZ_. -") for _ in range(33))

    def guid(self) -> bytes:
        """A port that is there, in any base."""
        return self.number(self.one(END_PORTS).number)

    def stranger(self) -> bytes:
        """A number that is no end port of the fabric: absent, or a node GUID."""
        return self.number(self.one((*ABSENT, *(GUID(guid).number for guid in NODE_GUIDS))))

    def membership(self) -> bytes:
        """`=full` and the like, or nothing."""
        word = self.one((None, None, self.one(FULL), self.one(FULL), self.one(LIMITED), self.one(LIMITED)))
        if word is None:
            return b""
        return self.blank() + b"=" + self.blank() + word

    def member(self) -> bytes:
        """A member with its membership."""
        who = self.one(KEYWORDS) if self.chance(0.25) else self.guid()
        return who + self.membership()

    def members(self, least: int = 1, most: int = 5) -> bytes:
        """Some members, separated by commas with blanks or lines around them."""
        some = [self.member() for _ in range(self.random.randint(least, most))]
        return (self.blank() + b"," + self.gap()).join(some)

    def flag(self) -> bytes:
        """A header flag with a value that OpenSM takes."""
        return self.one(
            (
                b"ipoib", b"mtu=4", b"mtu=5", b"rate=3", b"rate=12", b"sl=0", b"scope=2", b"scope = 5",
                b"Q_Key=0x0b1b", b"TClass=1", b"FlowLabel=2", b"defmember=full", b"defmember=limited",
                b"defmember = full", b"defmember=both",
            )
        )  # fmt: skip

    def header(self, *, pkey: bytes | None = None, flags: Sequence[bytes] | None = None) -> bytes:
        """A header with an explicit P_Key, up to and with its colon."""
        flags = [self.flag() for _ in range(self.random.randint(0, 2))] if flags is None else flags
        words = [self.name() + self.blank() + b"=" + self.blank() + (self.pkey() if pkey is None else pkey), *flags]
        return (self.blank() + b"," + self.blank()).join(words) + self.blank() + b":"

    def statement(self, members: bytes | None = None, **header: bytes | Sequence[bytes]) -> bytes:
        """A whole statement; keyword arguments go to `header`."""
        members = self.members() if members is None else members
        return self.header(**header) + self.blank() + members + b";"  # type: ignore[arg-type]

    def default(self) -> bytes:
        """A statement about Default, as sites write it."""
        members = self.one(
            (
                b"ALL=full", b"ALL=limited, SELF=full", b"ALL=limited, ALL_SWITCHES=full, SELF=full", b"SELF=full, ALL",
                b"ALL_CAS, ALL_SWITCHES=full", b"ALL=full, " + self.guid() + b"=limited", self.guid() + b"=full",
            )
        )  # fmt: skip
        return self.statement(members, pkey=self.one((b"0x7fff", b"0xffff", b"32767")))
