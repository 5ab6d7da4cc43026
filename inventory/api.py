"""The API's servers and ports. A tenant's people see their own, and nothing of the place or of who had them before."""

from collections.abc import Iterable
from typing import Any

import django_filters as filters
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inventory.models import Port, Server
from people.api.resources import Resource, one_of
from people.api.schema import Shown, operation
from people.permissions import is_somebodys
from people.scopes import register
from subnet.errors import InvalidGUID
from subnet.guid import GUID

READ = "inventory:read"
register(READ, "see servers and ports", is_somebodys)


class PortShown(Shown):
    """A port, known by its GUID."""

    guid = serializers.CharField(help_text="0x and 16 hex digits; text, because a JSON number would lose digits.")
    server = serializers.CharField(source="hca.server.public_id", default=None, allow_null=True)
    device = serializers.CharField(
        source="hca.device", default=None, allow_null=True, help_text="As its host calls it."
    )
    number = serializers.IntegerField()
    link_layer = serializers.ChoiceField(Port.LinkLayer.choices)
    state = serializers.CharField(help_text="As its server reports it: ACTIVE, INIT, DOWN …")
    rate_gbps = serializers.FloatField(allow_null=True)
    is_missing = serializers.SerializerMethodField(help_text="Its server reports without it.")
    subnet = serializers.CharField(source="subnet.public_id", required=False)
    lid = serializers.IntegerField(allow_null=True, required=False)
    seen_state = serializers.CharField(required=False, help_text="As the fabric shows it; ABSENT: it does not.")
    seen_at = serializers.DateTimeField(allow_null=True, required=False)
    is_confirmed = serializers.SerializerMethodField(required=False)
    leaf_guid = serializers.CharField(allow_null=True, required=False)
    leaf_port = serializers.IntegerField(allow_null=True, required=False)
    former_tenant = serializers.CharField(source="former_tenant.public_id", default=None, allow_null=True)

    provider_only = (
        "subnet", "lid", "seen_state", "seen_at", "is_confirmed", "leaf_guid", "leaf_port", "former_tenant",
    )  # fmt: skip

    def get_is_missing(self, port: Port) -> bool:
        """Whether its server has reported without it."""
        return port.missing_since is not None

    def get_is_confirmed(self, port: Port) -> bool:
        """Whether somebody whom the site believes has confirmed it."""
        return port.confirmed_at is not None


class ServerShown(Shown):
    """A server."""

    id = serializers.CharField(source="public_id")
    hostname = serializers.CharField()
    reported_at = serializers.DateTimeField(allow_null=True)
    tenant = serializers.CharField(source="tenant.public_id", default=None, allow_null=True)
    subnet = serializers.CharField(source="subnet.public_id", required=False)
    rack = serializers.CharField(required=False)
    unit = serializers.CharField(required=False)
    serial = serializers.CharField(required=False)
    registered_at = serializers.DateTimeField(required=False)

    provider_only = ("subnet", "tenant", "rack", "unit", "serial", "registered_at")


class ServerFilters(filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    """Which servers."""

    hostname = filters.CharFilter(lookup_expr="exact", help_text="The whole name.")
    hostname_contains = filters.CharFilter(field_name="hostname", lookup_expr="icontains")
    tenant = filters.CharFilter(field_name="tenant__public_id", help_text="Labelled with this tenant.")
    rack = filters.CharFilter(lookup_expr="exact")


class PortFilters(filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    """Which ports."""

    guid = filters.CharFilter(method="of_guid", help_text="In any spelling.")
    server = filters.CharFilter(field_name="hca__server__public_id")
    link_layer = filters.ChoiceFilter(choices=Port.LinkLayer.choices)

    def of_guid(self, rows: Any, name: str, text: str) -> Any:
        """The port of this GUID."""
        return rows.filter(guid=guid_of(text, name))


def guid_of(text: str, where: str) -> GUID:
    """The GUID that a text of a request spells. Raises ValidationError."""
    try:
        return GUID(text)
    except InvalidGUID as error:
        raise serializers.ValidationError({where: [str(error)]}) from error


class Servers(Resource):
    """Servers."""

    read_scope = READ
    filterset_class = ServerFilters
    provider_filters = frozenset({"tenant", "rack"})

    @operation(summary="List servers", shows=ServerShown, lists=True, filters=ServerFilters)
    def list(self, request: Request) -> Response:
        """A page of servers by name."""
        return self.paged(self._rows(request), self._shown, by="hostname")

    @operation(summary="One server", shows=ServerShown)
    def retrieve(self, request: Request, id: str) -> Response:
        """One server."""
        server = one_of(self._rows(request), public_id=id)
        return self.told(ServerShown(server, context={"person": request.user}).data)

    def _rows(self, request: Request) -> Any:
        return Server.objects.visible_to(request.user).select_related("subnet", "tenant")

    def _shown(self, rows: Iterable[Server]) -> Any:
        return ServerShown(rows, many=True, context={"person": self.person}).data


class Ports(Resource):
    """Ports."""

    read_scope = READ
    filterset_class = PortFilters

    @operation(summary="List ports", shows=PortShown, lists=True, filters=PortFilters)
    def list(self, request: Request) -> Response:
        """A page of ports by GUID."""
        return self.paged(self._rows(request), self._shown, by="guid", tie="guid")

    @operation(summary="One port", shows=PortShown)
    def retrieve(self, request: Request, id: str) -> Response:
        """One port by its GUID, in its one spelling."""
        try:
            guid = GUID(id)
        except InvalidGUID:
            guid = None
        port = one_of(self._rows(request).filter(guid=guid) if guid == id else Port.objects.none())
        return self.told(PortShown(port, context={"person": request.user}).data)

    def _rows(self, request: Request) -> Any:
        return Port.objects.visible_to(request.user).select_related("subnet", "hca__server", "former_tenant")

    def _shown(self, rows: Iterable[Port]) -> Any:
        return PortShown(rows, many=True, context={"person": self.person}).data
