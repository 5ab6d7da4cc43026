"""What an action did to staged changes, written down so that it can be undone (`partitions/undoing.py` does that)."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from django.db.models import QuerySet
from django.utils import timezone

from inventory.models import Subnet
from partitions.models import StagedChange, StagingAction
from people.models import User

KEPT: Final = 100  # actions of a person on a subnet
BATCH: Final = 500

type Row = list[Any]  # [port, partition, kind_from, kind_to, by, ISO time, reason]


@dataclass(slots=True)
class Notes:
    """All staged changes of the ports that one action touches, before it and after it."""

    ports: list[int] = field(default_factory=list)
    before: list[Row] = field(default_factory=list)
    after: list[Row] = field(default_factory=list)

    def add(self, ports: Iterable[int], before: Iterable[StagedChange], after: Iterable[StagedChange]) -> None:
        """Note one server more."""
        self.ports += ports
        self.before += map(as_row, before)
        self.after += map(as_row, after)


def as_row(change: StagedChange) -> Row:
    """A staged change as an action remembers it."""
    by, at = change.by_id, change.at.isoformat()
    return [change.port_id, change.partition_id, change.kind_from, change.kind_to, by, at, change.reason]


def remember(*, subnet: Subnet, person: User, title: str, notes: Notes) -> None:
    """Keep what an action did, in the transaction of its event; an action that changed nothing is none."""
    if sorted(row[:5] for row in notes.before) == sorted(row[:5] for row in notes.after):
        return
    StagingAction.objects.create(
        subnet=subnet, by=person, at=timezone.now(), title=title[:200], ports=notes.ports, before=notes.before,
        after=notes.after,
    )  # fmt: skip
    mine = StagingAction.objects.filter(subnet=subnet, by=person).order_by("-pk")
    StagingAction.objects.filter(pk__in=list(mine.values_list("pk", flat=True)[KEPT : 2 * KEPT])).delete()


def of_ports(ports: Collection[int]) -> list[StagedChange]:
    """All staged changes of these ports as they stand."""
    return _of_ports(StagedChange.objects.all(), ports)


def held_of_ports(ports: Collection[int]) -> list[StagedChange]:
    """The same, held until the transaction ends: nobody discards one of them meanwhile."""
    return _of_ports(StagedChange.objects.select_for_update(of=("self",)).order_by("pk"), ports)


def _of_ports(changes: QuerySet[StagedChange], ports: Collection[int]) -> list[StagedChange]:
    ids = sorted(ports)
    rows: list[StagedChange] = []
    for start in range(0, len(ids), BATCH):
        rows += changes.filter(port__in=ids[start : start + BATCH])
    return rows


def forget(*, subnet: Subnet, ports: Collection[int], but_by: User | None = None) -> None:
    """Let go of the actions that touched one of `ports`: what they did has come true, or somebody else took it back."""
    touched = set(ports)
    if not touched:
        return
    others = StagingAction.objects.filter(subnet=subnet).exclude(by=but_by).values_list("pk", "ports")
    StagingAction.objects.filter(pk__in=[pk for pk, its in others if not touched.isdisjoint(its)]).delete()
