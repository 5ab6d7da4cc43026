"""The API's subnets, looks, revisions, rollouts and drift: the provider's own, so that others are told of nothing here.

Whoever starts a rollout needs a plan, which is a room further up: `partitions/api.py` adds that to `Rollouts`.
"""

from collections.abc import Iterable
from typing import Any, Final

import django_filters as filters
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from deploy import errors, operations
from deploy.api_shown import (
    DriftShown,
    LookShown,
    RevisionShown,
    RevisionWhole,
    RolloutShown,
    RolloutWhole,
    SubnetShown,
)
from deploy.drift_models import Drift
from deploy.models import Observation, Revision, Rollout
from inventory.models import Subnet
from people.api import problems
from people.api.bodies import LONGEST_REASON, Body, Reason, StrictText
from people.api.once import once
from people.api.problems import LONGEST
from people.api.resources import Resource, one_of
from people.api.schema import operation
from people.permissions import is_operator, may_review
from people.scopes import register

READ: Final = "deploy:read"
WRITE: Final = "deploy:write"
register(READ, "see revisions, rollouts and drift", may_review)
register(WRITE, "start, confirm, cancel, accept and release rollouts, and ask for looks at the fabric", is_operator)

REFUSALS: Final = (
    (
        "stale",
        "What it stands on is not current any more",
        "Get the plan again; ask for a new look if it is not fresh.",
    ),
    ("nothing_to_do", "There is nothing to roll out", "Stage a change first."),
    ("subnet_busy", "Another rollout holds the subnet", "Wait until it has ended, then get the plan again."),
    ("subnet_closed", "Nothing may be rolled out there now", "An operator mends what “detail” names."),
    ("refused_by_rule", "A rule of the fabric refuses it", "Change what “detail” names."),
    ("too_late", "It is past the point where that can be done", "Get the rollout and see what it became."),
    ("reason_needed", "It needs a reason", "Send “reason”."),
)
for _code, _title, _mend in REFUSALS:
    problems.offer(_code, 409, _title, _mend)
problems.translate(
    {
        errors.DeployError: "conflict",
        errors.StaleRevision: "stale",
        errors.NothingToDo: "nothing_to_do",
        errors.SubnetBusy: "subnet_busy",
        errors.SubnetFrozen: "subnet_closed",
        errors.FabricAlarm: "subnet_closed",
        errors.NotWritable: "subnet_closed",
        errors.TooLate: "too_late",
        errors.ReasonNeeded: "reason_needed",
        errors.PolicyRefused: "refused_by_rule",
        errors.StandbyNeeded: "refused_by_rule",
        errors.NotReversible: "refused_by_rule",
        errors.DeadlineOutOfRange: "invalid",
    }
)


class RolloutFilters(filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    """Which rollouts."""

    subnet = filters.CharFilter(field_name="subnet__public_id")
    state = filters.ChoiceFilter(choices=Rollout.State.choices)
    revision = filters.CharFilter(field_name="revision__public_id")


class RevisionFilters(filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    """Which revisions."""

    subnet = filters.CharFilter(field_name="subnet__public_id")
    table_digest = filters.CharFilter(lookup_expr="exact")


class DriftFilters(filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    """Which differences."""

    subnet = filters.CharFilter(field_name="subnet__public_id")
    kind = filters.ChoiceFilter(choices=Drift.Kind.choices)
    is_open = filters.BooleanFilter(field_name="closed_at", lookup_expr="isnull")


class WhyBody(Body):
    """Why."""

    reason = Reason()


class NothingBody(Body):
    """An empty object."""


class ReasonBody(Body):
    """What was found, and why it may be so."""

    reason = StrictText(max_length=LONGEST_REASON)


class AcceptBody(ReasonBody):
    """What may stand, and why."""

    seen = StrictText(max_length=64, help_text="“acceptable.seen” of the rollout as you looked at it.")


class LookBody(Body):
    """Which subnet to look at."""

    subnet = StrictText(required=False, max_length=20, help_text="May be left out where there is only one.")


def reviewed[Row: Any](rows: "QuerySet[Row]", request: Request) -> "QuerySet[Row]":
    """All rows for operators and auditors, none for others: these are the provider's own."""
    return rows if may_review(request.user) else rows.none()


def subnet_of(request: Request, public_id: str | None) -> Subnet:
    """The subnet that is named, or the only one. Raises Problem for one that is not there, or when one has to be named;
    Http404 for those who see none at all.
    """
    rows = reviewed(Subnet.objects.all(), request)
    if public_id and may_review(request.user):
        named = rows.filter(public_id=public_id[:LONGEST]).first()
        if named is None:
            sentence = "There is no subnet of this id."
            raise problems.Problem("invalid", f"subnet: {sentence}", where="subnet", errors=(("subnet", sentence),))
        return named
    found = list(rows.order_by("pk")[:2])
    if not found:
        raise Http404
    if len(found) > 1:
        raise problems.Problem("invalid", "There are several subnets. Name one.", where="subnet")
    return found[0]


class Subnets(Resource):
    """Subnets."""

    read_scope = READ

    @operation(summary="List subnets and how they stand", shows=SubnetShown, lists=True)
    def list(self, request: Request) -> Response:
        """A page of subnets by name."""
        return self.paged(self._rows(request), lambda rows: SubnetShown(rows, many=True).data, by="name")

    @operation(summary="One subnet", shows=SubnetShown)
    def retrieve(self, request: Request, id: str) -> Response:
        """One subnet."""
        return self.told(SubnetShown(one_of(self._rows(request), public_id=id)).data)

    def _rows(self, request: Request) -> Any:
        drift = Drift.objects.filter(subnet=OuterRef("pk"), closed_at=None, opened_at__isnull=False).order_by()
        counted = drift.values("subnet").annotate(count=Count("pk")).values("count")
        rows = Subnet.objects.select_related("fence__current", "fence__rollout")
        return reviewed(rows.annotate(open_drift=Coalesce(Subquery(counted), 0)), request)


class Looks(Resource):
    """Looks at the managers and the fabric."""

    read_scope = READ
    write_scope = WRITE

    @operation(summary="Ask for a look at the fabric", shows=LookShown, takes=LookBody, status=202, once=True)
    @once
    def create(self, request: Request) -> Response:
        """Ask for one; while one is pending it is that one."""
        subnet = subnet_of(request, LookBody.read(request).get("subnet"))
        look = operations.request_observation(subnet=subnet, why="plan", actor=self.actor)
        return self.told(LookShown(look).data, status=202, headers={"Location": f"/api/v1/looks/{look.public_id}"})

    @operation(summary="One look", shows=LookShown)
    def retrieve(self, request: Request, id: str) -> Response:
        """One look: whether it is done."""
        rows = reviewed(Observation.objects.select_related("subnet"), request)
        return self.told(LookShown(one_of(rows, public_id=id)).data)


class Revisions(Resource):
    """Revisions."""

    read_scope = READ
    filterset_class = RevisionFilters

    @operation(summary="List revisions, newest first", shows=RevisionShown, lists=True, filters=RevisionFilters)
    def list(self, request: Request) -> Response:
        """A page of revisions."""
        return self.paged(
            self._rows(request).defer("data", "table"),
            lambda rows: RevisionShown(rows, many=True).data,
            by="created_at",
            newest_first=True,
        )

    @operation(summary="One revision with its file", shows=RevisionWhole)
    def retrieve(self, request: Request, id: str) -> Response:
        """One revision."""
        return self.told(RevisionWhole(one_of(self._rows(request), public_id=id)).data)

    def _rows(self, request: Request) -> Any:
        return reviewed(Revision.objects.select_related("subnet", "parent"), request)


class Rollouts(Resource):
    """Rollouts."""

    read_scope = READ
    write_scope = WRITE
    filterset_class = RolloutFilters

    @operation(summary="List rollouts, newest first", shows=RolloutShown, lists=True, filters=RolloutFilters)
    def list(self, request: Request) -> Response:
        """A page of rollouts."""
        write = self._shown
        return self.paged(self._rows(request), write, by="requested_at", newest_first=True)

    @operation(summary="One rollout with its story and evidence", shows=RolloutWhole)
    def retrieve(self, request: Request, id: str) -> Response:
        """One rollout."""
        return self.told(RolloutWhole(one_of(self._rows(request), public_id=id)).data)

    @operation(
        summary="Cancel a rollout that has placed nothing", shows=RolloutWhole, takes=WhyBody, refuses=("too_late",),
        once=True,
    )  # fmt: skip
    @once
    def cancel(self, request: Request, id: str) -> Response:
        """End a rollout that is queued or staging."""
        return self._act(request, id, operations.cancel)

    @operation(
        summary="Confirm a rollout that is taken back otherwise", shows=RolloutWhole, takes=WhyBody,
        refuses=("too_late",), once=True,
    )  # fmt: skip
    @once
    def confirm(self, request: Request, id: str) -> Response:
        """Keep what it changed."""
        return self._act(request, id, operations.confirm)

    @operation(
        summary="Accept what moved beside an unproven rollout", shows=RolloutWhole, takes=AcceptBody,
        refuses=("too_late", "reason_needed"), once=True,
    )  # fmt: skip
    @once
    def accept(self, request: Request, id: str) -> Response:
        """Let what “acceptable” names stand, if it still is what you saw; it is looked at again at once."""
        return self._act(request, id, operations.accept, AcceptBody)

    @operation(
        summary="Look at an unproven or degraded rollout now", shows=RolloutWhole, takes=NothingBody,
        refuses=("too_late",), once=True,
    )  # fmt: skip
    @once
    def check(self, request: Request, id: str) -> Response:
        """Have it looked at now instead of at its next turn."""
        return self._act(request, id, operations.check_again, NothingBody)

    @operation(
        summary="Let go of the subnet after a stuck rollout", shows=RolloutWhole, takes=ReasonBody,
        refuses=("too_late", "reason_needed"), once=True,
    )  # fmt: skip
    @once
    def release(self, request: Request, id: str) -> Response:
        """Say that a person has done what a STUCK rollout asked for. Nothing is placed."""
        return self._act(request, id, operations.release_stuck, ReasonBody)

    def _act(self, request: Request, id: str, act: Any, takes: type[Body] = WhyBody) -> Response:
        said = takes.read(request)
        rollout = act(rollout=one_of(self._rows(request), public_id=id), actor=self.actor, **said)
        return self.told(RolloutWhole(rollout).data)

    def _rows(self, request: Request) -> Any:
        return reviewed(Rollout.objects.select_related("subnet", "revision"), request)

    def _shown(self, rows: Iterable[Rollout]) -> Any:
        return RolloutShown(rows, many=True).data


class Drifts(Resource):
    """Drift."""

    read_scope = READ
    filterset_class = DriftFilters

    @operation(summary="List drift, newest first", shows=DriftShown, lists=True, filters=DriftFilters)
    def list(self, request: Request) -> Response:
        """A page of differences that were told."""
        return self.paged(
            self._rows(request),
            lambda rows: DriftShown(rows, many=True).data,
            by="first_seen_at",
            newest_first=True,
        )

    @operation(summary="One difference", shows=DriftShown)
    def retrieve(self, request: Request, id: str) -> Response:
        """One difference."""
        return self.told(DriftShown(one_of(self._rows(request), public_id=id)).data)

    def _rows(self, request: Request) -> Any:
        return reviewed(Drift.objects.filter(~Q(opened_at=None)).select_related("subnet"), request)
