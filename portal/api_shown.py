"""How the API writes down and reads requests. A tenant's people are told no names of the provider's."""

from typing import Any

import django_filters as filters
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from inventory.models import Server
from people.api.bodies import Body, StrictNumber, StrictText
from people.api.schema import Part, Shown
from people.permissions import may_review
from portal.asking import LONGEST, MOST_SERVERS
from portal.models import RequestComment, RequestedServer, TenantRequest

APPROVE, DECLINE = "APPROVE", "DECLINE"


class RequestServerShown(Part):
    """A server of a request, by the name it had then; `id` is null for whoever does not see it any more."""

    id = serializers.CharField(allow_null=True)
    name = serializers.CharField()


class CommentShown(Shown):
    """What somebody said; `by` is null where it was the provider and a tenant asks."""

    id = serializers.CharField(source="public_id")
    at = serializers.DateTimeField()
    by = serializers.SerializerMethodField()
    is_provider = serializers.BooleanField(source="by_provider")
    text = serializers.CharField()

    def get_by(self, row: RequestComment) -> str | None:
        """The name of who said it."""
        return None if row.by_provider and not may_review(self.context.get("person")) else str(row.by)


class RequestShown(Shown):
    """A request of a tenant."""

    id = serializers.CharField(source="public_id")
    tenant = serializers.CharField(source="tenant.public_id")
    kind = serializers.ChoiceField(TenantRequest.Kind.choices)
    state = serializers.ChoiceField(TenantRequest.State.choices)
    asked_by = serializers.CharField()
    asked_at = serializers.DateTimeField()
    why = serializers.CharField()
    count = serializers.IntegerField(allow_null=True, help_text="Of MORE_SERVERS.")
    sort = serializers.CharField(help_text="Which servers, in the tenant's words; empty: any.")
    wanted_from = serializers.DateField(allow_null=True)
    partition = serializers.CharField(source="partition.public_id", default=None, allow_null=True)
    storage = serializers.CharField(source="storage.public_id", default=None, allow_null=True)
    answer = serializers.CharField(help_text="What the provider answered last.")
    decided_at = serializers.DateTimeField(allow_null=True)
    decided_by = serializers.CharField(allow_null=True, required=False)
    ended_at = serializers.DateTimeField(allow_null=True)

    provider_only = ("decided_by",)


class RequestWhole(RequestShown):
    """A request with its servers, as far as its reader may know them, and its comments."""

    servers = serializers.SerializerMethodField()
    comments = serializers.SerializerMethodField()

    @extend_schema_field(RequestServerShown(many=True))
    def get_servers(self, row: TenantRequest) -> list[dict[str, str | None]]:
        """Those that the tenant named, and those that its reader sees."""
        person = self.context.get("person")
        named = list(RequestedServer.objects.filter(request=row).select_related("server").order_by("name"))
        visible = Server.objects.visible_to(person).filter(pk__in=[one.server_id for one in named]) if person else ()
        seen = {server.pk for server in visible}
        return [
            {"id": one.server.public_id if one.server_id in seen else None, "name": one.name}
            for one in named
            if one.server_id in seen or row.kind == TenantRequest.Kind.RETURN_SERVERS
        ]

    @extend_schema_field(CommentShown(many=True))
    def get_comments(self, row: TenantRequest) -> list[dict[str, Any]]:
        """The oldest first."""
        rows = RequestComment.objects.filter(request=row).select_related("by").order_by("at", "pk")
        shown: Any = CommentShown(rows, many=True, context=self.context).data
        return list(shown)


class OfferShown(Shown):
    """A partition of the provider's that may be asked for; `id` is the `storage` of a request."""

    id = serializers.CharField(source="partition.public_id")
    name = serializers.CharField(source="partition.name")
    words = serializers.CharField()


class RequestFilters(filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    """Which requests."""

    state = filters.ChoiceFilter(choices=TenantRequest.State.choices)
    kind = filters.ChoiceFilter(choices=TenantRequest.Kind.choices)
    tenant = filters.CharFilter(field_name="tenant__public_id")


class AskBody(Body):
    """A new request; which fields it takes beside `why` depends on `kind`."""

    tenant = StrictText(max_length=20, help_text="Of whose people you are.")
    kind = serializers.ChoiceField(TenantRequest.Kind.choices)
    why = StrictText(max_length=LONGEST)
    count = StrictNumber(required=False, min_value=1, max_value=MOST_SERVERS, help_text="MORE_SERVERS needs it.")
    sort = StrictText(required=False, max_length=120, help_text="MORE_SERVERS: which, in your words.")
    wanted_from = serializers.DateField(required=False, help_text="MORE_SERVERS: from when on.")
    partition = StrictText(
        required=False, max_length=20, help_text="SHARED_STORAGE: yours; MORE_SERVERS: where they come, or any."
    )
    storage = StrictText(required=False, max_length=20, help_text="SHARED_STORAGE: one that is offered.")
    servers = serializers.ListField(
        child=StrictText(max_length=20), required=False, min_length=1, max_length=MOST_SERVERS,
        help_text="RETURN_SERVERS: which go back.",
    )  # fmt: skip


class CommentBody(Body):
    """What to say."""

    text = StrictText(max_length=LONGEST)


class DecideBody(Body):
    """An operator's answer. APPROVE stages what was asked for: of MORE_SERVERS these servers into this partition."""

    decision = serializers.ChoiceField((APPROVE, DECLINE))
    answer = StrictText(required=False, allow_blank=True, default="", max_length=LONGEST)
    servers = serializers.ListField(
        child=StrictText(max_length=20), required=False, default=list, max_length=MOST_SERVERS
    )
    partition = StrictText(required=False, max_length=20)
