"""The board as its page shows it: columns grouped by tenant, each card with what is staged for it in words."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from console import lamps
from inventory.models import Subnet
from partitions import board
from partitions.board import UNASSIGNED
from partitions.tray import Tray
from people.models import User

PROVIDER = "Provider"


@dataclass(frozen=True, slots=True)
class StagedNote:
    """What is staged for a server, in words: "from → to", and by whom. `leaves` is empty when it only joins."""

    leaves: str
    joins: str
    by: str
    is_mine: bool
    waits: bool  # for the server to be marked clean


@dataclass(frozen=True, slots=True)
class Card:
    """One server in one column. `trouble` is None when all its ports may be staged."""

    key: str
    hostname: str
    facts: str
    kind: str  # full, limited, mixed; empty in Unassigned
    trouble: lamps.Lamp | None
    staged: StagedNote | None

    @property
    def search(self) -> str:
        """What the search box looks through."""
        words = [self.hostname.lower()]
        if self.staged is not None:
            words += ["staged", self.staged.by.lower(), *(["waits"] if self.staged.waits else [])]
        if self.trouble is not None:
            words.append(self.trouble.word)
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class Column:
    """One partition, or the servers that are in none (`key` is UNASSIGNED)."""

    key: str
    name: str
    pkey: str
    tenant: str
    is_shared: bool  # the provider's: tenants' servers join it as limited members and stay where they are
    cards: tuple[Card, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A tenant's columns, or the provider's."""

    name: str
    columns: tuple[Column, ...]

    @property
    def is_shared(self) -> bool:
        """Whether these are the provider's, which tenants share."""
        return any(column.is_shared for column in self.columns)

    @property
    def servers(self) -> int:
        """How many different servers stand in them."""
        return len({card.key for column in self.columns for card in column.cards})


@dataclass(frozen=True, slots=True)
class Board:
    """All of it."""

    unassigned: Column
    groups: tuple[Group, ...]
    tray: Tray
    servers: int
    is_settling: bool


def read_board(*, subnet: Subnet, user: User) -> Board:
    """The board as `user` sees it. As many queries as `partitions.board.board`."""
    read = board.board(subnet=subnet, user=user)
    notes = _notes(read.columns)
    columns = [_column(column, notes) for column in read.columns]
    unassigned = next(column for column in columns if column.key == UNASSIGNED)
    return Board(
        unassigned=unassigned,
        groups=tuple(_groups(column for column in columns if column is not unassigned)),
        tray=read.tray,
        servers=read.servers,
        is_settling=read.is_settling,
    )


def _groups(columns: Iterable[Column]) -> Iterable[Group]:
    """Columns by tenant, in the order in which they come."""
    by_tenant: dict[str, list[Column]] = defaultdict(list)
    for column in columns:
        by_tenant[column.tenant].append(column)
    for name, its_columns in by_tenant.items():
        yield Group(name, tuple(its_columns))


def _column(column: board.Column, notes: dict[str, StagedNote]) -> Column:
    return Column(
        key=column.key,
        name=column.name,
        pkey=column.pkey,
        tenant="" if column.key == UNASSIGNED else column.tenant or PROVIDER,
        is_shared=column.is_provider,
        cards=tuple(_card(card, notes) for card in column.cards),
    )


def _card(card: board.Card, notes: dict[str, StagedNote]) -> Card:
    trouble = None
    if not card.ports:
        trouble = lamps.Lamp(lamps.Colour.WARN, "plug-connected-x", "no InfiniBand port")
    elif card.is_in_conflict or card.is_unconfirmed:
        trouble = lamps.port(is_confirmed=not card.is_unconfirmed, has_conflict=card.is_in_conflict)
    return Card(
        key=card.server,
        hostname=card.hostname,
        facts=_facts(card),
        kind=card.kind,
        trouble=trouble,
        staged=notes.get(card.server),
    )


def _facts(card: board.Card) -> str:
    """The ports in words; membership only where it is not the usual full one, a part only where it is a part."""
    number = str(card.ports) if card.ports_here == card.ports else f"{card.ports_here} of {card.ports}"
    facts = f"{number} port{'' if card.ports == 1 else 's'}"
    return f"{facts}, {card.kind}" if card.kind in ("limited", "mixed") else facts


def _notes(columns: Iterable[board.Column]) -> dict[str, StagedNote]:
    """For each server with staged changes: what it leaves, what it joins, and by whom."""
    leaves: dict[str, list[str]] = defaultdict(list)
    joins: dict[str, list[str]] = defaultdict(list)
    marks: dict[str, list[board.Mark]] = defaultdict(list)
    for column in columns:
        for card in column.leaving:
            leaves[card.server].append(column.name)
            if card.mark is not None:
                marks[card.server].append(card.mark)
        for card in column.cards:
            if card.mark is None:
                continue
            marks[card.server].append(card.mark)
            if card.mark.direction is not board.Direction.OUT:
                change = f" ({card.kind})" if card.mark.direction is board.Direction.CHANGE else ""
                joins[card.server].append(column.name + change)
    return {
        server: StagedNote(
            leaves=", ".join(leaves[server]),
            joins=", ".join(joins[server]) or "nowhere else",
            by=", ".join(sorted({mark.by for mark in its_marks})),
            is_mine=all(mark.is_mine for mark in its_marks),
            waits=any(mark.waits for mark in its_marks),
        )
        for server, its_marks in marks.items()
    }
