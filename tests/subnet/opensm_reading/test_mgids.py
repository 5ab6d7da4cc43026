"""Multicast GIDs as inet_pton reads them: the quick way for usual spellings agrees with the slow one for all."""

from ipaddress import AddressValueError, IPv6Address

from hypothesis import example, given, settings
from hypothesis import strategies as st

from subnet.opensm_reading.mgids import multicast

GROUPS = st.sampled_from(["0", "1", "ff12", "ff02", "FF12", "ff", "ff1", "0ff12", "abcd", "12345", "1.2.3.4", "", "g"])
SPELLED = st.builds(
    lambda first, groups, joints: first + "".join(joint + group for joint, group in zip(joints, groups, strict=False)),
    st.sampled_from(["ff12", "FF02", "ff", "ff1", "fe80", ""]),
    st.lists(GROUPS, max_size=9),
    st.lists(st.sampled_from([":", ":", ":", "::", ""]), min_size=9, max_size=9),
)


@example("ff1::1")
@example("ff12:1:2:3:4:5:6::7")
@example("ff12:1:2:3:4:5::6:7")
@settings(max_examples=500)
@given(spelled=SPELLED)
def test_every_spelling_is_read_as_by_inet_pton(spelled):
    try:
        packed = IPv6Address(spelled).packed
    except AddressValueError:
        packed = b""
    assert multicast(spelled.encode()) == (packed if packed[:1] == b"\xff" else None)
