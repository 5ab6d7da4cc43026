"""Spellings of a GUID."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subnet.errors import InvalidGUID
from subnet.guid import GUID
from tests.subnet.fabrics import DATA
from tests.subnet.strategies import guids

SPELLINGS = [
    line.split("\t")
    for line in (DATA / "guid-spellings.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize(("spelling", "canonical"), SPELLINGS, ids=[repr(s) for s, _ in SPELLINGS])
def test_spellings_from_the_field(spelling, canonical):
    if canonical.startswith("ERR"):
        with pytest.raises(InvalidGUID):
            GUID(spelling)
    else:
        assert GUID(spelling) == canonical.split()[0]


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "0x", "x", "SELF", "ALL", "0x12g4", "0002c903000a0001f", "-1", "0x-1", "2001:db8::1", "::1",
        "fe80::1%eth0", "0002:c903:000a", "0x0002c903000a0001;", "0x0002c903000a0001=full", "０x0002c903000a0001",
    ],
)  # fmt: skip
def test_what_is_no_guid_is_refused_with_the_text(text):
    with pytest.raises(InvalidGUID, match="GUID"):
        GUID(text)


@pytest.mark.parametrize("text", ["0x0", "0000000000000000", "fe80::", "0xffffffffffffffff"])
def test_no_port_has_zero_or_all_ones(text):
    with pytest.raises(InvalidGUID, match="unknown"):
        GUID(text)


def test_a_guid_keeps_all_its_digits():
    guid = GUID("0xF123456789ABCDEF")
    assert guid == "0xf123456789abcdef"
    assert guid.number == 0xF123456789ABCDEF
    assert repr(guid) == "GUID('0xf123456789abcdef')"


def in_groups(digits: str, size: int, separator: str) -> str:
    return separator.join(digits[at : at + size] for at in range(0, len(digits), size))


@given(guids, st.booleans())
def test_any_spelling_comes_back_as_one(guid, upper):
    digits = guid[2:]
    spellings = [
        guid, digits, f"0x{guid.number:x}", f"0X{digits}", f"  {guid}\n", in_groups(digits, 2, ":"),
        in_groups(digits, 2, "-"), in_groups(digits, 4, ":"),
        "fe80:0000:0000:0000:" + in_groups(digits, 4, ":"),
    ]  # fmt: skip
    for spelling in spellings:
        assert GUID(spelling.upper() if upper else spelling) == guid
