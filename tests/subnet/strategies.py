"""Hypothesis strategies for the values of the pure room."""

from hypothesis import strategies as st

from subnet.default import STANDARD
from subnet.guid import GUID
from subnet.partitions_conf import Header, Layout
from subnet.pkey import FIRST_USABLE, LAST_USABLE, Membership, PKey
from subnet.table import DefaultPartition, Flags, Keyword, KeywordMember, Member, Partition, PartitionTable

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


keyword_members = st.dictionaries(st.sampled_from(Keyword), memberships, max_size=3).map(
    lambda found: tuple(KeywordMember(keyword, membership) for keyword, membership in found.items())
)
flags = st.builds(
    Flags,
    ipoib=st.booleans(),
    mtu=st.none() | st.integers(1, 5),
    rate=st.none() | st.integers(2, 22),
    sl=st.none() | st.integers(0, 15),
    scope=st.lists(st.integers(1, 15), max_size=3).map(tuple),
    q_key=st.none() | st.integers(0, 2**32 - 1),
    tclass=st.none() | st.integers(0, 255),
    flow_label=st.none() | st.integers(0, 2**20 - 1),
)
# Half of all tables are as plain as today's.
some_flags = st.booleans().map(lambda on: Flags(ipoib=on)) | flags
mgids = st.lists(
    st.builds("mgid=ff12::{:x}{}".format, st.integers(1, 99), st.sampled_from(["", ",sl=1", ", rate = 3 ,mtu=4,"])),
    max_size=2,
    unique_by=lambda line: line.split(",")[0],
).map(tuple)


@st.composite
def defaults(draw, sm_ports) -> DefaultPartition:
    """Any Default beside these SM ports."""
    ports = draw(
        st.lists(near_guids | guids, max_size=3, unique=True).filter(lambda them: not set(them) & set(sm_ports))
    )
    return DefaultPartition(
        keywords=draw(keyword_members | st.just(STANDARD.keywords)),
        members=tuple(Member(port, draw(memberships)) for port in ports),
        flags=draw(some_flags),
        mgids=draw(mgids),
    )


@st.composite
def tables(draw, *, empty_partitions: bool = True) -> PartitionTable:
    """Any table that can be rendered; labels also for ports that are in no partition."""
    found = []
    chosen_names = draw(st.lists(names, max_size=5, unique_by=str.lower))
    chosen_keys = draw(st.lists(pkeys, min_size=len(chosen_names), max_size=len(chosen_names), unique=True))
    for name, pkey in zip(chosen_names, chosen_keys, strict=True):
        ports = draw(st.lists(near_guids | guids, min_size=0 if empty_partitions else 1, max_size=12, unique=True))
        members = tuple(Member(port, draw(memberships)) for port in ports)
        keywords = draw(st.just(()) | keyword_members) if empty_partitions or members else ()
        found.append(Partition(pkey, name, draw(st.none() | safe), members, draw(some_flags), keywords, draw(mgids)))
    labels = draw(st.dictionaries(near_guids, st.text(max_size=8), max_size=20))
    managers = draw(st.lists(guids, min_size=1, max_size=3))
    default = draw(st.just(STANDARD) | defaults(managers))
    return PartitionTable(sm_ports=tuple(managers), partitions=tuple(found), labels=labels, default=default)


headers = st.builds(
    Header,
    subnet=safe,
    revision=st.integers(0, 10**18 - 1),
    parent=st.text("0123456789abcdef", min_size=64, max_size=64),
    layout=st.sampled_from(Layout),
)
