"""What the header of a partition may carry beside its P_Key, and the lines that create further multicast groups.

Every value is checked against what OpenSM 3.3.23 takes: it ignores what it does not understand, without a line in
its log at the default level (ground truth: OpenSM, 2.5 and 2.8).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from ipaddress import AddressValueError, IPv6Address
from typing import Any

from subnet.errors import InvalidFlag

# IBTA codes, not numbers of bytes or of Gb/s: 1 to 5 are 256 to 4096 bytes; codes above 22 are newer than 3.3.23.
MTU_BYTES: Mapping[int, int] = {1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}
# What OpenSM takes when the header is silent.
USUAL_MTU, USUAL_RATE = 4, 3

_LONGEST_MGID_LINE = 180  # no line of ours comes near OpenSM's 4094 bytes
_BLANKS = re.compile(r" *([=,]) *")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """A partition's flags; None leaves OpenSM's own value (mtu 4 = 2048 bytes, rate 3 = 10 Gb/s, the rest 0).

    `ipoib` creates the IPv4 broadcast group. `mtu` (1–5) and `rate` (2–22) are IBTA codes; `sl` is 0–15 and counts
    only with QoS on; `scope` holds numbers of 1–15, one broadcast group each. A `q_key` (32 bits) or `tclass`
    (8 bits) of 0 is the same as none: OpenSM would warn of it. `flow_label` has 20 bits. Raises InvalidFlag.
    """

    ipoib: bool = False
    mtu: int | None = None
    rate: int | None = None
    sl: int | None = None
    scope: tuple[int, ...] = ()
    q_key: int | None = None
    tclass: int | None = None
    flow_label: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ipoib", bool(self.ipoib))
        for name, what, allowed in _NUMBERS:
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value not in allowed):
                raise InvalidFlag(f"{name} {value!r:.40} is no {what}: OpenSM would ignore or misread it.")
        scopes = tuple(sorted(set(self.scope)))
        if any(type(scope) is not int or not 1 <= scope <= 15 for scope in scopes):
            raise InvalidFlag(f"scope {scopes!r:.60} is not made of numbers from 1 to 15: OpenSM would ignore it.")
        object.__setattr__(self, "scope", scopes)
        for name in ("q_key", "tclass"):
            if getattr(self, name) == 0:
                object.__setattr__(self, name, None)

    def written(self) -> tuple[str, ...]:
        """Each flag as the header spells it, in fixed order, every name in full: OpenSM matches by prefix."""
        return tuple(self._written())

    def _written(self) -> Iterator[str]:
        if self.ipoib:
            yield "ipoib"
        for name, value in (("mtu", self.mtu), ("rate", self.rate), ("sl", self.sl)):
            if value is not None:
                yield f"{name}={value}"
        for scope in self.scope:
            yield f"scope={scope}"
        if self.q_key is not None:
            yield f"Q_Key=0x{self.q_key:08x}"
        if self.tclass is not None:
            yield f"TClass=0x{self.tclass:02x}"
        if self.flow_label is not None:
            yield f"FlowLabel=0x{self.flow_label:05x}"

    def to_json(self) -> dict[str, Any]:
        """Only what is set, as JSON values; numbers stay numbers."""
        found: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and value != field.default:
                found[field.name] = list(value) if isinstance(value, tuple) else value
        return found

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Flags":
        """The flags that `to_json` wrote; raise InvalidFlag for a name or a value that is none."""
        strange = value.keys() - {field.name for field in fields(cls)}
        if strange:
            raise InvalidFlag(f"“{min(strange)[:40]}” is no flag of a partition.")
        return cls(**{**value, "scope": tuple(value.get("scope", ()))})


_NUMBERS = (
    ("mtu", "MTU code from 1 (256 bytes) to 5 (4096 bytes)", range(1, 6)),
    ("rate", "rate code from 2 (2.5 Gb/s) to 22 (600 Gb/s)", range(2, 23)),
    ("sl", "service level from 0 to 15", range(16)),
    ("q_key", "32-bit Q_Key", range(2**32)),
    ("tclass", "8-bit TClass", range(2**8)),
    ("flow_label", "20-bit FlowLabel", range(2**20)),
)


def mgid_line(text: str) -> str:
    """`text`, without blanks and a trailing comma, if it may stand alone on a line and create a multicast group.

    One line of printable ASCII without `;` and `#` that begins with `mgid=` and a multicast address: OpenSM logs an
    ERROR for any other address. The flags after the address are carried over as they were found. Raises InvalidFlag.
    """
    if not (text.isascii() and text.isprintable()) or ";" in text or "#" in text or len(text) > _LONGEST_MGID_LINE:
        raise InvalidFlag(
            f"“{text[:60]}” cannot be a line of its own: it needs up to {_LONGEST_MGID_LINE} printable ASCII "
            "characters without “;” and “#”."
        )
    line = _BLANKS.sub(r"\1", text).strip(" ,")
    word, _, address = line.partition(",")[0].partition("=")
    try:
        is_group = word == "mgid" and "%" not in address and IPv6Address(address).packed[0] == 0xFF
    except AddressValueError:
        is_group = False
    if not is_group:
        raise InvalidFlag(f"“{text[:60]}” creates no multicast group. Write mgid=ff… and then flags, as in “,sl=1”.")
    return line
