"""mgid lines: which multicast group a statement asks for, and whether OpenSM makes it (`mgroup_create`)."""

import re
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address

from subnet.opensm_reading.headers import GroupFlags, take_group_flag
from subnet.opensm_reading.tokens import name_and_value

_IP_SIGNATURES = (0x401B, 0x601B)
_SA_SIGNATURE, _LINK_LOCAL = 0xA01B, 2
_EXACTLY = 2 << 6  # the selector that OpenSM adds to mtu and rate
_LONGEST = 45  # ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255
# What most files hold, and ipaddress takes its time over: groups, two colons, groups.
_GROUPS = rb"([0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,6})"
_USUAL = re.compile(_GROUPS + rb"::" + _GROUPS + rb"\Z")
_LINK_LOCALS = tuple(bytes((flags & 0xF0 | _LINK_LOCAL,)) for flags in range(256))  # the scope of most groups
_BROADCAST = bytes.fromhex("ff12401bffff000000000000ffffffff")


@lru_cache(maxsize=4096)
def multicast(spelled: bytes) -> bytes | None:
    """The sixteen bytes of the multicast GID that inet_pton would read, or None."""
    if spelled[:2].lower() != b"ff" or len(spelled) > _LONGEST:
        return None
    usual = _USUAL.match(spelled)
    if usual is not None:
        before, after = usual.groups()
        head, tail = _packed(before), _packed_end(after)
        zeros = 16 - len(head) - len(tail)
        return head + bytes(zeros) + tail if zeros > 0 and head[0] == 0xFF else None
    if b"%" in spelled:  # a scope is no business of inet_pton
        return None
    try:
        packed = IPv6Address(spelled.decode("latin-1")).packed
    except AddressValueError:
        return None
    return packed if packed[0] == 0xFF else None


@lru_cache(maxsize=1024)
def _packed(groups: bytes) -> bytes:
    """Groups of hex digits as bytes. Most GIDs of a file begin alike."""
    return bytes.fromhex("".join([group.zfill(4) for group in groups.decode("ascii").split(":")]))


def _packed_end(groups: bytes) -> bytes:
    """As _packed; one or two groups, which mostly are new, are not kept."""
    many = groups.count(b":")
    if many > 1:
        return _packed(groups)
    high, _, low = groups.partition(b":")
    return (int(high, 16) << 16 | int(low, 16)).to_bytes(4) if many else int(high, 16).to_bytes(2)


class Groups:
    """The multicast groups of one file, and which P_Keys hold each.

    `holders` maps the GID under which OpenSM keeps a group to the P_Keys whose statements made it.
    """

    def __init__(self) -> None:
        self.holders: dict[bytes, frozenset[int]] = {}
        self._last: tuple[GroupFlags, bytes, GroupFlags] | None = None

    def make(self, address: bytes, *, key: int, header: GroupFlags, flags: bytes) -> tuple[bool, int]:
        """Whether OpenSM accepts the group, whose own flags are `flags`; under how many GIDs another P_Key has it."""
        group = self.flags_of(header, flags)
        if not makes_group(address, key=key, header=header, group=group):
            return False, 0
        shared = 0
        # OpenSM looks for an existing group as it is spelled, but keeps it under its scope.
        if address not in self.holders:
            for gid in stored(address, group=group):
                before = self.holders.get(gid)
                if before is None:
                    self.holders[gid] = _one(key)
                elif key not in before:
                    self.holders[gid] = before | {key}
                    shared += 1
        return True, shared

    def flags_of(self, header: GroupFlags, flags: bytes) -> GroupFlags:
        """The header's flags with the line's own over them; lines that follow one another mostly have the same."""
        if not flags:
            return header
        last = self._last
        if last is not None and last[0] is header and last[1] == flags:
            return last[2]
        group = header.ungiven()
        for token in flags.split(b","):
            if token:
                take_group_flag(group, *name_and_value(token))
        self._last = header, flags, group
        return group


def makes_group(address: bytes, *, key: int, header: GroupFlags, group: GroupFlags) -> bool:
    """Whether OpenSM accepts the group.

    An IP group must carry the statement's P_Key or none, and its rate and mtu (`ip_mgroup_pkey_ok` and its kin).
    """
    if int.from_bytes(address[2:4]) not in _IP_SIGNATURES:
        return True
    named = int.from_bytes(address[4:6])
    if address != _BROADCAST and named not in (0, key | 0x8000):
        return False
    return group.rate == header.rate and group.mtu == header.mtu


def stored(address: bytes, *, group: GroupFlags) -> tuple[bytes, ...]:
    """The GIDs under which OpenSM keeps the group: one for each scope, which replaces the spelled one.

    None of an IP group, which carries its statement's P_Key and so is nobody else's, nor of a group that the SA
    refuses (`validate_requested_mgid`, `mgrp_request_is_realizable`).
    """
    signature = int.from_bytes(address[2:4])
    mtu = (group.mtu | _EXACTLY) & 0xFF
    if signature in _IP_SIGNATURES or address[1] & 0xE0 or (mtu >> 6 == 2 and not 1 <= mtu & 0x3F <= 5):
        return ()
    if not group.scopes and signature != _SA_SIGNATURE:
        return (address[:1] + _LINK_LOCALS[address[1]] + address[2:],)
    return tuple(
        address[:1] + bytes((address[1] & 0xF0 | scope,)) + address[2:]
        for scope in _scopes(group.scopes)
        if scope != _LINK_LOCAL or signature != _SA_SIGNATURE
    )


@lru_cache(maxsize=1024)
def _scopes(mask: int) -> tuple[int, ...]:
    return tuple(scope for scope in range(1, 16) if mask >> scope & 1) or (_LINK_LOCAL,)


@lru_cache(maxsize=0x8000)
def _one(key: int) -> frozenset[int]:
    # Most groups have one holder, and a set of its own for each would take most of the memory.
    return frozenset({key})
