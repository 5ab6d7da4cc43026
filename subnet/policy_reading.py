"""The last rule: what FabricUI would write must be a file that OpenSM itself reads without harm.

Multicast groups are the one part of a table whose text is carried over as it was, so only they can hold what kills
OpenSM or turns its file into another one; a table without them need not be read again (`opensm_reading` is held to
the real OpenSM by the differential test).
"""

from collections.abc import Iterator
from dataclasses import replace

from subnet import opensm_reading
from subnet.file_header import Header
from subnet.partitions_conf import render
from subnet.table import PartitionTable
from subnet.violation import Violation


def violations(table: PartitionTable) -> Iterator[Violation]:
    """Each thing in the groups of `table` that OpenSM would refuse, or die of, as one refusal."""
    carriers = tuple(partition for partition in table.partitions if partition.mgids)
    if table.sm_ports and (carriers or table.default.mgids):
        yield from of_file(render(replace(table, partitions=carriers, labels={}), Header(subnet="policy", revision=0)))


def of_file(data: bytes) -> Iterator[Violation]:
    """Each finding in the bytes of a file that speaks against placing it, at most a hundred of a kind."""
    for finding in opensm_reading.check(data).findings:
        if finding.severity == "refuse":
            yield Violation(
                "opensm_refuses", "refuse", f"line {finding.line}", f"{finding.message} {finding.fix}".strip()
            )
