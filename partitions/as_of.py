"""The partitions as they were at a moment: those that stood on the fabric with their members, and the empty rows.

Members and P_Keys are the revision's that was current then; which rows existed, and what they were called, is told by
the rows and by the renames in the trail since.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from audit.actions import Action
from audit.models import Event
from inventory.models import Subnet
from partitions.models import Partition
from subnet.pkey import PKey
from subnet.table import Member, PartitionTable


@dataclass(frozen=True, slots=True)
class PartitionThen:
    """One partition at a moment. `row` is None when no row of that time has its P_Key: it came of a file."""

    pkey: PKey
    name: str
    tenant: str | None  # as people call it; None: the provider's
    members: tuple[Member, ...]
    row: Partition | None

    @property
    def since(self) -> str:
        """What has become of it, in words; empty when it is still what it was."""
        if self.row is None:
            return ""
        if self.row.retired_at is not None:
            return f"retired {self.row.retired_at:%Y-%m-%d %H:%M} UTC"
        return f"called {self.row.name} now" if self.row.name != self.name else ""


def partitions_at(subnet: Subnet, at: datetime, table: PartitionTable | None) -> tuple[PartitionThen, ...]:
    """The partitions of `subnet` at `at`, in order of P_Key; `table` is what was current then. Two queries."""
    rows = rows_at(subnet, at)
    names = _names_at(rows.values(), at)
    known = {partition.pkey: partition for partition in table.partitions} if table is not None else {}
    found = []
    for pkey in sorted(rows.keys() | known.keys()):
        row, partition = rows.get(pkey), known.get(pkey)
        members = () if partition is None else partition.members
        if row is not None:
            tenant = None if row.tenant is None else row.tenant.name
            found.append(PartitionThen(pkey, names[row.pk], tenant, members, row))
        elif partition is not None:
            found.append(PartitionThen(pkey, partition.name, partition.tenant, members, None))
    return tuple(found)


def rows_at(subnet: Subnet, at: datetime) -> dict[PKey, Partition]:
    """The rows that existed and were not retired at `at`, by P_Key: a key has one at a time. One query."""
    rows = Partition.objects.filter(
        Q(retired_at__isnull=True) | Q(retired_at__gt=at), subnet=subnet, created_at__lte=at
    )
    return {PKey(row.pkey): row for row in rows.select_related("tenant", "subnet").order_by("created_at", "pk")}


def _names_at(rows: Iterable[Partition], at: datetime) -> dict[int, str]:
    """What each row was called: what it was renamed from first after `at`, else as today. One query."""
    known = {row.public_id: row for row in rows}
    names = {row.pk: row.name for row in known.values()}
    renames = Event.objects.filter(action=Action.PARTITION_RENAME, at__gt=at).order_by("-number")
    for event in renames:  # the newest first, so that the first after `at` has the last word
        row = known.get(event.subject_key)
        if row is not None and isinstance(event.before, dict):
            names[row.pk] = str(event.before.get("name", names[row.pk]))
    return names
