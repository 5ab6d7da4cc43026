"""The audit list's filters, and the refusal of every way to change events in bulk."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from django.db import connection, models
from django.db.models import Q

from audit.errors import AppendOnly
from audit.verifier import CLOCK_STEP

if TYPE_CHECKING:
    from audit.models import Event, Seal  # noqa: F401  names in annotations below; models.py imports this file


class EventQuerySet(models.QuerySet["Event"]):
    """Events, for reading only."""

    def matching(
        self,
        *,
        actor: str = "",
        action: str | Collection[str] = "",
        subject: str = "",
        tenant: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
        text: str = "",
        rollout: str = "",
        revision: str = "",
        request: str = "",
    ) -> EventQuerySet:
        """Keep the events that match every filter given; an empty filter matches all.

        `actor` is an actor's key or a part of the name; `action` an action, several, or a prefix that ends in ":"
        ("deploy:", "deploy:rollout:"); `subject` is "kind:key", a key, or "kind:"; `tenant` a public id; `since`
        is the first moment that counts and `until` the first that does not; `text` is searched for in the labels,
        names, keys and the reason, regardless of case: it alone reads every event. `rollout` and `revision` are public
        ids, `request` is a request's id.
        """
        events = self
        if actor:
            events = events.filter(self._actor_filter(actor))
        if action:
            events = events.filter(_action_filter(action))
        if subject:
            kind, colon, key = subject.partition(":")
            if not colon:
                events = events.filter(subject_key=subject)
            else:
                events = events.filter(subject_kind=kind, **({"subject_key": key} if key else {}))
        if tenant:
            events = events.filter(tenant_key=tenant)
        if since or until:
            events = events.filter(self._span(since, until))
        if rollout:
            events = events.filter(rollout_key=rollout)
        if revision:
            events = events.filter(revision_key=revision)
        if request:
            events = events.filter(request_id=request)
        if text:
            places = ("subject_label", "subject_key", "actor_name", "actor_key", "reason", "request_id")
            wanted = Q()
            for place in places:
                wanted |= Q(**{f"{place}__icontains": text})
            events = events.filter(wanted)
        return events

    def actor_names(self) -> list[str]:
        """Every name under which somebody has acted, each by one step along an index: never a look at each event."""
        table, column = self.model._meta.db_table, connection.ops.quote_name("actor_name")
        sql = (
            f"WITH RECURSIVE names(name) AS (SELECT MIN({column}) FROM {table} UNION ALL "  # noqa: S608
            f"SELECT (SELECT MIN({column}) FROM {table} WHERE {column} > names.name) FROM names "
            "WHERE names.name IS NOT NULL) SELECT name FROM names WHERE name IS NOT NULL"
        )
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return [name for (name,) in cursor.fetchall()]

    def _actor_filter(self, actor: str) -> Q:
        if self.model._default_manager.filter(actor_key=actor).exists():
            return Q(actor_key=actor)
        wanted = actor.casefold()
        return Q(actor_name__in=[name for name in self.actor_names() if wanted in name.casefold()])

    def _span(self, since: datetime | None, until: datetime | None) -> Q:
        """The events of a span of time, by their numbers: those rise with the time, unless a clock went back."""
        everything = self.model._default_manager
        wanted = Q()
        if since:
            first = everything.filter(at__gte=since).order_by("at", "number").values_list("number", flat=True).first()
            wanted &= Q(number__gte=first) if first is not None and not self._clock_went_back() else Q(at__gte=since)
        if until:
            last = everything.filter(at__lt=until).order_by("-at", "-number").values_list("number", flat=True).first()
            wanted &= Q(number__lte=last) if last is not None and not self._clock_went_back() else Q(at__lt=until)
        return wanted

    def _clock_went_back(self) -> bool:
        return self.model._default_manager.filter(action=CLOCK_STEP).exists()

    def matching_any(self, ways: Iterable[Mapping[str, str]]) -> EventQuerySet:
        """Keep the events that have all the values of one of `ways` (column → value)."""
        wanted = Q()
        for way in ways:
            wanted |= Q(**way)
        return self.filter(wanted)

    def newest_first(self) -> EventQuerySet:
        """Order as the audit list shows them."""
        return self.order_by("-number")

    def update(self, **kwargs: Any) -> NoReturn:
        """Refuse."""
        raise AppendOnly("Events never change.")

    def delete(self) -> NoReturn:
        """Refuse."""
        raise AppendOnly("Events are never removed.")

    def create(self, **kwargs: Any) -> NoReturn:
        """Refuse: events come from `audit.record.record`."""
        raise AppendOnly("Events are written by audit.record.record() only.")

    def bulk_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: events come from `audit.record.record`."""
        raise AppendOnly("Events are written by audit.record.record() only.")

    def bulk_update(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        raise AppendOnly("Events never change.")


class SealQuerySet(models.QuerySet["Seal"]):
    """Seals; none is ever changed or removed."""

    def update(self, **kwargs: Any) -> NoReturn:
        """Refuse."""
        raise AppendOnly("Seals never change.")

    def delete(self) -> NoReturn:
        """Refuse."""
        raise AppendOnly("Seals are never removed.")


def _action_filter(action: str | Collection[str]) -> Q:
    if not isinstance(action, str):
        return Q(action__in=[str(one) for one in action])
    if action.endswith(":"):
        return Q(action__startswith=action)
    return Q(action=action)
