"""The tray: how much waits for a rollout and whose it is, staged moves and replaced HCAs alike."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from django.db.models import CharField, IntegerField, QuerySet, Value
from django.db.models.functions import Coalesce

from inventory.models import Subnet
from partitions.models import Replacement
from people.models import User


@dataclass(frozen=True, slots=True)
class Pile:
    """How much of one person's work is staged."""

    by: str
    is_mine: bool
    servers: int
    ports: int
    changes: int
    replaced: int  # ports that go on under the GUID of another HCA; they are not discarded, but taken back


@dataclass(frozen=True, slots=True)
class Tray:
    """What waits for a rollout, replaced HCAs included: everything, and person by person with one's own first."""

    servers: int
    ports: int
    changes: int
    mine: Pile
    others: tuple[Pile, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing of anybody waits."""
        return not self.servers


class Waiting(Protocol):
    """One port for which somebody wants something."""

    @property
    def server(self) -> int: ...
    @property
    def port(self) -> int: ...
    @property
    def by(self) -> int: ...
    @property
    def person(self) -> str: ...


class Replaced(NamedTuple):
    """A port that goes on under the GUID of another HCA."""

    server: int
    port: int
    by: int
    first_name: str
    last_name: str
    username: str

    @property
    def person(self) -> str:
        """Who replaced it, as people call them."""
        return f"{self.first_name} {self.last_name}".strip() or self.username


def replaced(subnet: Subnet) -> QuerySet[Replacement, tuple[Any, ...]]:
    """What no rollout has carried yet, in the columns in which the board reads staged changes."""
    rows = Replacement.objects.pending().filter(port__hca__isnull=False)
    # Not by the plain column: SQLite would begin with all ports of the subnet, and there are few replacements.
    rows = rows.annotate(its_subnet=Coalesce("port__subnet_id", 0)).filter(its_subnet=subnet.pk)
    none, text = Value(None, IntegerField()), Value(None, CharField())
    people = ("by_id", "by__first_name", "by__last_name", "by__username")
    return rows.values_list("port__hca__server_id", "port_id", none, none, none, text, text, *people, "at")


def tray_of(staged: Sequence[Waiting], replaced: Sequence[Replaced], user: User) -> Tray:
    """The tray as `user` sees it. No query."""
    everything: list[Waiting] = [*staged, *replaced]
    by_person: dict[int, list[Waiting]] = defaultdict(list)
    for row in everything:
        by_person[row.by].append(row)
    mine = _pile(by_person.pop(user.pk, []), str(user), is_mine=True)
    others = (_pile(rows, rows[0].person, is_mine=False) for rows in by_person.values())
    whole = _pile(everything, "", is_mine=False)
    return Tray(
        servers=whole.servers,
        ports=whole.ports,
        changes=whole.changes,
        mine=mine,
        others=tuple(sorted(others, key=lambda pile: pile.by)),
    )


def _pile(rows: list[Waiting], by: str, *, is_mine: bool) -> Pile:
    return Pile(
        by=by,
        is_mine=is_mine,
        servers=len({row.server for row in rows}),
        ports=len({row.port for row in rows}),
        changes=sum(not isinstance(row, Replaced) for row in rows),
        replaced=sum(isinstance(row, Replaced) for row in rows),
    )
