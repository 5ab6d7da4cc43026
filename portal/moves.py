"""Move own servers between own partitions, and take a staged move back.

The rules are the board's (`partitions/refusals.py`). Its sentences are written for operators and name other people,
servers and partitions, so each rule has a sentence of its own here.
"""

from collections.abc import Callable, Sequence
from typing import Final

from django.db import transaction
from django.utils.translation import gettext, gettext_lazy

from inventory.models import Server, Subnet
from partitions import operations as partitions
from partitions.doer import Doer
from partitions.errors import MoveRefused, PartitionsError
from partitions.models import Partition, StagedChange
from portal import turns
from portal.door import Seat
from portal.errors import MovesRefused, Refused
from portal.models import Turn
from subnet.errors import SubnetError

# By `MoveRefused.rule`: what, and how to mend it. A rule without a line gets the last one.
SENTENCES: Final = {
    "same_partition": gettext_lazy("It is there already. Choose another of your partitions."),
    "retired": gettext_lazy("That partition is retired and takes no servers. Choose another one."),
    "another_subnet": gettext_lazy("That partition is on another fabric. Choose one on the fabric of this server."),
    "no_ports": gettext_lazy(
        "It has reported no InfiniBand port. See that its agent runs and its HCAs are InfiniBand."
    ),
    "conflict": gettext_lazy("Your provider has to check one of its ports first. Ask them, then move it."),
    "unconfirmed": gettext_lazy("Your provider has not confirmed one of its ports yet. Ask them, then move it."),
    "source_lost": gettext_lazy(
        "It is not where you took it from any more. Load the page again and move it from there."
    ),
    "rolling_out": gettext_lazy("A change of it is on its way to the fabric. Wait until that is over, then move it."),
    "full_in_shared": gettext_lazy("Your provider has to change how it shares storage first. Ask them."),
}
OTHERWISE: Final = gettext_lazy("Your provider has to look at it first. Ask them with a request.")


def move(*, seat: Seat, server: Server, source: Partition, target: Partition) -> Turn | None:
    """Want one `server` out of `source` and in `target`; see `move_all`."""
    return move_all(seat=seat, moves=[(server, source)], target=target)


@transaction.atomic
def move_all(
    *,
    seat: Seat,
    moves: Sequence[tuple[Server, Partition]],
    target: Partition,
    actor: Doer | None = None,
    reason: str = "",
) -> Turn | None:
    """Want each server out of its source and in `target`, all of the tenant's; they go out as its policy says.

    Give the turn in which they go; None when they wait for an operator. The caller has shown that all of them are in
    sight; `actor` is the person, as the trail names them. Raises MovesRefused for those that may not move, Refused for
    what holds of all, and then nothing is changed.
    """
    subnet = target.subnet
    for partition in (*(source for _, source in moves), target):
        _refuse_shared(seat, partition)
    refuse_closed(subnet)
    turns.hold(tenant=seat.tenant, subnet=subnet)
    with transaction.atomic():
        try:
            outcomes = partitions.stage_moves(
                moves=moves, target=target, actor=actor or seat.person, reason=reason, for_tenant=seat.tenant
            )
        except MoveRefused as refused:  # of all of them
            raise MovesRefused({0: _sentence(seat, moves[0][0], refused.rule)}) from refused
        except (PartitionsError, SubnetError) as error:
            raise Refused(f"{moves[0][0]}: {OTHERWISE} {gettext('Nothing was changed.')}") from error
        refusals = {place: _sentence(seat, one.server, one.rule) for place, one in enumerate(outcomes) if one.refusal}
        if refusals:
            raise MovesRefused(refusals)
    return turns.ask(tenant=seat.tenant, subnet=subnet, person=seat.person)


def _refuse_shared(seat: Seat, partition: Partition) -> None:
    if partition.tenant_id != seat.tenant.pk:
        raise Refused(
            gettext(
                "%(partition)s is your provider's, and shared. Servers stay in it when they move between your "
                "partitions; to join or leave it, make a request. Nothing was changed."
            )
            % {"partition": partition.name}
        )


@transaction.atomic
def take_back(*, seat: Seat, server: Server, actor: Doer | None = None) -> int:
    """Discard what the person has staged for `server` for their tenant; give how many changes. Raises Refused."""
    turns.hold(tenant=seat.tenant, subnet=server.subnet)
    rows = [
        row
        for row in StagedChange.objects.of_server(server).filter(for_tenant=seat.tenant)
        if row.by_id == seat.person.pk
    ]
    if not rows:
        raise Refused(nothing_staged(server))
    _say_politely(seat, server, lambda: partitions.discard(changes=rows, actor=actor or seat.person))
    return len(rows)


def nothing_staged(server: Server) -> str:
    """Why there is nothing of a server to take back."""
    return gettext("You have staged nothing for %(server)s. Who staged it takes it back.") % {"server": server}


@transaction.atomic
def try_again(*, seat: Seat, subnet: Subnet) -> Turn | None:
    """Have what is staged go out by itself once more; give the turn, None when nothing is staged. Raises Refused."""
    refuse_closed(subnet)
    turns.hold(tenant=seat.tenant, subnet=subnet)
    if not turns.staged_by(seat.tenant, subnet):
        return None
    turn = turns.ask(tenant=seat.tenant, subnet=subnet, person=seat.person)
    if turn is None:
        raise Refused(gettext("Your moves wait for an operator of your provider. Ask them with a request."))
    return turn


def refuse_closed(subnet: Subnet) -> None:
    """Raise Refused while the provider lets nobody change anything there. Its reason may name others."""
    fresh = Subnet.objects.get(pk=subnet.pk)
    if fresh.frozen_at is not None:
        raise Refused(
            gettext(
                "Your provider has stopped all changes of the fabric since %(since)s UTC. Nothing was changed. Try "
                "again when that is over; your provider knows when."
            )
            % {"since": f"{fresh.frozen_at:%Y-%m-%d %H:%M}"}
        )
    if fresh.mode != Subnet.Mode.WRITE:
        raise Refused(
            gettext(
                "Your provider only looks at this fabric for now and changes nothing on it. Nothing was changed. Ask "
                "your provider when it will."
            )
        )


def _say_politely(seat: Seat, server: Server, act: Callable[[], object]) -> None:
    try:
        with transaction.atomic():
            act()
    except MoveRefused as refused:
        raise Refused(_sentence(seat, server, refused.rule)) from refused
    except (PartitionsError, SubnetError) as error:
        raise Refused(f"{server}: {OTHERWISE} {gettext('Nothing was changed.')}") from error


def _sentence(seat: Seat, server: Server, rule: str) -> str:
    said = (
        str(_pending(seat, server)) if rule in ("another_person", "not_yours") else str(SENTENCES.get(rule, OTHERWISE))
    )
    return f"{server}: {said} {gettext('Nothing was changed.')}"


def _pending(seat: Seat, server: Server) -> str:
    """Whose change waits: a colleague is named, everybody else is the provider."""
    others = StagedChange.objects.of_server(server).exclude(by=seat.person).select_related("by").order_by("-at")
    newest = others.first()
    if newest is not None and newest.for_tenant_id == seat.tenant.pk:
        return gettext("%(who)s has staged it already. Ask %(who)s to take that back.") % {"who": newest.by}
    return gettext("Your provider has a change of it pending. Wait until that is done, or ask them with a request.")
