"""Event, the head of the chain, and how far each follower has come."""

from collections.abc import Iterable
from typing import Any, NoReturn

from django.db import models

from audit.canonical import digest, utc_text
from audit.errors import AppendOnly
from audit.querysets import EventQuerySet


class Event(models.Model):
    """One thing that happened. People and things are frozen as text: a later rename changes no history.

    `hash` is the SHA-256 over the canonical JSON of all other fields, `previous_hash` included. Triggers refuse
    UPDATE and DELETE (migration 0002).
    """

    number = models.PositiveBigIntegerField(unique=True)  # 1, 2, 3 … without a gap
    at = models.DateTimeField()
    action = models.CharField(max_length=60)
    actor_kind = models.CharField(max_length=10)
    actor_key = models.CharField(max_length=80)
    actor_name = models.CharField(max_length=150)
    subject_kind = models.CharField(max_length=30)
    subject_key = models.CharField(max_length=80)
    subject_label = models.CharField(max_length=200)
    tenant_key = models.CharField(max_length=40, blank=True)  # public id of the tenant it concerns, if one
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    reason = models.TextField(blank=True)
    request_id = models.CharField(max_length=40, blank=True)
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64, unique=True)

    objects = EventQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["action", "-number"], name="event_action"),  # the list, filtered by action
            models.Index(fields=["actor_key", "-number"], name="event_actor"),  # the list, filtered by person
            models.Index(fields=["subject_kind", "subject_key", "-number"], name="event_subject"),  # one thing's story
            models.Index(fields=["tenant_key", "-number"], name="event_tenant"),  # a tenant's own trail
            # What a reviewer filters by (audit/review.py): each page must come from an index, however long the trail.
            models.Index(fields=["-at", "-number"], name="event_at"),
            models.Index(fields=["actor_name", "-number"], name="event_actor_name"),
            models.Index(fields=["subject_kind", "-number"], name="event_subject_kind"),
            models.Index(fields=["subject_label", "-number"], name="event_subject_label"),
            models.Index(fields=["request_id", "-number"], name="event_request"),
        ]

    def __str__(self) -> str:
        return f"#{self.number} {self.action} {self.subject_label}"

    def save(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: events come from `audit.record.record` and never change."""
        raise AppendOnly(f"Event {self.number} is part of a chain: it is written once, by audit.record.record().")

    def delete(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: no event ever goes."""
        raise AppendOnly(f"Event {self.number} is part of a chain and cannot be removed.")

    def content_hash(self) -> str:
        """Compute the hash of what the event says now; equal to `hash` unless somebody edited it."""
        content: dict[str, Any] = {name: getattr(self, name) for name in HASHED}
        content["at"] = utc_text(self.at)
        return digest(content)

    def append(self) -> None:
        """Insert the event. Only `audit.record.record` calls this."""
        super().save(force_insert=True)


# Everything but the row id and the hash itself. A new field means a new chain format: see docs/audit.md first.
HASHED: Iterable[str] = (
    "number",
    "at",
    "action",
    "actor_kind",
    "actor_key",
    "actor_name",
    "subject_kind",
    "subject_key",
    "subject_label",
    "tenant_key",
    "before",
    "after",
    "reason",
    "request_id",
    "previous_hash",
)


class ChainHead(models.Model):
    """The newest event's number and hash; exactly one row (id 1), locked while an event is appended.

    A trigger lets it move by exactly one number and never go.
    """

    number = models.PositiveBigIntegerField(default=0)
    hash = models.CharField(max_length=64)

    def __str__(self) -> str:
        return f"chain head at {self.number}"


class FollowerCursor(models.Model):
    """The number of the last event a follower has dealt with; see `audit/follow.py`."""

    name = models.CharField(max_length=60, unique=True)
    number = models.PositiveBigIntegerField(default=0)
    moved_at = models.DateTimeField(null=True)
    failure = models.TextField(blank=True)  # why it stands still, if it does
    tries = models.PositiveIntegerField(default=0)  # how often in a row the next event has failed
    next_try_at = models.DateTimeField(null=True)  # not before this moment, after a failure

    def __str__(self) -> str:
        return f"{self.name} at {self.number}"
