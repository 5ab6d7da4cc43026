"""Hypothesis strategies for the values of the pure room."""

from hypothesis import strategies as st

from subnet.guid import GUID
from subnet.partitions_conf import Header
from subnet.pkey import FIRST_USABLE, LAST_USABLE, Membership, PKey
from subnet.table import Flags, Member, Partition, PartitionTable

NAME_START = "ABCXYZabcxyz"
NAME_REST = NAME_START + "0189_.-"

guids = st.integers(1, 2**64 - 2).map(lambda number: GUID(f"0x{number:016x}"))
# Few different GUIDs, so that ports meet in several partitions.
near_guids = st.integers(1, 40).map(lambda number: GUID(f"0x{number:016x}"))
memberships = st.sampled_from(Membership)
pkeys = st.integers(FIRST_USABLE, LAST_USABLE).map(PKey)
names = st.builds(str.__add__, st.sampled_from(NAME_START), st.text(NAME_REST, max_size=30)).filter(
    lambda name: name.lower() != "default"
)
safe = st.text("abcXYZ019._-", min_size=1, max_size=60)


@st.composite
def tables(draw, *, empty_partitions: bool = True) -> PartitionTable:
    """Any table that can be rendered; labels also for ports that are in no partition."""
    found = []
    chosen_names = draw(st.lists(names, max_size=5, unique_by=str.lower))
    chosen_keys = draw(st.lists(pkeys, min_size=len(chosen_names), max_size=len(chosen_names), unique=True))
    for name, pkey in zip(chosen_names, chosen_keys, strict=True):
        ports = draw(st.lists(near_guids | guids, min_size=0 if empty_partitions else 1, max_size=12, unique=True))
        members = tuple(Member(port, draw(memberships)) for port in ports)
        found.append(Partition(pkey, name, draw(st.none() | safe), members, Flags(ipoib=draw(st.booleans()))))
    labels = draw(st.dictionaries(near_guids, st.text(max_size=8), max_size=20))
    managers = draw(st.lists(guids, min_size=1, max_size=3))
    return PartitionTable(sm_ports=tuple(managers), partitions=tuple(found), labels=labels)


headers = st.builds(
    Header,
    subnet=safe,
    revision=st.integers(0, 10**18 - 1),
    parent=st.text("0123456789abcdef", min_size=64, max_size=64),
)
