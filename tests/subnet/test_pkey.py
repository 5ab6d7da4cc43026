"""P_Keys, memberships and table entries."""

import pytest
from hypothesis import given

from subnet.errors import InvalidPKey, PoolExhausted
from subnet.pkey import DEFAULT, Membership, PKey, draw, entry, entry_text, split_entry
from tests.subnet.strategies import memberships, pkeys


@pytest.mark.parametrize("number", [0, -1, 0x8000, 0xFFFF, 0x10000])
def test_numbers_that_are_no_pkey(number):
    with pytest.raises(InvalidPKey):
        PKey(number)


@pytest.mark.parametrize("number", [0, 0x7FFF, 0x8001, -5])
def test_numbers_that_no_partition_may_have(number):
    with pytest.raises(InvalidPKey, match="0x0001–0x7ffe"):
        PKey.for_partition(number)


@pytest.mark.parametrize(
    ("text", "number"), [("0x10", 0x10), ("0x8010", 0x10), ("0X2C41", 0x2C41), (" 0xffff ", 0x7FFF)]
)
def test_parse_drops_the_membership_bit(text, number):
    assert PKey.parse(text) == number


@pytest.mark.parametrize("text", ["", "16", "010", "0x", "0x12x", "0x18001", "0x0000", "0x8000", "abc", "0x0x1"])
def test_parse_refuses_what_opensm_would_read_as_something_else(text):
    with pytest.raises(InvalidPKey):
        PKey.parse(text)


def test_it_prints_with_four_digits():
    assert f"{PKey(0x44)} {PKey(0x44)!r} {PKey(0x44):d}" == "0x0044 PKey(0x0044) 68"
    assert DEFAULT.is_default
    assert not PKey(1).is_default


@given(pkeys, memberships)
def test_an_entry_splits_into_what_it_was_made_of(pkey, membership):
    number = entry(pkey, membership)
    assert split_entry(number) == (pkey, membership)
    assert bool(number & 0x8000) == (membership is Membership.FULL)
    assert entry_text(number) == f"0x{number:04x}"


def test_a_membership_from_a_row_is_not_taken_for_limited():
    assert entry(PKey(0x10), "full") == 0x8010


@pytest.mark.parametrize("number", [0x0000, 0x8000])
def test_an_empty_slot_is_no_entry(number):
    with pytest.raises(InvalidPKey):
        split_entry(number)


def test_a_drawn_pkey_is_free_and_cool():
    offered = []

    def last(free):
        offered.append(list(free))
        return free[-1]

    assert draw(range(0x0000, 0x10000), (), (), last) == PKey(0x7FFE)
    assert (len(offered[0]), offered[0][0]) == (0x7FFE, PKey(1))
    drawn = draw(range(0x10, 0x16), taken={0x10, PKey(0x15)}, cooling={0x14}, choose=last)
    assert drawn == PKey(0x13)
    assert type(drawn) is PKey
    assert offered[1] == [0x11, 0x12, 0x13]


def test_an_exhausted_pool_says_what_is_cooling_down():
    with pytest.raises(PoolExhausted, match=r"in use, and 2 that were in use lately are cooling down\. Widen"):
        draw([1, 2, 3], taken=[2], cooling=[1, 3], choose=min)
    with pytest.raises(PoolExhausted, match=r"is in use\. Widen"):
        draw([1, 0x7FFF, 0], taken=[1], cooling=[], choose=min)
