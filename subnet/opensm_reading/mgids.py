"""mgid lines: which multicast group a statement asks for, and whether OpenSM makes it (`mgroup_create`)."""

from dataclasses import replace
from ipaddress import AddressValueError, IPv6Address

from subnet.opensm_reading.headers import GroupFlags, take_group_flag
from subnet.opensm_reading.tokens import name_and_value

_IP_SIGNATURES = (0x401B, 0x601B)
_SA_SIGNATURE, _LINK_LOCAL = 0xA01B, 2
_EXACTLY = 2 << 6  # the selector that OpenSM adds to mtu and rate


def multicast(spelled: bytes) -> IPv6Address | None:
    """The multicast GID that inet_pton would read, or None."""
    if b"%" in spelled:  # a scope is no business of inet_pton
        return None
    try:
        address = IPv6Address(spelled.decode("latin-1"))
    except AddressValueError:
        return None
    return address if address.packed[0] == 0xFF else None


def makes_group(address: IPv6Address, *, key: int, header: GroupFlags, flags: bytes) -> bool:
    """Whether OpenSM accepts the group, whose own flags are `flags`.

    An IP group must carry the statement's P_Key or none, and its rate and mtu (`ip_mgroup_pkey_ok` and its kin).
    """
    group = replace(header, given=set())
    for token in flags.split(b","):
        take_group_flag(group, *name_and_value(token))
    packed = address.packed
    if int.from_bytes(packed[2:4]) not in _IP_SIGNATURES:
        return True
    named = int.from_bytes(packed[4:6])
    is_broadcast = packed == bytes.fromhex("ff12401bffff000000000000ffffffff")
    if not is_broadcast and named not in (0, key | 0x8000):
        return False
    return group.rate == header.rate and group.mtu == header.mtu


def stored(address: IPv6Address, *, header: GroupFlags, flags: bytes) -> tuple[bytes, ...]:
    """The GIDs under which OpenSM keeps the group: one for each scope, which replaces the spelled one.

    None of an IP group, which carries its statement's P_Key and so is nobody else's, nor of a group that the SA
    refuses (`validate_requested_mgid`, `mgrp_request_is_realizable`).
    """
    group = replace(header, given=set())
    for token in flags.split(b","):
        take_group_flag(group, *name_and_value(token))
    packed = address.packed
    signature = int.from_bytes(packed[2:4])
    mtu = (group.mtu | _EXACTLY) & 0xFF
    if signature in _IP_SIGNATURES or packed[1] & 0xE0 or (mtu >> 6 == 2 and not 1 <= mtu & 0x3F <= 5):
        return ()
    scopes = [scope for scope in range(1, 16) if group.scopes >> scope & 1] or [_LINK_LOCAL]
    return tuple(
        packed[:1] + bytes((packed[1] & 0xF0 | scope,)) + packed[2:]
        for scope in scopes
        if (signature, scope) != (_SA_SIGNATURE, _LINK_LOCAL)
    )
