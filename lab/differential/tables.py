"""Random partition tables over the differential's fabric, as FabricUI itself writes them."""

from random import Random

from lab.differential.fabric import HCA_PORTS, SM_PORT
from subnet.default import STANDARD, DefaultPartition
from subnet.flags import Flags
from subnet.guid import GUID
from subnet.member import Keyword, KeywordMember, Member
from subnet.partitions_conf import Header, render
from subnet.pkey import Membership, PKey
from subnet.table import Partition, PartitionTable

_SM_PORTS = (SM_PORT, HCA_PORTS[-1])
_OTHERS = tuple(guid for guid in HCA_PORTS if guid not in _SM_PORTS)


def rendered(random: Random) -> bytes:
    """The canonical bytes of a random table: half of them as plain as a fresh site's."""
    is_plain = random.random() < 0.5
    pkeys = random.sample(range(1, 0x7FFF), random.randint(0, 5))
    partitions = [_partition(random, number, pkey, is_plain=is_plain) for number, pkey in enumerate(pkeys)]
    labels = {guid: f"host-{place}" for place, guid in enumerate(HCA_PORTS) if random.random() < 0.7}
    table = PartitionTable(
        sm_ports=_SM_PORTS,
        partitions=tuple(partitions),
        labels=labels,
        default=STANDARD if is_plain else _default(random),
    )
    return render(table, Header(subnet="differential", revision=random.randint(0, 99)))


def _partition(random: Random, number: int, pkey: int, *, is_plain: bool) -> Partition:
    return Partition(
        pkey=PKey.for_partition(pkey),
        name=f"group-{number}",
        tenant=random.choice((None, "acme", "globex")),
        members=_members(random, HCA_PORTS, len(HCA_PORTS)),
        flags=Flags(ipoib=random.random() < 0.5) if is_plain else _flags(random),
        keywords=() if is_plain else _keywords(random),
        mgids=() if is_plain else _mgids(random),
    )


def _default(random: Random) -> DefaultPartition:
    return DefaultPartition(
        keywords=random.choice((STANDARD.keywords, _keywords(random))),
        members=_members(random, _OTHERS, 3),
        flags=_flags(random),
        mgids=_mgids(random),
    )


def _members(random: Random, ports: tuple[GUID, ...], most: int) -> tuple[Member, ...]:
    return tuple(Member(guid, _membership(random)) for guid in random.sample(ports, random.randint(0, most)))


def _membership(random: Random) -> Membership:
    return random.choice(tuple(Membership))


def _keywords(random: Random) -> tuple[KeywordMember, ...]:
    keywords = random.sample(tuple(Keyword), random.randint(0, 3))
    return tuple(KeywordMember(keyword, _membership(random)) for keyword in keywords)


def _flags(random: Random) -> Flags:
    return Flags(
        ipoib=random.random() < 0.5,
        mtu=random.choice((None, 4, 5)),
        rate=random.choice((None, 3, 12, 16)),
        sl=random.choice((None, 0, 3)),
        scope=tuple(random.sample((2, 5, 14), random.randint(0, 2))),
        q_key=random.choice((None, 0x80010000)),
        tclass=random.choice((None, 0x60)),
        flow_label=random.choice((None, 0x12345)),
    )


def _mgids(random: Random) -> tuple[str, ...]:
    lines = ("mgid=ff12::1", "mgid=ff12::2,sl=1", "mgid=ff12:401b::5,rate=3,mtu=4", "mgid=ff12:601b::1:2")
    return tuple(random.sample(lines, random.randint(0, 2)))
