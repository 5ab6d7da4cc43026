"""What a tenant's people change by the API: their partitions, and where their servers are; and the turns that come of
it. The rules are those of the portal's pages (`own_partitions.py`, `moves.py`). Operators' programs do what they do on
the board.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Q, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from inventory.models import Server
from partitions.api import READ, WRITE, Partitions, StagedChanges, named, named_wrong
from partitions.api_shown import StageBody
from partitions.models import Partition, StagedChange
from people.api.once import once
from people.api.problems import Problem
from people.api.resources import Resource, one_of
from people.api.schema import operation
from people.models import TenantRole
from people.permissions import is_operator
from portal import moves, own_partitions, sight
from portal.api_seats import acting_seat
from portal.api_turns import AgainBody, StagedAll, TurnFilters, TurnShown
from portal.door import Seat
from portal.errors import MovesRefused
from portal.models import Turn


class PartitionsOfAll(Partitions):
    """Partitions, as operators change them and as their tenants do."""

    def make(self, request: Request, asked: dict[str, Any]) -> Partition:
        """Create one; for a tenant under its quota, with a P_Key that is drawn."""
        if is_operator(self.person):
            return super().make(request, asked)
        seat = acting_seat(self.person, asked["tenant"])
        for name in ("pkey", "subnet"):
            if name in asked:
                raise named_wrong(name, "That is your provider's to say. Leave it out.")
        subnet = sight.the_subnet(seat)
        if subnet is None:
            raise Problem("refused", "Your provider has no fabric here yet.")
        return own_partitions.create(seat=seat, subnet=subnet, title=asked["name"], actor=self.actor)

    def rename(self, partition: Partition, asked: dict[str, Any]) -> Partition:
        """Call it otherwise; a tenant gives it another title."""
        if is_operator(self.person):
            return super().rename(partition, asked)
        return own_partitions.rename(
            seat=_seat_for(self, partition), partition=partition, title=asked["name"], actor=self.actor,
            reason=asked["reason"],
        )  # fmt: skip

    def retire(self, partition: Partition) -> Partition:
        """Retire it, if it is empty."""
        if is_operator(self.person):
            return super().retire(partition)
        return own_partitions.retire(seat=_seat_for(self, partition), partition=partition, actor=self.actor)


class StagedChangesOfAll(StagedChanges):
    """Staged changes: those of operators wait for a plan, those of tenants go out as the tenant's policy says."""

    @operation(
        summary="Stage that servers move", shows=StagedAll, takes=StageBody, refuses=("refused",), once=True,
        accepts=True,
    )  # fmt: skip
    @once
    def create(self, request: Request) -> Response:
        """Stage all of it or nothing. Where it goes out by itself the answer is 202, with the turn to ask after."""
        asked = StageBody.read(request)
        turn = None
        if is_operator(self.person):
            servers = self.stage(request, asked)
        else:
            servers, turn = self._move(asked)
        shown = {"items": self.staged_of(request, servers), "turn": None}
        if turn is None:
            return Response(shown)
        shown["turn"] = TurnShown(turn, context={"person": self.person}).data
        return Response(shown, status=202, headers={"Location": f"/api/v1/turns/{turn.public_id}"})

    def take_back(self, request: Request, servers: Sequence[str] | None) -> int:
        """Take back what the person staged of these servers, or all of it."""
        if is_operator(self.person):
            return super().take_back(request, servers)
        rows = StagedChange.objects.visible_to(self.person).select_related("for_tenant", "port__hca__server")
        mine = Q(by=self.person) if servers is None else Q(port__hca__server__public_id__in=servers)
        found = {
            (row.for_tenant.public_id, row.port.hca.server)
            for row in rows.filter(mine)
            if row.for_tenant is not None and row.port.hca is not None
        }
        known = {server.public_id for _, server in found}
        for place, key in enumerate(servers or ()):
            if key not in known:
                server = Server.objects.visible_to(self.person).get(public_id=key)
                raise Problem("refused", moves.nothing_staged(server), where=f"servers[{place}]")
        return sum(
            moves.take_back(seat=acting_seat(self.person, tenant), server=server, actor=self.actor)
            for tenant, server in sorted(found, key=lambda one: (one[0], one[1].pk))
        )

    def _move(self, asked: dict[str, Any]) -> tuple[Sequence[Server], Turn | None]:
        for name, plain in (("keep", False), ("membership", "full")):
            if asked.get(name, plain) != plain:
                raise named_wrong(name, "Servers of a tenant are full members of one of its partitions. Leave it out.")
        if asked["target"] is None:
            raise named_wrong("target", "Name one of your partitions. To return servers, make a request.")
        target = self._named(asked["target"], "target")
        seat = _seat_for(self, target)
        own = {row.public_id: row for row in sight.own_servers(seat)}
        wanted: list[tuple[Server, Partition]] = []
        seen: set[str] = set()
        for place, move in enumerate(asked["moves"]):
            server = own.get(move["server"])
            if server is None or move["server"] in seen:
                sentence = "There is no such server." if server is None else "It stands there twice."
                raise named_wrong(f"moves[{place}].server", sentence)
            seen.add(move["server"])
            where = f"moves[{place}].source"
            if move["source"] is None:
                raise named_wrong(where, "Name which of your partitions it leaves.")
            source = self._named(move["source"], where)
            if source.tenant_id not in (None, seat.tenant.pk):
                raise named_wrong(where, "It is of another tenant of yours. Servers move between partitions of one.")
            wanted.append((server, source))
        try:
            turn = moves.move_all(seat=seat, moves=wanted, target=target, actor=self.actor, reason=asked["reason"])
        except MovesRefused as refused:
            errors = tuple((f"moves[{place}]", sentence) for place, sentence in refused.sentences.items())
            raise Problem("refused", errors[0][1], where=errors[0][0], errors=errors) from refused
        return [server for server, _ in wanted], turn

    def _named(self, public_id: str, where: str) -> Partition:
        rows = Partition.objects.visible_to(self.person).select_related("tenant", "subnet")
        return named(rows, public_id, where=where)


class Turns(Resource):
    """Turns: a tenant's moves on their way out by themselves."""

    read_scope = READ
    write_scope = WRITE
    filterset_class = TurnFilters

    @operation(summary="List turns, newest first", shows=TurnShown, lists=True, filters=TurnFilters)
    def list(self, request: Request) -> Response:
        """A page of turns."""
        return self.paged(self._rows(request), self._lines, by="asked_at", newest_first=True)

    @operation(summary="One turn", shows=TurnShown)
    def retrieve(self, request: Request, id: str) -> Response:
        """One turn: what it waits for, or how it ended."""
        return self.told(self._one(one_of(self._rows(request), public_id=id)))

    @operation(
        summary="Have what is staged go out by itself once more", shows=TurnShown, takes=AgainBody, status=202,
        refuses=("refused", "nothing_to_do"), once=True,
    )  # fmt: skip
    @once
    def create(self, request: Request) -> Response:
        """Try again, for instance after a turn that was not made. While a turn is open it is that one."""
        seat = acting_seat(self.person, AgainBody.read(request)["tenant"])
        subnet = sight.the_subnet(seat)
        turn = None if subnet is None else moves.try_again(seat=seat, subnet=subnet)
        if turn is None:
            raise Problem("nothing_to_do", "Nothing is staged.", mend="Stage a move first.")
        return self.told(self._one(turn), status=202, headers={"Location": f"/api/v1/turns/{turn.public_id}"})

    def _rows(self, request: Request) -> QuerySet[Turn]:
        return Turn.objects.visible_to(request.user).select_related("tenant", "subnet", "asked_by", "rollout")

    def _one(self, row: Turn) -> Any:
        return TurnShown(row, context={"person": self.person}).data

    def _lines(self, rows: Iterable[Turn]) -> Any:
        return TurnShown(rows, many=True, context={"person": self.person}).data


def _seat_for(resource: Resource, partition: Partition) -> Seat:
    """The seat at the partition's tenant; for a shared one at any for which the person acts, to be refused there."""
    if partition.tenant is not None:
        return acting_seat(resource.person, partition.tenant.public_id)
    acting = (TenantRole.Role.MEMBER, TenantRole.Role.ADMIN)
    role = TenantRole.objects.of_person(resource.person).filter(role__in=acting).select_related("tenant").first()
    assert role is not None  # noqa: S101  the scope is for these alone
    return acting_seat(resource.person, role.tenant.public_id)
