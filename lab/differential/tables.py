"""Random partition tables over the differential's fabric, as FabricUI itself writes them."""

from random import Random

from lab.differential.fabric import HCA_PORTS, SM_PORT
from subnet.partitions_conf import Header, render
from subnet.pkey import Membership, PKey
from subnet.table import Member, Partition, PartitionTable


def rendered(random: Random) -> bytes:
    """The canonical bytes of a random table."""
    pkeys = random.sample(range(1, 0x7FFF), random.randint(0, 5))
    partitions = [_partition(random, number, pkey) for number, pkey in enumerate(pkeys)]
    labels = {guid: f"host-{place}" for place, guid in enumerate(HCA_PORTS) if random.random() < 0.7}
    table = PartitionTable(sm_ports=(SM_PORT, HCA_PORTS[-1]), partitions=tuple(partitions), labels=labels)
    return render(table, Header(subnet="differential", revision=random.randint(0, 99)))


def _partition(random: Random, number: int, pkey: int) -> Partition:
    ports = random.sample(HCA_PORTS, random.randint(0, len(HCA_PORTS)))
    return Partition(
        pkey=PKey.for_partition(pkey),
        name=f"group-{number}",
        tenant=random.choice((None, "acme", "globex")),
        members=tuple(Member(guid, random.choice(tuple(Membership))) for guid in ports),
    )
