"""How the API writes down and reads what this room has: partitions, memberships, staged changes, and their filters."""

from typing import Any

import django_filters as filters
from rest_framework import serializers

from inventory.api import guid_of
from partitions.many_moves import MOST
from partitions.models import Membership, MembershipKind, Partition, StagedChange
from people.api.bodies import Body, Reason, StrictFlag, StrictText
from people.api.schema import Part, Shown
from people.permissions import may_review
from subnet.pkey import PKey


class PartitionShown(Shown):
    """A partition: a P_Key and its name."""

    id = serializers.CharField(source="public_id")
    name = serializers.SerializerMethodField(
        help_text="What its tenant calls it; to operators and auditors, what it is called in partitions.conf."
    )
    title = serializers.CharField(required=False, help_text="What its tenant calls it; empty: as in partitions.conf.")
    pkey = serializers.SerializerMethodField(help_text="0x and 4 hex digits, without the membership bit.")
    tenant = serializers.CharField(
        source="tenant.public_id", default=None, allow_null=True, help_text="null: the provider's, shared."
    )
    subnet = serializers.CharField(source="subnet.public_id", required=False)
    created_at = serializers.DateTimeField()
    retired_at = serializers.DateTimeField(allow_null=True)

    provider_only = ("subnet", "title")

    def get_name(self, partition: Partition) -> str:
        """The name that its reader may know: the file's tells of its slug, and that somebody else had taken it."""
        return partition.name if may_review(self.context.get("person")) else partition.called

    def get_pkey(self, partition: Partition) -> str:
        """The P_Key."""
        return str(PKey(partition.pkey))


class MembershipShown(Shown):
    """A port's place in a partition, as the current revision says."""

    id = serializers.SerializerMethodField()
    partition = serializers.CharField(source="partition.public_id")
    port = serializers.CharField(source="port.guid")
    server = serializers.CharField(source="port.hca.server.public_id", default=None, allow_null=True)
    membership = serializers.ChoiceField(MembershipKind.choices, source="kind")

    def get_id(self, row: Membership) -> str:
        """Partition and port."""
        return f"{row.partition.public_id}.{row.port.guid}"


class StagedShown(Shown):
    """What somebody wants next for one port in one partition; null: no membership."""

    id = serializers.SerializerMethodField()
    partition = serializers.CharField(source="partition.public_id")
    port = serializers.CharField(source="port.guid")
    server = serializers.CharField(source="port.hca.server.public_id", default=None, allow_null=True)
    membership_from = serializers.ChoiceField(MembershipKind.choices, source="kind_from", allow_null=True)
    membership_to = serializers.ChoiceField(MembershipKind.choices, source="kind_to", allow_null=True)
    by = serializers.CharField(source="by.username", required=False)
    at = serializers.DateTimeField()
    reason = serializers.CharField(required=False)

    provider_only = ("by", "reason")

    def get_id(self, row: StagedChange) -> str:
        """Partition and port."""
        return f"{row.partition.public_id}.{row.port.guid}"


class Discarded(Part):
    """How much was taken back."""

    discarded = serializers.IntegerField()


class PartitionFilters(filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    """Which partitions."""

    name = filters.CharFilter(field_name="shown_name", lookup_expr="iexact")
    tenant = filters.CharFilter(field_name="tenant__public_id")
    is_retired = filters.BooleanFilter(field_name="retired_at", lookup_expr="isnull", exclude=True)


class MembershipFilters(filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    """Which memberships."""

    partition = filters.CharFilter(field_name="partition__public_id")
    server = filters.CharFilter(field_name="port__hca__server__public_id")
    port = filters.CharFilter(method="of_port", help_text="Its GUID.")

    def of_port(self, rows: Any, name: str, text: str) -> Any:
        """Those of one port."""
        return rows.filter(port__guid=guid_of(text, name))


class PartitionBody(Body):
    """A new partition."""

    name = StrictText(max_length=31, help_text="As partitions.conf takes it.")
    tenant = StrictText(required=False, allow_null=True, default=None, max_length=20, help_text="null: the provider's.")
    pkey = StrictText(required=False, max_length=6, help_text="0x and hex digits; left out, it is drawn.")
    subnet = StrictText(required=False, max_length=20)


class RenameBody(Body):
    """Another name."""

    name = StrictText(max_length=31)
    reason = Reason()


class MoveBody(Body):
    """A server, and the partition it leaves; null: it is in none that matters."""

    server = StrictText(max_length=20)
    source = StrictText(allow_null=True, default=None, required=False, max_length=20)  # type: ignore[assignment]


class StageBody(Body):
    """Servers into a partition; null: out of the source, into none. All of them or, if one is refused, none."""

    moves = serializers.ListField(child=MoveBody(), min_length=1, max_length=MOST)
    target = StrictText(allow_null=True, max_length=20)
    membership = serializers.ChoiceField(
        choices=MembershipKind.choices, required=False,
        help_text="How they join; left out: full. With the target as source too, they stay there and change to it.",
    )  # fmt: skip
    keep = StrictFlag(default=False, required=False, help_text="They stay where they are, too.")
    reason = Reason()


class DiscardBody(Body):
    """Whose staged changes: all of these servers', or (without servers) all of your own."""

    servers = serializers.ListField(child=StrictText(max_length=20), min_length=1, max_length=MOST, required=False)
