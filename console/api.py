"""The API's audit trail, for those who review. It stands here because the rooms below it may not know people."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import django_filters as filters
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from audit import review
from audit.models import Event
from console.review import rollout_subjects
from people.api.paging import asked_cursor, limit_of, next_cursor
from people.api.problems import Problem
from people.api.resources import Resource, one_of
from people.api.schema import Part, Shown, operation
from people.permissions import may_review
from people.scopes import register

READ: Final = "audit:read"
FIRST_YEAR, LAST_YEAR = 1970, 9000  # beyond them there are moments that have no time in UTC
register(READ, "read the audit trail", may_review)


def in_reach(values: Mapping[str, Any], name: str) -> datetime | None:
    """The moment that a filter of this name asks for. Raises Problem for one that has no time in UTC."""
    at: datetime | None = values[name]
    if at is not None and not FIRST_YEAR <= at.year <= LAST_YEAR:
        raise Problem("invalid", f"{name}: no trail reaches there.", where=name)
    return at


class ActorShown(Part):
    """Who did it, as they were called then."""

    kind = serializers.CharField(source="actor_kind")
    key = serializers.CharField(source="actor_key")
    name = serializers.CharField(source="actor_name")


class SubjectShown(Part):
    """What it was done to, as it was called then."""

    kind = serializers.CharField(source="subject_kind")
    key = serializers.CharField(source="subject_key")
    label = serializers.CharField(source="subject_label")  # type: ignore[assignment]


class EventShown(Shown):
    """One event of the trail. It never changes."""

    number = serializers.IntegerField(help_text="1, 2, 3 … without a gap.")
    at = serializers.DateTimeField()
    action = serializers.CharField()
    actor = ActorShown(source="*")
    subject = SubjectShown(source="*")
    tenant = serializers.CharField(source="tenant_key")
    rollout = serializers.CharField(source="rollout_key")
    before = serializers.JSONField(help_text="Anything, null too.")
    after = serializers.JSONField(help_text="Anything, null too.")
    reason = serializers.CharField()
    address = serializers.CharField()
    request_id = serializers.CharField()
    hash = serializers.CharField(help_text="SHA-256 over the event and the hash before it.")


class EventFilters(filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    """Which events."""

    action = filters.CharFilter(help_text="One action, or a prefix that ends in “:”.")
    actor = filters.CharFilter(help_text="A key, or a part of the name.")
    subject = filters.CharFilter(help_text="kind:key, kind:, a key or a whole label.")
    tenant = filters.CharFilter(help_text="A tenant's id.")
    rollout = filters.CharFilter(help_text="A rollout's id.")
    request = filters.CharFilter(help_text="A request_id.")
    since = filters.IsoDateTimeFilter()
    until = filters.IsoDateTimeFilter(help_text="The first moment that does not count.")
    text = filters.CharFilter(help_text="Looked for in names, labels, keys and reasons; searches some of the trail.")


class AuditEvents(Resource):
    """The trail."""

    read_scope = READ
    filterset_class = EventFilters

    @operation(summary="List events, newest first", shows=EventShown, lists=True, filters=EventFilters)
    def list(self, request: Request) -> Response:
        """A page of the trail. A search by `text` may give an empty page with a cursor: go on from there."""
        asked = self._asked(request)
        place = asked_cursor(request)
        page = review.page(asked, before=place[0] if place else "", size=limit_of(request))
        cursor = next_cursor(request, [page.older]) if page.older else None
        return self.told({"items": self._shown(page.events), "next_cursor": cursor})

    @operation(summary="One event", shows=EventShown)
    def retrieve(self, request: Request, id: str) -> Response:
        """One event by its number."""
        number = int(id) if id.isascii() and id.isdecimal() and len(id) < 16 else 0
        rows = Event.objects.filter(number=number)
        event = one_of(rows if may_review(request.user) else rows.none())
        return self.told(EventShown(event).data)

    def _asked(self, request: Request) -> review.Asked:
        filters = self.asked(Event.objects.none())
        values = {name: value for name, value in filters.form.cleaned_data.items() if value}
        for name in {"since", "until"} & values.keys():
            in_reach(values, name)
        if "rollout" in values:
            values["subjects"] = rollout_subjects(values["rollout"])
        return review.Asked(**values)

    def _shown(self, events: Iterable[Event]) -> Any:
        return EventShown(events, many=True).data
