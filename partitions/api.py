"""The API's partitions, memberships and staged changes. Staging reaches no machine: a rollout does (api_plans.py)."""

import re
from collections.abc import Iterable
from typing import Any, Final

from django.db import transaction
from django.db.models import F, QuerySet, Value
from django.db.models.functions import Coalesce, NullIf
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
    StageBody,
    StagedAll,
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
from people.permissions import is_operator, is_somebodys, may_review
from people.scopes import register
from subnet.errors import InvalidName, InvalidPKey, SubnetError
from subnet.pkey import Membership as PortMembership
from subnet.pkey import PKey

READ: Final = "partitions:read"
WRITE: Final = "partitions:write"
register(READ, "see partitions, who is in them, and what is staged", is_somebodys)
register(WRITE, "stage changes, and create, rename and retire partitions", is_operator)

problems.offer("refused", 409, "That may not be", "Change what “detail” names.")
problems.offer("stale_plan", 409, "The plan is not what you looked at any more", "Get the plan again and look at it.")
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
        refuses=("refused",), once=True,
    )  # fmt: skip
    @once
    def create(self, request: Request) -> Response:
        """Create one; no port is in it before one is moved there."""
        asked = PartitionBody.read(request)
        tenant = None
        if asked["tenant"] is not None:
            tenant = named(Tenant.objects.visible_to(request.user), asked["tenant"], where="tenant")
        pkey = _pkey(asked["pkey"]) if "pkey" in asked else None
        made = operations.create_partition(
            subnet=subnet_of(request, asked.get("subnet")), tenant=tenant, name=asked["name"], pkey=pkey,
            actor=self.actor,
        )  # fmt: skip
        return self.told(self._one(made), status=201, headers={"Location": f"/api/v1/partitions/{made.public_id}"})

    @operation(summary="Rename a partition", shows=PartitionShown, takes=RenameBody, refuses=("refused",), edits=True)
    @transaction.atomic
    def partial_update(self, request: Request, id: str) -> Response:
        """Call it otherwise. The name reaches the managers' files with the next rollout."""
        asked = RenameBody.read(request)
        partition = self._held(request, id)
        renamed = operations.rename_partition(
            partition=partition, name=asked["name"], actor=self.actor, reason=asked["reason"]
        )
        return self.told(self._one(renamed))

    @operation(summary="Retire an empty partition", shows=PartitionShown, refuses=("refused",), edits=True)
    @transaction.atomic
    def destroy(self, request: Request, id: str) -> Response:
        """Retire it: its row stays, and its P_Key cools down. One with members is refused: move them first."""
        partition = self._held(request, id)
        if Membership.objects.filter(partition=partition).exists():
            raise Problem(
                "refused", f"There are ports in {partition.called}. Move them elsewhere and roll that out first."
            )
        retired = operations.retire_partition(partition=partition, actor=self.actor)
        return self.told(self._one(retired.partition))

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

    @operation(summary="Stage that servers move", shows=StagedAll, takes=StageBody, refuses=("refused",), once=True)
    @once
    def create(self, request: Request) -> Response:
        """Stage all of it or nothing."""
        asked = StageBody.read(request)
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
        return Response({"items": self._shown(self._staged(request, found.values()))})

    @operation(summary="Discard staged changes", shows=Discarded, takes=DiscardBody, refuses=("refused",), once=True)
    @once
    def discard(self, request: Request) -> Response:
        """Take back what is staged: of servers, or all one's own."""
        asked = DiscardBody.read(request).get("servers")
        rows = _of_visible(StagedChange.objects.visible_to(request.user), request)
        if asked is None:
            rows = rows.filter(by=self.person)
        else:
            known = set(
                Server.objects.visible_to(request.user).filter(public_id__in=asked).values_list("public_id", flat=True)
            )
            for place, key in enumerate(asked):
                if key not in known:
                    raise named_wrong(f"servers[{place}]", "There is no such server.")
            rows = rows.filter(port__hca__server__public_id__in=asked)
        count = operations.discard(changes=tuple(rows), actor=self.actor)
        return Response({"discarded": count})

    def _partition(self, public_id: str | None, where: str) -> Partition | None:
        if public_id is None:
            return None
        return named(partitions_of(self.request), public_id, where=where)

    def _staged(self, request: Request, servers: Iterable[Server]) -> Any:
        rows = _of_visible(StagedChange.objects.visible_to(request.user).select_related("by"), request)
        return rows.filter(port__hca__server__in=list(servers)).order_by("port__guid", "partition__public_id")

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
