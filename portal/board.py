"""The tenant's own board as values: its partitions and those it shares, their servers, how its moves are doing."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext

from console import lamps
from console.lamps import Colour, Lamp
from deploy.models import Rollout
from inventory.models import Server
from partitions.models import Membership, Partition, StagedChange
from people.models import Tenant
from portal import sight
from portal.door import Seat
from portal.models import Turn
from portal.words import Why, sentence
from subnet.pkey import PKey


@dataclass(frozen=True, slots=True)
class Card:
    """One server in one partition, as the tenant's people want it. `by` is who staged it, empty when nothing is."""

    key: str
    hostname: str
    ports: int
    came_from: str
    by: str
    is_mine: bool
    by_provider: bool  # the provider has something pending for it: it stays until that is done


@dataclass(frozen=True, slots=True)
class Column:
    """One partition. `is_shared`: the provider's; nothing is dragged there."""

    key: str
    name: str
    pkey: str
    is_shared: bool
    cards: tuple[Card, ...]
    leaving: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How the tenant's moves are doing: a lamp, a sentence, and what can be done about it."""

    lamp: Lamp
    sentence: str
    is_over: bool
    can_try_again: bool
    at: datetime | None


@dataclass(frozen=True, slots=True)
class OwnBoard:
    """All of it."""

    columns: tuple[Column, ...]
    staged: int  # servers that are staged by the tenant's people
    progress: Progress | None
    used: int
    most: int
    rolls_out_alone: bool

    @property
    def own(self) -> tuple[Column, ...]:
        """Where servers may be moved."""
        return tuple(column for column in self.columns if not column.is_shared)

    @property
    def servers(self) -> int:
        """How many different servers there are."""
        return len({card.key for column in self.columns for card in column.cards})


def own_board(seat: Seat) -> OwnBoard:
    """The board of the tenant. A dozen queries, whatever its size."""
    own = list(sight.own_partitions(seat).filter(retired_at=None).order_by("name"))
    shared = list(sight.shared_partitions(seat))
    servers = list(sight.own_servers(seat))
    columns = _columns(seat, own, shared, servers)
    staged = {card.key for column in columns for card in column.cards if card.by and not card.by_provider}
    return OwnBoard(
        columns=tuple(columns),
        staged=len(staged),
        progress=_progress(seat, bool(staged)),
        used=len(own),
        most=seat.tenant.most_partitions,
        rolls_out_alone=seat.tenant.moves == Tenant.Moves.ALONE,
    )


def _columns(seat: Seat, own: list[Partition], shared: list[Partition], servers: list[Server]) -> list[Column]:
    names = {server.pk: server for server in servers}
    there: dict[tuple[int, int], set[int]] = defaultdict(set)  # (server, partition) → ports
    for server, where, port in Membership.objects.filter(
        port__hca__server__in=servers, partition__in=[*own, *shared]
    ).values_list("port__hca__server", "partition", "port"):
        there[server, where].add(port)
    now = {place: set(ports) for place, ports in there.items()}
    changes = StagedChange.objects.filter(port__hca__server__in=servers).select_related("by", "port__hca", "partition")
    staged: dict[int, list[StagedChange]] = defaultdict(list)
    for change in changes.order_by("pk"):
        assert change.port.hca is not None  # noqa: S101  the filter says so
        server = change.port.hca.server_id
        staged[server].append(change)
        if change.for_tenant_id != seat.tenant.pk:
            continue  # what the provider wants is not shown before it is so
        place = (server, change.partition_id)
        (there[place].discard if change.kind_to is None else there[place].add)(change.port_id)
    found = []
    for partition in (*own, *shared):
        cards = [
            _card(names[server], len(ports), staged[server], seat)
            for (server, in_it), ports in there.items()
            if in_it == partition.pk and ports
        ]
        leaving = sum(bool(ports) and not there[place] for place, ports in now.items() if place[1] == partition.pk)
        found.append(
            Column(
                key=partition.public_id,
                name=partition.called,
                pkey=str(PKey(partition.pkey)),
                is_shared=partition.tenant_id is None,
                cards=tuple(sorted(cards, key=lambda card: card.hostname)),
                leaving=leaving,
            )
        )
    return found


def _card(server: Server, ports: int, staged: Iterable[StagedChange], seat: Seat) -> Card:
    own = [change for change in staged if change.for_tenant_id == seat.tenant.pk]
    left = sorted({change.partition.called for change in own if change.kind_to is None})
    return Card(
        key=server.public_id,
        hostname=server.hostname,
        ports=ports,
        came_from=", ".join(left),
        by=str(own[-1].by) if own else "",
        is_mine=bool(own) and all(change.by_id == seat.person.pk for change in own),
        by_provider=any(change.for_tenant_id != seat.tenant.pk for change in staged),
    )


def _progress(seat: Seat, has_staged: bool) -> Progress | None:
    """The newest turn in words; or that what is staged waits for an operator."""
    turn = Turn.objects.filter(tenant=seat.tenant).select_related("rollout").order_by("-pk").first()
    is_open = turn is not None and turn.next_try_at is not None
    if turn is None or (has_staged and not is_open and turn.state in (Turn.State.PROVEN, Turn.State.GONE)):
        if not has_staged:
            return None
        waits = Lamp(Colour.IDLE, "hourglass", gettext("waits for an operator"))
        return Progress(waits, sentence(Why.POLICY), is_over=False, can_try_again=False, at=None)
    if not has_staged and not is_open and turn.state not in (Turn.State.PROVEN, Turn.State.GONE):
        return None
    can = has_staged and turn.state in (Turn.State.FAILED, Turn.State.OPERATOR) and turn.why != Why.POLICY
    return Progress(_lamp(turn), said(turn), is_over=not is_open, can_try_again=can, at=turn.ended_at)


def _lamp(turn: Turn) -> Lamp:
    if turn.state == Turn.State.ROLLING_OUT and turn.rollout is not None:
        return lamps.rollout(turn.rollout.state)
    return {
        Turn.State.WAITING: Lamp(Colour.BUSY, "hourglass", gettext("waiting")),
        Turn.State.PROVEN: lamps.rollout(Rollout.State.PROVEN),
        Turn.State.FAILED: Lamp(Colour.BAD, "alert-triangle", gettext("not made")),
        Turn.State.OPERATOR: Lamp(Colour.WARN, "user", gettext("needs an operator")),
        Turn.State.GONE: Lamp(Colour.IDLE, "circle-minus", gettext("taken back")),
    }.get(Turn.State(turn.state), Lamp(Colour.BUSY, "hourglass", gettext("waiting")))


def said(turn: Turn) -> str:
    """How a turn stands, in a sentence for its tenant."""
    if turn.state == Turn.State.PROVEN:
        return gettext("The fabric was read, and your ports hold exactly the keys they should.")
    if turn.state == Turn.State.ROLLING_OUT and not turn.why:
        return gettext("Your change is on its way to the fabric, and is proven by reading it.")
    return sentence(turn.why, until=turn.until)
