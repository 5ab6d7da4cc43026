"""The API's partitions, memberships and staged changes. Staging reaches no machine: a rollout does (api_plans.py).

What is written here is what operators do. A tenant's people do less, with other sentences: `portal/api_moves.py`
derives from these resources and says what.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from django.db import transaction
from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Coalesce, NullIf
from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from deploy.api import subnet_of
from inventory.models import Server, Subnet
from partitions import errors, operations
from partitions.api_shown import (
    DiscardBody,
    Discarded,
    MembershipFilters,
    MembershipShown,
    PartitionBody,
    PartitionFilters,
    PartitionShown,
    RenameBody,
    StagedShown,
)
from partitions.models import Membership, Partition, StagedChange
from people.api import problems
from people.api.matching import require_match
from people.api.once import once
from people.api.problems import Problem
from people.api.resources import Resource, one_of
from people.api.schema import operation
from people.models import Tenant
from people.permissions import acts_for_a_tenant, is_operator, is_somebodys, may_review
from people.scopes import register
from subnet.errors import InvalidName, InvalidPKey, SubnetError
from subnet.pkey import Membership as PortMembership
from subnet.pkey import PKey

READ: Final = "partitions:read"
WRITE: Final = "partitions:write"
register(READ, "see partitions, who is in them, and what is staged", is_somebodys)
register(WRITE, "stage changes, and create, rename and retire partitions", is_operator | acts_for_a_tenant)

problems.offer("refused", 409, "That may not be", "Change what “detail” names.")
problems.offer("stale_plan", 409, "The plan is not what you looked at any more", "Get the plan again and look at it.")
problems.offer("over_quota", 409, "It would be more than the tenant may have", "Ask for less, or have it raised.")
problems.offer("no_revision", 409, "There is nothing to plan from", "An operator records the first revision.")
problems.translate(
    {
        errors.PartitionsError: "refused",
        errors.StalePlan: "stale_plan",
        errors.NoRevision: "no_revision",
        SubnetError: "refused",
        InvalidName: "invalid",
        InvalidPKey: "invalid",
    }
)


def partitions_of(request: Request) -> QuerySet[Partition]:
    """The partitions that whoever asks may see, each with `shown_name`: its name as they may know it."""
    rows = Partition.objects.visible_to(request.user).select_related("tenant", "subnet")
    called = F("name") if may_review(request.user) else Coalesce(NullIf("title", Value("")), "name")
    return rows.annotate(shown_name=called)


def named[Row: Any](rows: "QuerySet[Row]", public_id: str, *, where: str) -> Row:
    """The one that a body names. Raises Problem for what its reader may not see, as for what there is not."""
    found = rows.filter(public_id=public_id).first()
    if found is None:
        raise named_wrong(where, "There is none of this id.")
    return found


def operators_only(person: Any) -> None:
    """Raise Http404 for everybody else: the scope lets a tenant's people in, to what `portal/api_moves.py` says."""
    if not is_operator(person):
        raise Http404


def named_wrong(where: str, sentence: str) -> Problem:
    """The refusal of a body that names what is not there."""
    return Problem("invalid", f"{where}: {sentence}", where=where, errors=((where, sentence),))


class Partitions(Resource):
    """Partitions."""

    read_scope = READ
    write_scope = WRITE
    filterset_class = PartitionFilters

    @operation(summary="List partitions", shows=PartitionShown, lists=True, filters=PartitionFilters)
    def list(self, request: Request) -> Response:
        """A page of partitions by name."""
        return self.paged(partitions_of(request), self._shown, by="shown_name")

    @operation(summary="One partition", shows=PartitionShown)
    def retrieve(self, request: Request, id: str) -> Response:
        """One partition."""
        return self.told(self._one(one_of(partitions_of(request), public_id=id)))

    @operation(
        summary="Create an empty partition", shows=PartitionShown, takes=PartitionBody, status=201,
        refuses=("refused", "over_quota"), once=True,
    )  # fmt: skip
    @once
    def create(self, request: Request) -> Response:
        """Create one; no port is in it before one is moved there."""
        made = self.make(request, PartitionBody.read(request))
        return self.told(self._one(made), status=201, headers={"Location": f"/api/v1/partitions/{made.public_id}"})

    @operation(summary="Rename a partition", shows=PartitionShown, takes=RenameBody, refuses=("refused",), edits=True)
    @transaction.atomic
    def partial_update(self, request: Request, id: str) -> Response:
        """Call it otherwise. The name reaches the managers' files with the next rollout."""
        one_of(partitions_of(request), public_id=id)  # before its body says anything to who does not see it
        asked = RenameBody.read(request)
        return self.told(self._one(self.rename(self._held(request, id), asked)))

    @operation(summary="Retire an empty partition", shows=PartitionShown, refuses=("refused",), edits=True)
    @transaction.atomic
    def destroy(self, request: Request, id: str) -> Response:
        """Retire it: its row stays, and its P_Key cools down. One with members is refused: move them first."""
        return self.told(self._one(self.retire(self._held(request, id))))

    def make(self, request: Request, asked: dict[str, Any]) -> Partition:
        """Create what an operator asks for."""
        operators_only(self.person)
        tenant = None
        if asked["tenant"] is not None:
            tenant = named(Tenant.objects.visible_to(request.user), asked["tenant"], where="tenant")
        pkey = _pkey(asked["pkey"]) if "pkey" in asked else None
        return operations.create_partition(
            subnet=subnet_of(request, asked.get("subnet")), tenant=tenant, name=asked["name"], pkey=pkey,
            actor=self.actor,
        )  # fmt: skip

    def rename(self, partition: Partition, asked: dict[str, Any]) -> Partition:
        """Call it as an operator asks."""
        operators_only(self.person)
        return operations.rename_partition(
            partition=partition, name=asked["name"], actor=self.actor, reason=asked["reason"]
        )

    def retire(self, partition: Partition) -> Partition:
        """Retire it for an operator, unless somebody is in it."""
        operators_only(self.person)
        if Membership.objects.filter(partition=partition).exists():
            raise Problem(
                "refused", f"There are ports in {partition.called}. Move them elsewhere and roll that out first."
            )
        return operations.retire_partition(partition=partition, actor=self.actor).partition

    def _held(self, request: Request, id: str) -> Partition:
        """The partition, held until the end of the transaction, and as the If-Match says."""
        found = one_of(partitions_of(request), public_id=id)
        Subnet.objects.select_for_update(no_key=True).get(pk=found.subnet_id)  # as the operations do
        fresh = one_of(partitions_of(request), public_id=id)
        require_match(request, self._one(fresh))
        return fresh

    def _one(self, partition: Partition) -> Any:
        return PartitionShown(partition, context={"person": self.person}).data

    def _shown(self, rows: Iterable[Partition]) -> Any:
        return PartitionShown(rows, many=True, context={"person": self.person}).data


class Memberships(Resource):
    """Memberships as they are. To change one, stage it."""

    read_scope = READ
    filterset_class = MembershipFilters

    @operation(summary="List memberships", shows=MembershipShown, lists=True, filters=MembershipFilters)
    def list(self, request: Request) -> Response:
        """A page of memberships by port."""
        rows = _of_visible(Membership.objects.visible_to(request.user), request)
        return self.paged(rows, self._shown, by="port__guid", tie="partition__public_id")

    def _shown(self, rows: Iterable[Membership]) -> Any:
        return MembershipShown(rows, many=True, context={"person": self.person}).data


class StagedChanges(Resource):
    """Staged changes: what is wanted next."""

    read_scope = READ
    write_scope = WRITE
    filterset_class = MembershipFilters

    @operation(summary="List staged changes", shows=StagedShown, lists=True, filters=MembershipFilters)
    def list(self, request: Request) -> Response:
        """A page of staged changes by port."""
        rows = _of_visible(StagedChange.objects.visible_to(request.user).select_related("by"), request)
        return self.paged(rows, self._shown, by="port__guid", tie="partition__public_id")

    @operation(summary="Discard staged changes", shows=Discarded, takes=DiscardBody, refuses=("refused",), once=True)
    @once
    def discard(self, request: Request) -> Response:
        """Take back what is staged: of servers, or all one's own."""
        asked = DiscardBody.read(request).get("servers")
        if asked is not None:
            seen = Server.objects.visible_to(request.user).filter(public_id__in=asked)
            known = set(seen.values_list("public_id", flat=True))
            for place, key in enumerate(asked):
                if key not in known:
                    raise named_wrong(f"servers[{place}]", "There is no such server.")
        return Response({"discarded": self.take_back(request, asked)})

    def stage(self, request: Request, asked: dict[str, Any]) -> Sequence[Server]:
        """Stage for an operator all of it or nothing; give the servers."""
        operators_only(self.person)
        target = self._partition(asked["target"], "target")
        visible = Server.objects.visible_to(request.user).select_related("subnet")
        found = {
            row.public_id: row for row in visible.filter(public_id__in=[move["server"] for move in asked["moves"]])
        }
        moves, places = [], {}
        for place, move in enumerate(asked["moves"]):
            server = found.get(move["server"])
            if server is None or server.public_id in places:
                sentence = "There is no such server." if server is None else "It stands there twice."
                raise named_wrong(f"moves[{place}].server", sentence)
            places[server.public_id] = place
            moves.append((server, self._partition(move["source"], f"moves[{place}].source")))
        outcomes = operations.stage_moves(
            moves=moves, target=target, actor=self.actor, keep=asked["keep"], reason=asked["reason"],
            membership=PortMembership(asked["membership"]) if "membership" in asked else None,
        )  # fmt: skip
        refused = tuple((f"moves[{places[one.server.public_id]}]", one.refusal) for one in outcomes if one.refusal)
        if refused:  # with it goes what was staged of the others
            raise Problem("refused", refused[0][1], where=refused[0][0], errors=refused)
        return list(found.values())

    def take_back(self, request: Request, servers: Sequence[str] | None) -> int:
        """Take back for an operator what is staged of these servers, or all their own; give how many changes."""
        operators_only(self.person)
        rows = _of_visible(StagedChange.objects.visible_to(request.user), request)
        asked = Q(by=self.person) if servers is None else Q(port__hca__server__public_id__in=servers)
        return operations.discard(changes=tuple(rows.filter(asked)), actor=self.actor)

    def _partition(self, public_id: str | None, where: str) -> Partition | None:
        if public_id is None:
            return None
        return named(partitions_of(self.request), public_id, where=where)

    def staged_of(self, request: Request, servers: Iterable[Server]) -> Any:
        """What is staged for these servers, written down."""
        rows = _of_visible(StagedChange.objects.visible_to(request.user).select_related("by"), request)
        rows = rows.filter(port__hca__server__in=list(servers))
        return self._shown(rows.order_by("port__guid", "partition__public_id"))

    def _shown(self, rows: Iterable[StagedChange]) -> Any:
        return StagedShown(rows, many=True, context={"person": self.person}).data


def _of_visible[Row: Any](rows: "QuerySet[Row]", request: Request) -> "QuerySet[Row]":
    """Of rows about ports and partitions those whose partition may be seen too, with what their lines name."""
    seen = rows.filter(partition__in=Partition.objects.visible_to(request.user))
    return seen.select_related("partition", "port__hca__server")


def _pkey(text: str) -> PKey:
    """The P_Key that a body spells in hex. Raises Problem."""
    if not re.fullmatch("0x[0-9a-fA-F]{1,4}", text):
        raise named_wrong("pkey", "Write 0x and up to 4 hex digits, as in 0x2c41.")
    try:
        return PKey.for_partition(int(text[2:], 16))
    except InvalidPKey as error:
        raise named_wrong("pkey", str(error)) from error
