"""A statement's header: name, P_Key and flags, as `parse_part_conf` and `partition_create` take them."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from subnet.opensm_reading.cnumbers import C_SPACES, strtoul
from subnet.opensm_reading.tokens import BOTH, FULL, LIMITED, MEMBERSHIPS, name_and_value
from subnet.opensm_reading.values import Flags

_SAFE_NAME = re.compile(rb"[A-Za-z0-9_.-]{1,31}\Z")
OPENSM_MTU, OPENSM_RATE = 4, 3


class Oddity(NamedTuple):
    """A rule that a header offends: at which byte of the header, and the text in question."""

    rule: str
    offset: int
    text: bytes


@dataclass(slots=True)
class GroupFlags:
    """The flags a multicast group takes, before and after an mgid line's own (`struct group_flags`)."""

    mtu: int = OPENSM_MTU
    rate: int = OPENSM_RATE
    sl: int = 0
    scopes: int = 0
    q_key: int = 0
    tclass: int = 0
    flow_label: int = 0
    given: set[str] = field(default_factory=set)

    def ungiven(self) -> "GroupFlags":
        """A copy for an mgid line, which has given none of them itself."""
        return GroupFlags(self.mtu, self.rate, self.sl, self.scopes, self.q_key, self.tclass, self.flow_label)


class Header(NamedTuple):
    """One header as OpenSM understands it.

    `number` is the P_Key as it comes out of strtoul and 16 bits, bit 15 still in it; None without one. `is_bad` says
    that OpenSM rejects the file over it.
    """

    name: bytes | None
    number: int | None
    is_bad: bool
    flags: Flags
    group: GroupFlags
    defmember: int
    indx0: bool
    oddities: tuple[Oddity, ...]
    is_plain: bool  # a safe name, a P_Key without bit 15, no sl, nothing odd: mostly nothing is to be said of it


# What most headers are: a safe name, a P_Key in hex, no flag.
_USUAL = re.compile(rb"[ \t]*([A-Za-z0-9_.-]{1,31})[ \t]*=[ \t]*0[xX]([0-9a-fA-F]{1,4})[ \t]*\Z")
_NO_FLAGS, _NO_GROUP_FLAGS = Flags(), GroupFlags()


def parse_header(text: bytes) -> Header:
    """The header that `text`, all before the `:`, spells; it holds no `:`, `;`, `#` or NUL."""
    usual = _USUAL.match(text)
    if usual is not None and 0 < (pkey := int(usual[2], 16)) < 0x8000:
        return Header(usual[1], pkey, False, _NO_FLAGS, _NO_GROUP_FLAGS, LIMITED, False, (), is_plain=True)
    tokens = text.split(b",")
    name, identifier = name_and_value(tokens[0])
    oddities: list[Oddity] = []
    group = GroupFlags()
    ipoib = indx0 = False
    defmember = LIMITED
    offset = len(tokens[0]) + 1
    for token in tokens[1:]:
        flag, value = name_and_value(token)
        at = offset + len(token) - len(token.lstrip(b" \t\n"))
        offset += len(token) + 1
        shown = token.strip(b" \t\n")
        rule = take_group_flag(group, flag, value)
        if rule is not None:
            if rule and shown:
                oddities.append(Oddity(rule, at, shown))
        elif b"ipoib".startswith(flag):
            ipoib = True
            if flag != b"ipoib":
                oddities.append(Oddity("flag-prefix", at, shown))
        elif b"defmember".startswith(flag):
            word = _defmember(value)
            if word is None:
                oddities.append(Oddity("flag-value", at, shown))
            else:
                defmember = word
                if flag != b"defmember" or value != MEMBERSHIPS[word].encode():
                    oddities.append(Oddity("flag-prefix", at, shown))
                if word == BOTH:
                    oddities.append(Oddity("membership-both", at, shown))
        elif flag == b"indx0":
            indx0 = True
            oddities.append(Oddity("indx0", at, shown))
        else:
            oddities.append(Oddity("flag-unknown", at, shown))
    kept, number, is_bad = _identify(name, identifier, oddities)
    flags = Flags(
        ipoib=ipoib,
        mtu=group.mtu if "mtu" in group.given else None,
        rate=group.rate if "rate" in group.given else None,
        sl=group.sl if "sl" in group.given else None,
        scope=tuple(scope for scope in range(16) if group.scopes >> scope & 1),
        q_key=group.q_key if "Q_Key" in group.given else None,
        tclass=group.tclass if "TClass" in group.given else None,
        flow_label=group.flow_label if "FlowLabel" in group.given else None,
        indx0=indx0,
        defmember=MEMBERSHIPS[defmember],  # type: ignore[arg-type]  # the tuple holds the three words
    )
    is_plain = (
        not (is_bad or oddities or group.sl)
        and number is not None
        and 0 < number < 0x8000
        and b"\r" not in text
        and _SAFE_NAME.match(kept or b"") is not None
    )
    return Header(kept, number, is_bad, flags, group, defmember, indx0, tuple(oddities), is_plain)


def _identify(name: bytes, identifier: bytes | None, oddities: list[Oddity]) -> tuple[bytes | None, int | None, bool]:
    """The name that is kept, the P_Key's 16 bits and whether the header is bad (`partition_create`).

    A name that begins with a digit and has no `=` is itself the P_Key.
    """
    spelled, kept = identifier, name if name else b""
    if identifier is None and name[:1].isdigit():
        spelled, kept = name, b""
    if spelled is None:
        return kept, None, False
    number, end = strtoul(spelled)
    if not spelled or end != len(spelled) or end == 0:
        return kept, None, True
    digits = spelled.lstrip(C_SPACES)
    if digits != spelled:
        oddities.append(Oddity("control-byte", 0, spelled))
    if number > 0xFFFF or digits[:1] in (b"-", b"+"):
        oddities.append(Oddity("pkey-truncated", 0, spelled))
    elif digits[:2] not in (b"0x", b"0X") and digits[:1] == b"0" and len(digits) > 1:
        oddities.append(Oddity("pkey-octal", 0, spelled))
    # osm_prtn_make_new gets no name in the nameless form, which differs from the empty one only in the look-up.
    return (None if identifier is None else kept), number & 0xFFFF, False


def take_group_flag(group: GroupFlags, flag: bytes, value: bytes | None) -> str | None:
    """Let `group` take a flag as `parse_group_flag` does; None when it is no flag of a group.

    Otherwise the name of the rule it offends, or "". An empty flag is a prefix of the first one, mtu.
    """
    number, end = strtoul(value) if value else (0, 0)
    for name, width in (("mtu", 32), ("rate", 32), ("scope", 32), ("Q_Key", 32), ("TClass", 8)):
        if name.encode().startswith(flag):
            rule = "" if flag == name.encode() else "flag-prefix"
            if value is None:
                return "flag-value" if flag else ""
            number &= (1 << width) - 1
            if name == "scope":
                if not 0 < number <= 15:
                    return "flag-value"
                group.scopes |= 1 << number
            else:
                setattr(group, {"Q_Key": "q_key", "TClass": "tclass"}.get(name, name), number)
                group.given.add(name)
                if not number and name in ("mtu", "rate"):
                    return "flag-value"
            return rule if value and end == len(value) else "flag-value"
    for name, most in (("sl", 15), ("FlowLabel", 0xFFFFF)):
        if name.encode().startswith(flag):
            number &= 0xFFFFFFFF
            if not value or number > most or (end < len(value) and value[end : end + 1] not in C_SPACES):
                return "flag-value"
            setattr(group, "sl" if name == "sl" else "flow_label", number)
            group.given.add(name)
            return "" if flag == name.encode() else "flag-prefix"
    return None


def _defmember(value: bytes | None) -> int | None:
    """The membership that `defmember=` sets; the empty value is taken for full, an unknown one for nothing."""
    if value is None:
        return None
    for word, membership in ((b"full", FULL), (b"both", BOTH), (b"limited", LIMITED)):
        if word.startswith(value):
            return membership
    return None
