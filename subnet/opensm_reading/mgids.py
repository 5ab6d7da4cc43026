"""mgid lines: which multicast group a statement asks for, and whether OpenSM makes it (`mgroup_create`)."""

from dataclasses import replace
from ipaddress import AddressValueError, IPv6Address

from subnet.opensm_reading.headers import GroupFlags, take_group_flag
from subnet.opensm_reading.tokens import name_and_value

_IP_SIGNATURES = (0x401B, 0x601B)


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
