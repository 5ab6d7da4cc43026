"""PKey (15 bits), Membership, and the 16-bit entry of a P_Key table that holds both.

The membership bit is bit 15: entry 0x8010 is a full member of P_Key 0x0010, entry 0x0010 a limited one (IBA 10.9.1.1).
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import StrEnum

from subnet.errors import InvalidPKey, PoolExhausted

FULL_BIT = 0x8000
DEFAULT_NUMBER = 0x7FFF
FIRST_USABLE = 0x0001
LAST_USABLE = 0x7FFE

_SPELLING = re.compile(r"0[xX][0-9a-fA-F]{1,4}\Z")


class Membership(StrEnum):
    """How a port belongs to a partition; two limited members cannot talk to each other."""

    FULL = "full"
    LIMITED = "limited"


class PKey(int):
    """A partition's 15-bit number, 0x0001–0x7fff; prints as `0x` + 4 lower-case hex digits.

    Raises InvalidPKey for numbers outside that range. 0x7fff is the Default partition.
    """

    __slots__ = ()

    def __new__(cls, number: int) -> "PKey":
        if not FIRST_USABLE <= number <= DEFAULT_NUMBER:
            raise InvalidPKey(f"P_Key {number:#06x} is outside 0x0001–0x7fff. A partition takes one of 0x0001–0x7ffe.")
        return int.__new__(cls, number)

    def __str__(self) -> str:
        return f"0x{int(self):04x}"

    def __repr__(self) -> str:
        return f"PKey({self})"

    def __format__(self, spec: str) -> str:
        return str(self) if not spec else int.__format__(int(self), spec)

    @property
    def is_default(self) -> bool:
        """Whether this is the partition everybody is in."""
        return int(self) == DEFAULT_NUMBER

    @classmethod
    def parse(cls, text: str) -> "PKey":
        """The P_Key that `0x…` spells; bit 15 is membership and is dropped (0x8010 is P_Key 0x0010)."""
        stripped = text.strip()
        if not _SPELLING.match(stripped):
            raise InvalidPKey(f"“{text[:40]}” is not a P_Key. Write 0x and four hex digits, as in 0x2c41.")
        return cls(int(stripped, 16) & ~FULL_BIT)

    @classmethod
    def of_partition(cls, text: str) -> "PKey":
        """The P_Key that a person names for a partition; raise InvalidPKey when it carries the membership bit.

        0x8001 may mean the entry of a full member of 0x0001 or be a slip: a partition is not made on a guess.
        """
        pkey = cls.for_partition(int(cls.parse(text)))
        if int(text.strip(), 16) & FULL_BIT:
            raise InvalidPKey(
                f"{text.strip()} has bit 15 set, which says full member and is no part of a P_Key. "
                f"Write {pkey} if that is the partition you mean."
            )
        return pkey

    @classmethod
    def for_partition(cls, number: int) -> "PKey":
        """A P_Key that a tenant's or provider's partition may have: 0x0001–0x7ffe; raise InvalidPKey otherwise."""
        if not FIRST_USABLE <= number <= LAST_USABLE:
            raise InvalidPKey(f"P_Key {number:#06x} is reserved. A partition takes one of 0x0001–0x7ffe.")
        return cls(number)


DEFAULT = PKey(DEFAULT_NUMBER)


def entry(pkey: PKey, membership: Membership) -> int:
    """The 16-bit table entry of a member of `pkey`."""
    return int(pkey) | (FULL_BIT if membership == Membership.FULL else 0)


def split_entry(number: int) -> tuple[PKey, Membership]:
    """The P_Key and membership that a non-empty table entry holds; raise InvalidPKey for 0x0000 and 0x8000."""
    return PKey(number & ~FULL_BIT), Membership.FULL if number & FULL_BIT else Membership.LIMITED


def entry_text(number: int) -> str:
    """A table entry as it is printed: `0x8010`."""
    return f"0x{number:04x}"


def draw(
    pool: Iterable[int],
    taken: Collection[int],
    cooling: Collection[int],
    choose: Callable[[Sequence[PKey]], PKey],
) -> PKey:
    """A P_Key of `pool` for a new partition that nobody has (`taken`) and nobody had lately (`cooling`).

    `choose` picks one of what is left, at random: a key that can be foretold can be tried by a tenant before it is
    handed out. Raises PoolExhausted, which says how many are only cooling down.
    """
    left = [number for number in pool if FIRST_USABLE <= number <= LAST_USABLE and number not in taken]
    free = [PKey(number) for number in left if number not in cooling]
    if not free:
        waits = f", and {len(left)} that were in use lately are cooling down" if left else ""
        raise PoolExhausted(f"Every P_Key of the pool is in use{waits}. Widen the pool, or retire a partition.")
    return choose(free)
