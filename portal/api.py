"""The API's requests: ask, comment and withdraw for a tenant's people; approve and decline for operators."""

from collections.abc import Iterable
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from inventory.models import Server
from partitions.api import named, named_wrong
from partitions.models import Partition
from people.api import problems
from people.api.matching import require_match
from people.api.once import once
from people.api.problems import Problem
from people.api.resources import Resource, one_of
from people.api.schema import operation
from people.permissions import acts_for_a_tenant, is_operator, is_somebodys
from people.scopes import register
from portal import asking, deciding, sight
from portal.api_seats import acting_seat
from portal.api_shown import (
    DECLINE,
    AskBody,
    CommentBody,
    DecideBody,
    OfferShown,
    RequestFilters,
    RequestShown,
    RequestWhole,
)
from portal.door import Seat
from portal.errors import OverQuota, PortalError, RequestMoved
from portal.models import StorageOffer, TenantRequest

Kind = TenantRequest.Kind

READ: Final = "requests:read"
WRITE: Final = "requests:write"
COMMENT: Final = "requests:comment"
DECIDE: Final = "requests:decide"


register(READ, "see requests of tenants, and what was answered", is_somebodys)
register(WRITE, "ask your provider for something, and withdraw that", acts_for_a_tenant)
register(COMMENT, "comment on requests", acts_for_a_tenant | is_operator)
register(DECIDE, "approve and decline requests of tenants", is_operator)

problems.translate({PortalError: "refused", RequestMoved: "conflict", OverQuota: "over_quota"})

# What each kind takes beside `why`, and what it cannot do without.
_TAKES: Final = {
    Kind.MORE_SERVERS: ({"count", "sort", "wanted_from", "partition"}, {"count"}),
    Kind.RETURN_SERVERS: ({"servers"}, {"servers"}),
    Kind.SHARED_STORAGE: ({"partition", "storage"}, {"partition", "storage"}),
}


class StorageOffers(Resource):
    """Storage of the provider's that tenants may ask to share."""

    read_scope = READ

    @operation(summary="List the storage that may be asked for", shows=OfferShown, lists=True)
    def list(self, request: Request) -> Response:
        """A page of offers by name."""
        rows = StorageOffer.objects.visible_to(request.user).select_related("partition")
        return self.paged(rows, self._lines, by="partition__name", tie="partition__public_id")

    def _lines(self, rows: Iterable[StorageOffer]) -> Any:
        return OfferShown(rows, many=True).data


class Requests(Resource):
    """Requests of tenants."""

    read_scope = READ
    write_scope = WRITE
    filterset_class = RequestFilters

    @property
    def required_scope(self) -> str:
        """Operators decide, both sides comment, a tenant's people do the rest."""
        of_actions = {"partial_update": DECIDE, "comment": COMMENT}
        return of_actions.get(str(getattr(self, "action", "")), super().required_scope)

    @operation(summary="List requests, newest first", shows=RequestShown, lists=True, filters=RequestFilters)
    def list(self, request: Request) -> Response:
        """A page of requests."""
        return self.paged(self._rows(request), self._lines, by="asked_at", newest_first=True)

    @operation(summary="One request with its comments", shows=RequestWhole)
    def retrieve(self, request: Request, id: str) -> Response:
        """One request."""
        return self.told(self._one(one_of(self._rows(request), public_id=id)))

    @operation(
        summary="Ask your provider for something", shows=RequestWhole, takes=AskBody, status=201,
        refuses=("refused", "over_quota"), once=True,
    )  # fmt: skip
    @once
    def create(self, request: Request) -> Response:
        """Make a request in the name of a tenant."""
        asked = AskBody.read(request)
        seat = acting_seat(self.person, asked["tenant"])
        kind = Kind(asked["kind"])
        takes, needs = _TAKES[kind]
        given = set(asked) - {"tenant", "kind", "why"}
        for name in sorted((given - takes) | (needs - given)):
            raise named_wrong(name, f"{kind} {'takes no such field' if name in given else 'needs it'}.")
        made = self._ask(seat, kind, asked)
        return self.told(self._one(made), status=201, headers={"Location": f"/api/v1/requests/{made.public_id}"})

    @operation(summary="Withdraw a request", shows=RequestWhole, refuses=("refused", "conflict"), edits=True)
    @transaction.atomic
    def destroy(self, request: Request, id: str) -> Response:
        """Take it back; its row stays."""
        held = self._held(request, id)
        done = asking.withdraw(seat=acting_seat(self.person, held.tenant.public_id), request=held, actor=self.actor)
        return self.told(self._one(done))

    @operation(
        summary="Approve or decline a request", shows=RequestWhole, takes=DecideBody,
        refuses=("refused", "conflict"), edits=True,
    )  # fmt: skip
    @transaction.atomic
    def partial_update(self, request: Request, id: str) -> Response:
        """An operator's answer; approving stages what was asked for."""
        asked = DecideBody.read(request)
        held = self._held(request, id)
        if asked["decision"] == DECLINE:
            return self.told(self._one(deciding.decline(request=held, actor=self.actor, answer=asked["answer"])))
        visible = Server.objects.visible_to(request.user)
        servers = [named(visible, key, where=f"servers[{at}]") for at, key in enumerate(asked["servers"])]
        if len(set(servers)) != len(servers):
            raise named_wrong("servers", "One stands there twice.")
        partition = None
        if "partition" in asked:
            theirs = Partition.objects.visible_to(request.user).filter(tenant=held.tenant)
            partition = named(theirs, asked["partition"], where="partition")
        done = deciding.approve(
            request=held, actor=self.actor, answer=asked["answer"], servers=servers, partition=partition
        )
        return self.told(self._one(done))

    @operation(
        summary="Comment on a request", shows=RequestWhole, takes=CommentBody, status=201, refuses=("refused",),
        once=True,
    )  # fmt: skip
    @once
    def comment(self, request: Request, id: str) -> Response:
        """Say something, for the tenant or for the provider."""
        found = one_of(self._rows(request), public_id=id)
        text = CommentBody.read(request)["text"]
        if is_operator(request.user):
            deciding.comment(request=found, actor=self.actor, text=text)
        else:
            asking.comment(
                seat=acting_seat(self.person, found.tenant.public_id), request=found, text=text, actor=self.actor
            )
        return self.told(self._one(found), status=201)

    def _ask(self, seat: Seat, kind: TenantRequest.Kind, asked: dict[str, Any]) -> TenantRequest:
        why, actor = asked["why"], self.actor
        if kind == Kind.RETURN_SERVERS:
            own = sight.own_servers(seat)
            servers = [named(own, key, where=f"servers[{at}]") for at, key in enumerate(asked["servers"])]
            if len(set(servers)) != len(servers):
                raise named_wrong("servers", "One stands there twice.")
            return asking.ask_to_return(seat=seat, servers=servers, why=why, actor=actor)
        partition = None
        if "partition" in asked:
            partition = named(sight.own_partitions(seat), asked["partition"], where="partition")
        if kind == Kind.SHARED_STORAGE:
            assert partition is not None  # noqa: S101  this kind needs it
            offered = StorageOffer.objects.visible_to(self.person).filter(partition__public_id=asked["storage"])
            offer = offered.select_related("partition").first()
            if offer is None:
                raise named_wrong("storage", "There is none of this id.")
            return asking.ask_for_storage(seat=seat, partition=partition, storage=offer.partition, why=why, actor=actor)
        subnet = partition.subnet if partition is not None else sight.the_subnet(seat)
        if subnet is None:
            raise Problem("refused", "Your provider has no fabric here yet.")
        return asking.ask_more_servers(
            seat=seat, subnet=subnet, count=asked["count"], why=why, sort=asked.get("sort", ""),
            wanted_from=asked.get("wanted_from"), partition=partition, actor=actor,
        )  # fmt: skip

    def _held(self, request: Request, id: str) -> TenantRequest:
        """The request, held until the end of the transaction, and as the If-Match says."""
        held = asking.hold(one_of(self._rows(request), public_id=id))
        require_match(request, self._one(held))
        return held

    def _rows(self, request: Request) -> QuerySet[TenantRequest]:
        return TenantRequest.objects.visible_to(request.user).whole()

    def _one(self, row: TenantRequest) -> Any:
        return RequestWhole(row, context={"person": self.person}).data

    def _lines(self, rows: Iterable[TenantRequest]) -> Any:
        return RequestShown(rows, many=True, context={"person": self.person}).data
