"""Event, the head of the chain, its seals, and how far each follower has come."""

from collections.abc import Iterable
from typing import Any, NoReturn

from django.db import models

from audit import verifier
from audit.canonical import utc_text
from audit.errors import AppendOnly
from audit.querysets import EventQuerySet, SealQuerySet


class Event(models.Model):
    """One thing that happened. People and things are frozen as text: a later rename changes no history.

    `hash` is the SHA-256 over the canonical JSON of the fields that its `format` names (`audit/verifier.py`),
    `previous_hash` included; `mac` is the HMAC of the hash under a key that is not in this database. Triggers refuse
    UPDATE and DELETE (migrations 0002 and 0003).
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
    # Since format 2. The defaults are the database's too, and say what an event of format 1 says.
    format = models.PositiveSmallIntegerField(default=verifier.NEWEST_FORMAT, db_default=1)
    address = models.CharField(max_length=45, blank=True, default="", db_default="")  # it came from; "" for a worker
    rollout_key = models.CharField(max_length=40, blank=True, default="", db_default="")  # public id
    revision_key = models.CharField(max_length=40, blank=True, default="", db_default="")  # public id
    key_version = models.PositiveIntegerField(default=0, db_default=0)  # of the key behind `mac`; 0: none
    mac = models.CharField(max_length=64, blank=True, default="", db_default="")

    objects = EventQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["action", "-number"], name="event_action"),  # the list, filtered by action
            models.Index(fields=["actor_key", "-number"], name="event_actor"),  # the list, filtered by person
            models.Index(fields=["actor_name", "-number"], name="event_actor_name"),  # … or by a part of the name
            models.Index(fields=["subject_kind", "subject_key", "-number"], name="event_subject"),  # one thing's story
            models.Index(fields=["subject_key", "-number"], name="event_subject_key"),  # … by its key alone
            models.Index(fields=["tenant_key", "-number"], name="event_tenant"),  # a tenant's own trail
            models.Index(fields=["rollout_key", "-number"], name="event_rollout"),  # one view of a rollout
            models.Index(fields=["revision_key", "-number"], name="event_revision"),
            models.Index(fields=["request_id", "-number"], name="event_request"),  # what one request did
            models.Index(fields=["at"], name="event_at"),  # the first and last number of a span of time
            models.Index(fields=["subject_kind", "-number"], name="event_subject_kind"),  # all servers, all rollouts
            models.Index(fields=["subject_label", "-number"], name="event_subject_label"),  # what people call it
        ]

    def __str__(self) -> str:
        return f"#{self.number} {self.action} {self.subject_label}"

    def save(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: events come from `audit.record.record` and never change."""
        raise AppendOnly(f"Event {self.number} is part of a chain: it is written once, by audit.record.record().")

    def delete(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: no event ever goes."""
        raise AppendOnly(f"Event {self.number} is part of a chain and cannot be removed.")

    def to_json(self) -> dict[str, Any]:
        """The event as an export holds it: every field but the row id, with `at` as text."""
        return {**{name: getattr(self, name) for name in EXPORTED}, "at": utc_text(self.at)}

    def content_hash(self) -> str:
        """Compute the hash of what the event says now; equal to `hash` unless somebody edited it."""
        return verifier.content_hash(self.to_json())


# Everything but the row id, in the order of an export's lines.
EXPORTED: Iterable[str] = (*verifier.HASHED_2, "hash", "mac")


class ChainHead(models.Model):
    """The newest event's number and hash; exactly one row (id 1), locked while an event is appended.

    A trigger lets it move by exactly one number and never go.
    """

    number = models.PositiveBigIntegerField(default=0)
    hash = models.CharField(max_length=64)
    at = models.DateTimeField(null=True)  # of that event; None before the first, or when it has format 1
    key_version = models.PositiveIntegerField(default=0, db_default=0)  # of that event

    def __str__(self) -> str:
        return f"chain head at {self.number}"


class Seal(models.Model):
    """The head of the chain at one moment, signed; the same is written outside as an anchor (`audit/anchors.py`).

    Append-only like the events. One that is gone here is still outside.
    """

    number = models.PositiveBigIntegerField()  # of the event that was the newest
    hash = models.CharField(max_length=64)
    event_at = models.DateTimeField()
    sealed_at = models.DateTimeField()
    key = models.CharField(max_length=16)  # fingerprint of the public key
    signature = models.CharField(max_length=128)

    objects = SealQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["-number"], name="seal_newest")]

    def __str__(self) -> str:
        return f"seal on event {self.number}"

    def delete(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: no seal ever goes."""
        raise AppendOnly(f"The seal on event {self.number} is part of the trail and cannot be removed.")

    def to_anchor(self) -> verifier.Anchor:
        """The seal as it is signed and written outside."""
        at, sealed_at = utc_text(self.event_at), utc_text(self.sealed_at)
        return verifier.Anchor(self.number, self.hash, at, sealed_at, self.key, self.signature)


class TrailCheck(models.Model):
    """What the newest check of each kind found; one row a kind, written again by each check (`audit/standing.py`).

    `mac` is the HMAC of the rest under the trail's key: who may write this table cannot make a check that was not.
    """

    class Kind(models.TextChoices):
        WHOLE = "whole", "the whole trail"
        NEWEST = "newest", "the events since the last seal"
        ANCHOR = "anchor", "sealing and anchoring"

    kind = models.CharField(max_length=10, choices=Kind, unique=True)
    checked_at = models.DateTimeField()
    events = models.PositiveBigIntegerField(default=0)
    broken_at = models.PositiveBigIntegerField(null=True)
    trouble = models.CharField(max_length=20, blank=True)  # the kind of break, "" when sound
    sentence = models.TextField()
    anchored_to = models.PositiveBigIntegerField(default=0)
    checked_to = models.PositiveBigIntegerField(default=0, db_default=0)  # the last event that was as written
    key_version = models.PositiveIntegerField(default=0, db_default=0)  # of the key behind `mac`; 0: none
    mac = models.CharField(max_length=64, blank=True, default="", db_default="")

    def __str__(self) -> str:
        return f"check of {self.get_kind_display()}: {self.trouble or 'sound'}"


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
