"""The API's tenants, to read: programs name theirs by its id. A tenant's people see their own, operators see all."""

from collections.abc import Iterable
from typing import Any

import django_filters as filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from partitions.api import READ
from people.api.resources import Resource, one_of
from people.api.schema import Shown, operation
from people.models import Tenant, TenantRole


class TenantShown(Shown):
    """A tenant, and what its people may do by themselves. Null is without a limit."""

    id = serializers.CharField(source="public_id")
    name = serializers.CharField()
    role = serializers.SerializerMethodField(help_text="What the token's person is there; null for nothing.")
    moves = serializers.ChoiceField(Tenant.Moves.choices, help_text="ALONE: they go out by themselves, in turns.")
    most_servers = serializers.IntegerField(allow_null=True)
    most_partitions = serializers.IntegerField()
    most_rollouts_per_hour = serializers.IntegerField()
    slug = serializers.CharField(required=False, help_text="As partitions.conf calls it.")
    created_at = serializers.DateTimeField(required=False)
    suspended_at = serializers.DateTimeField(allow_null=True, required=False)
    offboarded_at = serializers.DateTimeField(allow_null=True, required=False)

    provider_only = ("slug", "created_at", "suspended_at", "offboarded_at")

    @extend_schema_field(serializers.ChoiceField(TenantRole.Role.choices, allow_null=True))
    def get_role(self, tenant: Tenant) -> str | None:
        """VIEWER, MEMBER or ADMIN; an operator is usually none of them."""
        roles: dict[int, str] = self.context.get("roles", {})
        return roles.get(tenant.pk)


class TenantFilters(filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    """Which tenants."""

    name = filters.CharFilter(lookup_expr="exact", help_text="The whole name.")


class Tenants(Resource):
    """Tenants: all for operators and auditors, else those of whose people the token's person is."""

    read_scope = READ
    filterset_class = TenantFilters

    @operation(summary="List tenants by name", shows=TenantShown, lists=True, filters=TenantFilters)
    def list(self, request: Request) -> Response:
        """A page of tenants."""
        return self.paged(self._rows(request), self._lines, by="name")

    @operation(summary="One tenant", shows=TenantShown)
    def retrieve(self, request: Request, id: str) -> Response:
        """One tenant."""
        return self.told(self._lines([one_of(self._rows(request), public_id=id)])[0])

    def _rows(self, request: Request) -> QuerySet[Tenant]:
        return Tenant.objects.visible_to(request.user)

    def _lines(self, rows: Iterable[Tenant]) -> Any:
        # Of one person, so all of them at once: a tenant's people have a few, and nobody has thousands.
        roles = dict(TenantRole.objects.of_person(self.person).values_list("tenant_id", "role"))
        return TenantShown(rows, many=True, context={"person": self.person, "roles": roles}).data
