"""The tables behind the golden files of tests/data/golden; the contract tests run the same files through OpenSM."""

from subnet.partitions_conf import NO_PARENT, Header, Layout
from subnet.pkey import PKey
from subnet.table import DefaultPartition, Flags, Keyword, KeywordMember, Member, Partition, PartitionTable
from tests.subnet.fabrics import FULL, INFERENCE, LIMITED, SM1, SM2, STORAGE, TRAINING, guid, partition, table

PARENT = "4f1c2e9a0b7d8c6f5e4d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a0f9e8d"


def one_tenant() -> PartitionTable:
    """The sample of the design."""
    return table(
        partition(TRAINING, "training", "acme", guid(0x0001), guid(0x0011)),
        labels={guid(0x0001): "srv-001", guid(0x0011): "srv-001"},
    )


def provider_and_tenants() -> PartitionTable:
    """A shared storage partition with IPoIB, two tenants, a port without a server, labels that must be made safe."""
    storage = Partition(
        STORAGE,
        "storage",
        None,
        (Member(guid(0x51), FULL), Member(guid(1), LIMITED), Member(guid(2), LIMITED), Member(guid(0x21), LIMITED)),
        flags=Flags(ipoib=True),
    )
    return table(
        storage,
        partition(TRAINING, "training", "acme", guid(1), guid(2)),
        partition(INFERENCE, "inference", "umbrella", guid(0x21), guid(0x22)),
        Partition(PKey(0x7FFE), "empty", "acme", (), Flags(ipoib=True)),
        labels={guid(1): "srv-001", guid(2): "srv-001", guid(0x21): "rack 12; node=3,a#4", guid(0x51): "nas"},
    )


def long_list() -> PartitionTable:
    """300 servers with 2 ports in one partition, three manager hosts, a name of 31 letters."""
    ports = [guid(number) for number in range(0x1000, 0x1000 + 600)]
    return table(
        partition(PKey(1), "N" * 31, "t" * 60, *ports),
        sm_ports=(SM1, SM2, guid(0xFFFF)),
        labels={port: f"server-{number // 2:03}." + "x" * 60 for number, port in enumerate(ports)},
    )


def everything() -> PartitionTable:
    """All that a file may say: an open Default with a canary, flags, keywords, groups, ports of servers interleaved."""
    every_flag = Flags(ipoib=True, mtu=5, rate=16, sl=2, scope=(5, 2), q_key=0xB1B, tclass=7, flow_label=0x12345)
    return PartitionTable(
        sm_ports=(SM1, SM2),
        partitions=(
            Partition(
                TRAINING, "training", "acme", tuple(Member(guid(n), FULL) for n in (1, 2, 3, 4, 0x60)), every_flag
            ),
            Partition(
                STORAGE,
                "storage",
                None,
                (Member(guid(0x51), FULL), Member(guid(0x21), LIMITED)),
                Flags(ipoib=True),
                keywords=(KeywordMember(Keyword.ALL_SWITCHES, FULL), KeywordMember(Keyword.ALL_CAS, LIMITED)),
                mgids=("mgid=ff12:401b::1234", "mgid = ff12:601b::1 , rate=3, mtu=4", "mgid=ff15::5,sl=1"),
            ),
            Partition(PKey(0x3000), "monitors", None, keywords=(KeywordMember(Keyword.ALL_SWITCHES, FULL),)),
            partition(INFERENCE, "inference", "acme", guid(0x22), guid(0x23)),
            partition(PKey(0x0007), "batch", "umbrella", guid(0x31)),
        ),
        labels={guid(n): f"srv-{n % 2}" for n in (1, 2, 3, 4, 0x22, 0x23, 0x31)} | {guid(0x51): "nas"},
        default=DefaultPartition(
            keywords=(KeywordMember(Keyword.ALL, FULL), KeywordMember(Keyword.SELF, FULL)),
            members=(Member(guid(1), LIMITED), Member(guid(0x51), FULL)),
            flags=Flags(ipoib=True, mtu=4, rate=3),
            mgids=("mgid=ff12:401b::16",),
        ),
    )


GOLDEN = {
    "one-tenant.conf": (one_tenant(), Header("lab", 7, PARENT)),
    "default-only.conf": (table(), Header("lab", 0, NO_PARENT)),
    "provider-and-tenants.conf": (provider_and_tenants(), Header("hall-2", 123456789, PARENT)),
    "long-list.conf": (long_list(), Header("lab", 8, PARENT)),
    "everything.conf": (everything(), Header("lab", 9, PARENT, Layout.BY_OWNER)),
    "provider-and-tenants-by-owner.conf": (
        provider_and_tenants(),
        Header("hall-2", 123456789, PARENT, Layout.BY_OWNER),
    ),
}
