"""One token of a header or a member list: `name`, or `name = value`, and what a member token means.

`parse_name_token` and `partition_add_port` of osm_prtn_config.c. Blank, tab and LF are the only white space.
"""

import re
from typing import NamedTuple

from subnet.opensm_reading.cnumbers import C_SPACES, strtoul

BLANKS = b" \t\n"
LIMITED, FULL, BOTH, AS_DEFMEMBER = range(4)
MEMBERSHIPS = ("limited", "full", "both")
# The codes of who a member is; PORT carries a number, NOBODY is an empty token, BAD is what OpenSM rejects.
PORT, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, SELF, NONE, NOBODY, BAD = range(9)
KINDS = ("guid", "ALL", "ALL_CAS", "ALL_SWITCHES", "ALL_ROUTERS", "SELF", "NONE")

# The order of the questions is OpenSM's: the first keyword that begins with the token's name wins.
_KEYWORDS = (
    (b"NONE", NONE),
    (b"ALL", ALL),
    (b"ALL_CAS", ALL_CAS),
    (b"ALL_SWITCHES", ALL_SWITCHES),
    (b"ALL_ROUTERS", ALL_ROUTERS),
    (b"SELF", SELF),
)
_USUAL = re.compile(rb"[ \t\n]*0[xX]([0-9a-fA-F]{1,16})[ \t\n]*(?:=[ \t\n]*(full|limited)[ \t\n]*)?\Z")


class Member(NamedTuple):
    """What a member token means: who, which number, how, and the names of the rules it offends."""

    kind: int
    guid: int
    membership: int
    oddities: tuple[str, ...]


def name_and_value(token: bytes) -> tuple[bytes, bytes | None]:
    """The token's name and what follows its first `=`, both without blanks around; no value without `=`."""
    name, equals, value = token.strip(BLANKS).partition(b"=")
    return name.rstrip(BLANKS), value.lstrip(BLANKS) if equals else None


def understand(token: bytes) -> Member:
    """What OpenSM takes a token of a member list for (`partition_add_port`)."""
    usual = _USUAL.match(token)
    if usual is not None:
        guid = int(usual[1], 16)
        membership = AS_DEFMEMBER if usual[2] is None else FULL if usual[2] == b"full" else LIMITED
        return Member(PORT if guid else BAD, guid, membership, ())
    name, value = name_and_value(token)
    if not name:
        return Member(NOBODY, 0, AS_DEFMEMBER, () if value is None else ("value-without-member",))
    oddities: list[str] = []
    membership = _membership(value, oddities)
    for keyword, kind in _KEYWORDS if name[:1] in b"NAS" else ():
        if keyword.startswith(name):
            if name != keyword:
                oddities.append("keyword-prefix")
            return Member(kind, 0, membership, tuple(oddities))
    guid, end = strtoul(name)
    if not guid or end != len(name):
        return Member(BAD, 0, membership, tuple(oddities))
    if name[:1] in b"\v\f\r":
        oddities.append("control-byte")
    digits = name.strip(C_SPACES)
    if digits[:1] in (b"-", b"+") or guid == 0xFFFFFFFFFFFFFFFF:
        oddities.append("guid-out-of-range")
    elif digits[:2] not in (b"0x", b"0X"):
        oddities.append("guid-not-hex")
    return Member(PORT, guid, membership, tuple(oddities))


def _membership(value: bytes | None, oddities: list[str]) -> int:
    """The membership a member's value says; prefixes count, and the empty one is one of `full`."""
    if value is None:
        return AS_DEFMEMBER
    for word, membership in ((b"full", FULL), (b"both", BOTH), (b"limited", LIMITED)):
        if word.startswith(value):
            if not value:
                oddities.append("membership-empty")
            elif value != word:
                oddities.append("membership-prefix")
            if membership == BOTH:
                oddities.append("membership-both")
            return membership
    oddities.append("membership-unknown")
    return LIMITED
