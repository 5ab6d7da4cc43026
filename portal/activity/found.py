"""The events of one tenant that match, a page at a time, newest first.

A page goes on behind an event that its reader has seen, by that event's hash: no number of the trail stands in an
address, and another tenant's hash is no place here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Q

from audit.actions import Action
from audit.models import Event
from audit.values import SYSTEM
from people.models import Tenant, TenantRole, User
from portal.activity.kinds import Kind, actions_of
from portal.activity_models import TenantEvent, TenantEventQuerySet
from portal.models import RolloutPart

PAGE: Final = 50
PROVIDER: Final = "provider"
FABRICUI: Final = "fabricui"


class BadPlace(ValueError):
    """A hash that is none of an event of this list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked for; empty matches all. `who` is a public id of one of its people, PROVIDER or FABRICUI.

    `since` is the first moment that counts and `until` the first that does not.
    """

    what: Kind | None = None
    who: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Events, newest first; `older` is the hash behind which the next page begins, "" at the end."""

    events: tuple[Event, ...]
    older: str


def people_of(tenant: Tenant) -> dict[str, str]:
    """Public id → name of everybody who is or was one of the tenant's, and is nothing for the provider. Two queries."""
    told = Event.objects.filter(
        tenant_key=tenant.public_id, action__in=(Action.ROLE_GIVE.value, Action.ROLE_TAKE.value), subject_kind="person"
    )
    theirs = Q(pk__in=TenantRole.objects.filter(tenant=tenant).values("user"))
    theirs |= Q(public_id__in=told.values("subject_key"))
    people = User.objects.filter(theirs, role=User.Role.NONE)
    return {person.public_id: str(person) for person in people.order_by("first_name", "last_name", "username")}


def page(
    tenant: Tenant, user: User, asked: Asked, *, people: Mapping[str, str], behind: str = "", size: int = PAGE
) -> Page:
    """The newest that match, or those behind the event with the hash `behind`. Raises BadPlace."""
    ways = _ways(tenant, user, asked, people)
    number = _number(tenant, user, behind) if behind else None
    found: dict[int, Event] = {}
    for rows in ways:
        if number is not None:
            rows = rows.filter(number__lt=number)
        found |= {event.number: event for event in rows.order_by("-number")[: size + 1]}
    newest = [found[one] for one in sorted(found, reverse=True)[: size + 1]]
    return Page(tuple(newest[:size]), newest[size - 1].hash if len(newest) > size else "")


def every(tenant: Tenant, user: User, asked: Asked, *, people: Mapping[str, str], most: int) -> Iterator[Event]:
    """All that match, newest first, up to `most`."""
    behind, given = "", 0
    while given < most:
        piece = page(tenant, user, asked, people=people, behind=behind, size=min(500, most - given))
        yield from piece.events
        given, behind = given + len(piece.events), piece.older
        if not behind:
            return


def _ways(tenant: Tenant, user: User, asked: Asked, people: Mapping[str, str]) -> list[TenantEventQuerySet]:
    """What is the tenant's by name, and its rollouts: each by an index of its own, in the order of the trail."""
    rows = TenantEvent.objects.visible_to(user)
    if asked.what is not None:
        rows = rows.filter(action__in=actions_of(asked.what))
    if asked.who == FABRICUI:
        rows = rows.filter(actor_key=SYSTEM.key)
    elif asked.who == PROVIDER:
        rows = rows.exclude(actor_key__in=[*people, SYSTEM.key])
    elif asked.who:
        rows = rows.filter(actor_key=asked.who) if asked.who in people else rows.none()
    if asked.since is not None:
        rows = rows.filter(at__gte=asked.since)
    if asked.until is not None:
        rows = rows.filter(at__lt=asked.until)
    parts = RolloutPart.objects.filter(tenant=tenant).values("rollout__public_id")
    return [rows.filter(tenant_key=tenant.public_id), rows.filter(tenant_key="", rollout_key__in=parts)]


def _number(tenant: Tenant, user: User, behind: str) -> int:
    for rows in _ways(tenant, user, Asked(), {}):
        event = rows.filter(hash=behind).only("number").first()
        if event is not None:
            return event.number
    raise BadPlace("This is no place in your activity. Begin at its newest page.")
