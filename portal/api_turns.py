"""How the API writes down turns. A tenant is told what its turn waits for, and of nobody that it waits for."""

from datetime import datetime
from typing import Any

import django_filters as filters
from rest_framework import serializers

from partitions.api_shown import StagedShown
from people.api.bodies import Body, StrictText
from people.api.schema import Part, Shown
from people.permissions import may_review
from portal.board import said
from portal.models import Turn
from portal.words import Why


class TurnShown(Shown):
    """A batch of a tenant's moves that goes out by itself."""

    id = serializers.CharField(source="public_id")
    tenant = serializers.CharField(source="tenant.public_id")
    state = serializers.ChoiceField(Turn.State.choices)
    is_over = serializers.SerializerMethodField(help_text="Nothing more becomes of it.")
    why = serializers.SerializerMethodField(help_text="What it waits for, or why it ended; empty: nothing to say.")
    sentence = serializers.SerializerMethodField(help_text="The same for people.")
    until = serializers.SerializerMethodField(help_text="When this hour's rollouts are renewed, where it waits for it.")
    asked_by = serializers.CharField()
    asked_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    subnet = serializers.CharField(source="subnet.public_id", required=False)
    rollout = serializers.CharField(source="rollout.public_id", default=None, allow_null=True, required=False)
    told = serializers.CharField(required=False, help_text="The same as the rooms below say it.")

    provider_only = ("subnet", "rollout", "told")

    def get_is_over(self, turn: Turn) -> bool:
        """Whether no tick looks at it any more."""
        return turn.next_try_at is None

    def get_why(self, turn: Turn) -> str:
        """The word; whether somebody else's rollout runs or has just ended is the same to a tenant."""
        return Why.BUSY if turn.why == Why.RESTS and not may_review(self.context.get("person")) else turn.why

    def get_sentence(self, turn: Turn) -> str:
        """The sentence of the portal's page."""
        return said(turn)

    def get_until(self, turn: Turn) -> datetime | None:
        """Of the quota alone: any other moment is the end of somebody else's rollout."""
        return turn.until if turn.why == Why.QUOTA or may_review(self.context.get("person")) else None


class StagedAll(Part):
    """What is staged for the servers that were named, afterwards."""

    items = StagedShown(many=True)
    turn = TurnShown(allow_null=True, help_text="In which it goes out by itself; null: somebody rolls it out.")


class TurnFilters(filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    """Which turns."""

    state = filters.ChoiceFilter(choices=Turn.State.choices)
    tenant = filters.CharFilter(field_name="tenant__public_id")
    is_over = filters.BooleanFilter(field_name="next_try_at", lookup_expr="isnull")


class AgainBody(Body):
    """Whose moves."""

    tenant: Any = StrictText(
        required=False, allow_null=True, default=None, max_length=20, help_text="May be left out by who has one tenant."
    )
