"""The API's activity: what happened to what is a tenant's, for the programs of its people (ADR 54).

The lines are those of the page and of its files. Operators and auditors read the trail itself: `audit/events`.
"""

from collections.abc import Mapping
from typing import Any, Final

import django_filters as filters
from django.utils import translation
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from audit.models import Event
from console.api import in_reach
from partitions.api import named_wrong
from people.api.paging import asked_cursor, limit_of, next_cursor
from people.api.problems import Problem
from people.api.resources import Resource
from people.api.schema import Part, Shown, operation
from people.permissions import is_a_tenants
from people.scopes import register
from portal.activity import found
from portal.activity.kinds import Kind
from portal.activity.told import told
from portal.api_seats import reading_seat

READ: Final = "activity:read"
register(READ, "read the activity of your tenant", is_a_tenants)


class WhoShown(Part):
    """Who did it. The provider's people have no names here."""

    kind = serializers.ChoiceField(("person", found.PROVIDER, found.FABRICUI))
    id = serializers.CharField(help_text="Of a person of the tenant's; else empty.")
    name = serializers.CharField()


class AboutShown(Part):
    """What it was done to, as the tenant calls it."""

    kind = serializers.CharField()
    id = serializers.CharField(help_text="Empty for what has none that the tenant knows.")
    name = serializers.CharField()


class ActivityShown(Shown):
    """A line of the activity: who, words, about. It is in English."""

    id = serializers.CharField(help_text="By which the provider finds it in the trail.")
    at = serializers.DateTimeField()
    kind = serializers.ChoiceField([kind.value for kind in Kind])
    action = serializers.CharField()
    who = WhoShown()
    words = serializers.CharField()
    about = AboutShown()
    details = serializers.ListField(child=serializers.CharField())
    reason = serializers.CharField()


class ActivityFilters(filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    """Which lines."""

    tenant = filters.CharFilter(help_text="A tenant's id. May be left out by who has one tenant.")
    what = filters.ChoiceFilter(choices=[(kind.value, kind.value) for kind in Kind], help_text="A `kind`.")
    who = filters.CharFilter(help_text="The id of one of the tenant's people, “provider” or “fabricui”.")
    since = filters.IsoDateTimeFilter()
    until = filters.IsoDateTimeFilter(help_text="The first moment that does not count.")


class Activity(Resource):
    """What happened to what is one tenant's."""

    read_scope = READ
    filterset_class = ActivityFilters

    @operation(summary="List what happened, newest first", shows=ActivityShown, lists=True, filters=ActivityFilters)
    def list(self, request: Request) -> Response:
        """A page of the activity."""
        values = self.asked(Event.objects.none()).form.cleaned_data
        seat = reading_seat(self.person, values["tenant"] or None)
        people = found.people_of(seat.tenant)
        asked = _asked(values, people)
        size, place = limit_of(request), asked_cursor(request)
        try:
            page = found.page(
                seat.tenant, seat.person, asked, people=people, behind=place[0] if place else "", size=size
            )
        except found.BadPlace as error:  # whoever left one tenant for another is at its newest page again
            raise Problem("bad_cursor", "This cursor is not one of this list.", where="cursor") from error
        with translation.override("en"):
            lines: Any = ActivityShown(told(seat.tenant, page.events, people=people), many=True).data
        return self.told({"items": lines, "next_cursor": next_cursor(request, [page.older]) if page.older else None})


def _asked(values: Mapping[str, Any], people: Mapping[str, str]) -> found.Asked:
    """What the filters say. Somebody of another tenant's and nobody at all are answered alike."""
    if values["who"] and values["who"] not in {found.PROVIDER, found.FABRICUI, *people}:
        raise named_wrong("who", "Nobody of yours is known by that.")
    return found.Asked(
        what=Kind(values["what"]) if values["what"] else None, who=values["who"],
        since=in_reach(values, "since"), until=in_reach(values, "until"),
    )  # fmt: skip
