"""The API's probes: what is probed, its runs, and the checks that tenants cannot reach each other. The provider's."""

from typing import Any, Final

import django_filters as filters
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from people.api.resources import Resource, one_of
from people.api.schema import Shown, operation
from people.permissions import may_review
from people.scopes import register
from probes.models import IsolationCheck, ProbeRun, ProbeScope

READ: Final = "probes:read"
register(READ, "see probes and checks of isolation", may_review)


class ScopeShown(Shown):
    """A partition or a probe set whose pairs are probed."""

    id = serializers.CharField(source="public_id")
    kind = serializers.CharField(source="kind_word")
    name = serializers.SerializerMethodField()
    partition = serializers.CharField(source="partition.public_id", default=None, allow_null=True)
    is_enabled = serializers.BooleanField()
    profiles = serializers.ListField(child=serializers.CharField())
    interval_s = serializers.IntegerField()
    mode = serializers.CharField()

    def get_name(self, scope: ProbeScope) -> str:
        """What it is called."""
        return str(scope)


class RunShown(Shown):
    """One transfer. Only one that is DONE has numbers; every other one has a reason."""

    id = serializers.CharField(source="public_id")
    scope = serializers.CharField(source="scope.public_id")
    sender = serializers.CharField(source="sender.server.public_id")
    target = serializers.CharField(source="target.server.public_id")
    profile = serializers.CharField()
    state = serializers.ChoiceField(ProbeRun.State.choices)
    outcome = serializers.CharField()
    verdict = serializers.CharField()
    reason = serializers.CharField()
    gbps = serializers.FloatField(allow_null=True)
    pct_line = serializers.FloatField(allow_null=True)
    p50_ns = serializers.FloatField(allow_null=True)
    p99_ns = serializers.FloatField(allow_null=True)
    samples = serializers.IntegerField()
    is_software = serializers.BooleanField(help_text="Soft-RoCE: it shows the path, not the speed.")
    due_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class CheckShown(Shown):
    """One thing that must fail between servers of two tenants, and the verdict on it."""

    id = serializers.CharField(source="public_id")
    plane = serializers.ChoiceField(IsolationCheck.Plane.choices)
    sender = serializers.CharField(source="sender.public_id")
    target = serializers.CharField(source="target.public_id")
    state = serializers.ChoiceField(IsolationCheck.State.choices)
    verdict = serializers.CharField(help_text="ISOLATED, LEAK or INCONCLUSIVE; empty until it is done.")
    sentence = serializers.CharField()
    asked_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class RunFilters(filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    """Which runs."""

    scope = filters.CharFilter(field_name="scope__public_id")
    state = filters.ChoiceFilter(choices=ProbeRun.State.choices)
    profile = filters.CharFilter(lookup_expr="exact")


class CheckFilters(filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    """Which checks."""

    verdict = filters.CharFilter(lookup_expr="exact")
    plane = filters.ChoiceFilter(choices=IsolationCheck.Plane.choices)


class ProbeScopes(Resource):
    """What is probed."""

    read_scope = READ

    @operation(summary="List what is probed", shows=ScopeShown, lists=True)
    def list(self, request: Request) -> Response:
        """A page of scopes."""
        return self.paged(self._rows(request), lambda rows: ScopeShown(rows, many=True).data, by="public_id")

    @operation(summary="One scope of probes", shows=ScopeShown)
    def retrieve(self, request: Request, id: str) -> Response:
        """One scope."""
        return self.told(ScopeShown(one_of(self._rows(request), public_id=id)).data)

    def _rows(self, request: Request) -> Any:
        return ProbeScope.objects.visible_to(request.user).named()


class ProbeRuns(Resource):
    """Transfers."""

    read_scope = READ
    filterset_class = RunFilters

    @operation(summary="List runs, newest first", shows=RunShown, lists=True, filters=RunFilters)
    def list(self, request: Request) -> Response:
        """A page of runs."""
        write = lambda rows: RunShown(rows, many=True).data  # noqa: E731
        return self.paged(self._rows(request), write, by="due_at", newest_first=True)

    @operation(summary="One run", shows=RunShown)
    def retrieve(self, request: Request, id: str) -> Response:
        """One run."""
        return self.told(RunShown(one_of(self._rows(request), public_id=id)).data)

    def _rows(self, request: Request) -> Any:
        return ProbeRun.objects.visible_to(request.user).whole()


class IsolationChecks(Resource):
    """Checks of isolation."""

    read_scope = READ
    filterset_class = CheckFilters

    @operation(summary="List checks of isolation, newest first", shows=CheckShown, lists=True, filters=CheckFilters)
    def list(self, request: Request) -> Response:
        """A page of checks."""
        write = lambda rows: CheckShown(rows, many=True).data  # noqa: E731
        return self.paged(self._rows(request), write, by="asked_at", newest_first=True)

    @operation(summary="One check of isolation", shows=CheckShown)
    def retrieve(self, request: Request, id: str) -> Response:
        """One check."""
        return self.told(CheckShown(one_of(self._rows(request), public_id=id)).data)

    def _rows(self, request: Request) -> Any:
        return IsolationCheck.objects.visible_to(request.user).whole()
