"""GUID: any spelling in, one spelling out (`0x` and 16 lower-case hex digits).

A GUID is text everywhere outside arithmetic: values above 2**63 exist, and a JSON number loses digits above 2**53.
"""

import re
from ipaddress import AddressValueError, IPv6Address, ip_network

from subnet.errors import InvalidGUID

_CANONICAL = re.compile(r"0x[0-9a-f]{16}\Z")
_HEX_DIGITS = re.compile(r"[0-9a-fA-F]{1,16}\Z")
_SIXTEEN = re.compile(r"[0-9a-fA-F]{16}\Z")
_COLON_BYTES = re.compile(r"[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){7}\Z")
_COLON_WORDS = re.compile(r"[0-9a-fA-F]{4}(:[0-9a-fA-F]{4}){3}\Z")
_IPOIB_ADDRESS = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){19}\Z")
# GIDs of an InfiniBand port: link-local (the default subnet prefix) and site-local ones.
_GID_PREFIXES = (ip_network("fe80::/10"), ip_network("fec0::/10"))


class GUID(str):
    """A 64-bit port, node or system image GUID, printed as `0x` + 16 lower-case hex digits.

    Accepts `0x…` with up to 16 digits, 16 bare digits, `0002:c903:000a:0001` and `00:02:c9:03:00:0a:00:01`
    (the spellings of sysfs, ibstat and the vendors' tools), a port's GID `fe80::2:c903:a:1` and its 20-byte IPoIB
    address, whose last 8 bytes are the GUID. A shorter bare number is refused: OpenSM would read it as decimal, or as
    octal after a leading 0 (`osm_prtn_config.c`, strtoull base 0).

    Raises InvalidGUID for anything else, and for zero and all-ones, which no port has.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> "GUID":
        if type(text) is GUID:
            return text  # checked when it was made
        canonical = text if _CANONICAL.match(text) else f"0x{_digits(text):0>16}"
        if canonical in _NOBODYS:
            raise InvalidGUID(f"“{text}” is no port's GUID: zero and all ones mean “unknown”.")
        return str.__new__(cls, canonical)

    def __repr__(self) -> str:
        return f"GUID({str(self)!r})"

    @property
    def number(self) -> int:
        """The GUID as an unsigned 64-bit number."""
        return int(self[2:], 16)


_NOBODYS = {"0x" + "0" * 16, "0x" + "f" * 16}


def _digits(text: str) -> str:
    """The up to 16 hex digits that `text` spells; raise InvalidGUID when it spells none."""
    stripped = text.strip()
    if stripped[:2] in ("0x", "0X") and _HEX_DIGITS.match(stripped[2:]):
        return stripped[2:].lower()
    if _SIXTEEN.match(stripped):
        return stripped.lower()
    if _COLON_BYTES.match(stripped) or _COLON_WORDS.match(stripped):
        return re.sub("[:-]", "", stripped).lower()
    if _IPOIB_ADDRESS.match(stripped):
        return _digits_of_gid(IPv6Address(bytes.fromhex(stripped.replace(":", ""))[4:]), text)
    if ":" in stripped and "%" not in stripped:
        try:
            return _digits_of_gid(IPv6Address(stripped), text)
        except AddressValueError:
            pass
    raise _not_a_guid(text)


def _digits_of_gid(gid: IPv6Address, text: str) -> str:
    """The GUID in the lower half of a port's GID; other IPv6 addresses name no port."""
    if not any(gid in prefix for prefix in _GID_PREFIXES):
        raise _not_a_guid(text)
    return f"{int(gid) & 0xFFFFFFFFFFFFFFFF:016x}"


def _not_a_guid(text: str) -> InvalidGUID:
    return InvalidGUID(f"“{text[:80]}” is not a GUID. Write 0x and up to 16 hex digits, as in 0x0002c903000a0001.")
