"""The board as its page shows it: columns by tenant, open or as tiles; each card with its lamps and in words."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from console import lamps
from console.board_search import Search
from console.four_lamps import Fabric, Four
from inventory.models import Subnet
from partitions import board
from partitions.board import UNASSIGNED
from partitions.tray import Tray
from people.models import User
from people.said import said

PROVIDER: Final = "Provider"
# A site of this size fits on a screen: it opens whole. A larger one opens as tiles, and shows what is pinned.
SMALL_COLUMNS: Final = 12
SMALL_SERVERS: Final = 300
FOUND_OPENS: Final = 200  # cards; a search that finds no more opens the columns they stand in
EVERYTHING: Final = "all"  # in the address: every column is open
NO_FABRIC: Final = Fabric()


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
    four: Four
    down: int = 0

    @property
    def search(self) -> str:
        """What the words of a search look through."""
        return f"{self.hostname.lower()} {' '.join(self.states)} {self.people}"

    @property
    def states(self) -> frozenset[str]:
        """What `state:` finds: of `board_search.STATES`."""
        found = {self.kind} if self.kind == "limited" else set()
        found |= {"staged"} if self.staged is not None else set()
        found |= {"waits"} if self.staged is not None and self.staged.waits else set()
        found |= {"down"} if self.down else set()
        found |= {self.trouble.word} if self.trouble is not None else set()
        found |= {"trouble"} if self.trouble is not None or self.four.trouble is not None else set()
        return frozenset(found or {"fine"})

    @property
    def lamps(self) -> str:
        """What `lamp:` finds."""
        return self.four.words.lower()

    @property
    def people(self) -> str:
        """What `by:` finds; “me” among them."""
        if self.staged is None:
            return ""
        by = self.staged.by.lower()
        return " ".join((by, "me")) if self.staged.is_mine else by


@dataclass(frozen=True, slots=True)
class Share:
    """One stretch of a column's bar, in percent of its width."""

    state: str  # good, staged, bad, unknown
    count: int
    start: float
    width: float

    @property
    def words(self) -> str:
        """How many are so."""
        match self.state:
            case "good":
                return f"{self.count} proven"
            case "staged":
                return f"{self.count} staged"
            case "bad":
                return f"{self.count} in trouble"
        return f"{self.count} not known"


@dataclass(frozen=True, slots=True)
class Column:
    """One partition, or the servers that are in none (`key` is UNASSIGNED). `cards` are those the search found."""

    key: str
    name: str
    pkey: str
    tenant: str
    is_shared: bool  # the provider's: tenants' servers join it as limited members and stay where they are
    cards: tuple[Card, ...]
    total: int  # whether the search found them or not
    joining: int
    leaving: int
    bar: tuple[Share, ...]
    is_open: bool = True

    @property
    def called(self) -> str:
        """Its name, or what no partition is called in the reader's language."""
        return self.name if self.pkey else str(said(self.name))

    @property
    def troubled(self) -> int:
        """How many servers here have lamps that disagree."""
        return sum(share.count for share in self.bar if share.state == "bad")

    @property
    def bar_words(self) -> str:
        """The bar in words."""
        return ", ".join(share.words for share in self.bar) or "no servers"


@dataclass(frozen=True, slots=True)
class Group:
    """A tenant's columns, or the provider's."""

    name: str
    columns: tuple[Column, ...]
    servers: int  # different ones

    @property
    def is_shared(self) -> bool:
        """Whether these are the provider's, which tenants share."""
        return any(column.is_shared for column in self.columns)

    @property
    def opened(self) -> tuple[Column, ...]:
        """Those that show their cards."""
        return tuple(column for column in self.columns if column.is_open)

    @property
    def tiles(self) -> tuple[Column, ...]:
        """Those that do not."""
        return tuple(column for column in self.columns if not column.is_open)


@dataclass(frozen=True, slots=True)
class Board:
    """All of it."""

    unassigned: Column
    groups: tuple[Group, ...]
    tray: Tray
    servers: int
    found: int  # different servers that the search found; all of them without one
    is_settling: bool
    four_words: Mapping[str, int]  # what the lamps say, and the number under which a card names it

    @property
    def columns(self) -> tuple[Column, ...]:
        """All of them, Unassigned first."""
        return (self.unassigned, *(column for group in self.groups for column in group.columns))

    @property
    def has_tiles(self) -> bool:
        """Whether anything is shown as a tile."""
        return any(not column.is_open for column in self.columns)

    @property
    def has_open(self) -> bool:
        """Whether anything shows its cards."""
        return any(column.is_open for column in self.columns)


def read_board(
    *,
    subnet: Subnet,
    user: User,
    now: datetime,
    search: Search | None = None,
    pins: Collection[str] | None = None,
    fabric: Fabric = NO_FABRIC,
    is_settling: bool | None = None,
) -> Board:
    """The board as `user` sees it. As many queries as `partitions.board.board`.

    `pins` are the keys of the columns that are open; None: all of a small site, none of a large one.
    """
    read = board.board(subnet=subnet, user=user, is_settling=is_settling)
    notes = _notes(read.columns)
    is_small = len(read.columns) <= SMALL_COLUMNS and read.servers <= SMALL_SERVERS
    opens_all = is_small if pins is None else EVERYTHING in pins
    # What nobody looks at is only counted: cards are made for the columns that show them, and to be searched.
    columns = [
        _column(column, notes, search, fabric, now, is_open=opens_all or column.key in (pins or ()))
        for column in read.columns
    ]
    found = len({card.key for column in columns for card in column.cards}) if search else read.servers
    if search and found <= FOUND_OPENS:
        columns = [replace(column, is_open=column.is_open or bool(column.cards)) for column in columns]
    tenant_servers: dict[str, set[str]] = defaultdict(set)
    for shown, column in zip(columns, read.columns, strict=True):
        tenant_servers[shown.tenant].update(card.server for card in column.cards)
    words = {card.four.words for column in columns if column.is_open for card in column.cards}
    return Board(
        unassigned=columns[0],
        groups=tuple(_groups(columns[1:], tenant_servers)),
        tray=read.tray,
        servers=read.servers,
        found=found,
        is_settling=read.is_settling,
        four_words={sentence: number for number, sentence in enumerate(sorted(words))},
    )


def _groups(columns: Iterable[Column], servers: Mapping[str, Collection[str]]) -> Iterable[Group]:
    """Columns by tenant, in the order in which they come."""
    by_tenant: dict[str, list[Column]] = defaultdict(list)
    for column in columns:
        by_tenant[column.tenant].append(column)
    for name, its_columns in by_tenant.items():
        yield Group(name, tuple(its_columns), len(servers[name]))


def _column(
    column: board.Column,
    notes: Mapping[str, StagedNote],
    search: Search | None,
    fabric: Fabric,
    now: datetime,
    *,
    is_open: bool,
) -> Column:
    lit = _Lit(fabric, column, now)
    marks = [card.mark.direction for card in column.cards if card.mark is not None]
    shown = Column(
        key=column.key,
        name=str(said(column.name)) if column.key == UNASSIGNED else column.name,
        pkey=column.pkey,
        tenant="" if column.key == UNASSIGNED else column.tenant or PROVIDER,
        is_shared=column.is_provider,
        cards=(),
        total=len(column.cards),
        joining=marks.count(board.Direction.IN),
        leaving=len(column.leaving),
        bar=_bar([lit.of(card) for card in column.cards]),
        is_open=is_open,
    )
    if (search and not search.takes_column(shown)) or not (search or is_open):
        return shown
    cards = (_card(card, notes, lit) for card in column.cards)
    return replace(shown, cards=tuple(filter(search.takes, cards) if search else cards))


def _bar(lamps: Collection[Four]) -> tuple[Share, ...]:
    counts = Counter(four.state for four in lamps)
    bar: list[Share] = []
    start = 0.0
    for state in ("good", "staged", "bad", "unknown"):
        if count := counts[state]:
            width = round(100 * count / len(lamps), 2)
            bar.append(Share(state, count, round(start, 2), width))
            start += width
    return tuple(bar)


class _Lit:
    """The lamps of one column's cards; a thousand servers share a few sets of them."""

    def __init__(self, fabric: Fabric, column: board.Column, now: datetime) -> None:
        self.fabric, self.now, self.pk = fabric, now, column.pk
        self.known: dict[tuple[object, ...], Four] = {}

    def of(self, card: board.Card) -> Four:
        mark, fabric, tests = card.mark, self.fabric, self.fabric.tests
        staged = "" if mark is None else f"a change of {mark.by} waits"
        joins = mark is not None and mark.direction is board.Direction.IN
        probed = (tests.get((card.pk, self.pk)), tests.get((card.pk, None))) if tests else None
        key = staged, joins, card.pk in fabric.wrong, card.pk in fabric.owed, probed, card.down
        if (four := self.known.get(key)) is None:
            four = fabric.card(
                server=card.pk, partition=self.pk, staged=staged, joins=joins, now=self.now, down=card.down
            )
            self.known[key] = four
        return four


def _card(card: board.Card, notes: Mapping[str, StagedNote], lit: _Lit) -> Card:
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
        four=lit.of(card),
        down=card.down,
    )


def _facts(card: board.Card) -> str:
    """The ports in words; membership only where it is not the usual full one, a part only where it is a part."""
    facts = f"{card.ports} port{'' if card.ports == 1 else 's'}"
    if card.ports_here != card.ports:
        facts = f"{card.ports_here} of {facts}"
    facts = f"{facts}, {card.kind}" if card.kind in ("limited", "mixed") else facts
    return f"{facts}, {card.down} down" if card.down else facts


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
