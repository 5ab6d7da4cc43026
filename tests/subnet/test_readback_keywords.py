"""What a read-back expects of ports that no GUID names, and of an open Default."""

from dataclasses import replace

import pytest

from subnet.default import OPEN
from subnet.readback import compare, expected
from subnet.table import DefaultPartition, Keyword, KeywordMember, Member, Partition, PartitionTable
from tests.subnet.fabrics import (
    FULL,
    LEAF,
    LIMITED,
    SM1,
    SM2,
    STORAGE,
    TRAINING,
    fabric,
    guid,
    partition,
    port,
    table,
)  # fmt: skip

NAMED, IDLE = port(1), port(3)


@pytest.mark.parametrize(
    ("reading", "is_self", "entries"),
    [
        (IDLE, False, {0xFFFF, 0x2C41, 0x1001}),  # nobody names it
        (NAMED, False, {0x7FFF, 0xAC41, 0x1001}),  # named in the partition, excepted in Default
        (port(LEAF, node_type="SW"), False, {0xFFFF, 0x2C41}),
        (port(SM1), True, {0xFFFF, 0x2C41, 0x9001}),  # SELF comes after ALL_CAS
        (port(SM2), False, {0xFFFF, 0x2C41, 0x1001}),
    ],
)
def test_keywords_say_what_ports_hold_that_nobody_names(reading, is_self, entries):
    wanted = PartitionTable(
        sm_ports=(SM1, SM2),
        partitions=(
            replace(partition(TRAINING, "training", "acme", guid(1)), keywords=(KeywordMember(Keyword.ALL, LIMITED),)),
            Partition(
                STORAGE,
                "storage",
                None,
                keywords=(KeywordMember(Keyword.SELF, FULL), KeywordMember(Keyword.ALL_CAS, LIMITED)),
            ),
        ),
        default=DefaultPartition(keywords=OPEN, members=(Member(guid(1), LIMITED),)),
    )
    assert expected(wanted, reading, is_self=is_self) == entries
    default_first = sorted(entries, key=lambda number: number & 0x7FFF != 0x7FFF)
    seen = fabric(replace(reading, pkeys=dict(enumerate(default_first))))
    found = compare(wanted=wanted, before=seen, after=seen, affected={reading.guid}, predictions={})
    assert not [d for d in found.discrepancies if d.guid == reading.guid]


def test_an_open_default_is_no_lost_isolation():
    opened = PartitionTable(sm_ports=(SM1, SM2), default=DefaultPartition(keywords=OPEN))
    everybody = fabric(*(port(n, {0: 0xFFFF}) for n in (1, 2)))
    read = compare(wanted=opened, before=everybody, after=everybody, affected={guid(1)}, predictions={})
    assert read.is_proven
    closed = compare(wanted=table(), before=everybody, after=everybody, affected={guid(1)}, predictions={})
    assert [d.kind for d in closed.discrepancies] == ["isolation_lost", "wrong_membership"]
