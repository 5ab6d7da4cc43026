"""Event, the head of the chain, and how far each follower has come."""

from django.db import models


class Event(models.Model):
    """One thing that happened. People and things are frozen as text: a later rename changes no history.

    `hash` is the SHA-256 over the canonical JSON of all other fields, `previous_hash` included.
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

    class Meta:
        indexes = [
            models.Index(fields=["action", "-number"], name="event_action"),  # the list, filtered by action
            models.Index(fields=["actor_key", "-number"], name="event_actor"),  # the list, filtered by person
            models.Index(fields=["subject_kind", "subject_key", "-number"], name="event_subject"),  # one thing's story
            models.Index(fields=["tenant_key", "-number"], name="event_tenant"),  # a tenant's own trail
        ]

    def __str__(self) -> str:
        return f"#{self.number} {self.action} {self.subject_label}"


class ChainHead(models.Model):
    """The newest event's number and hash; exactly one row, changed by compare-and-swap."""

    number = models.PositiveBigIntegerField(default=0)
    hash = models.CharField(max_length=64)

    def __str__(self) -> str:
        return f"chain head at {self.number}"


class FollowerCursor(models.Model):
    """The number of the last event a follower has dealt with; see `audit/follow.py`."""

    name = models.CharField(max_length=60, unique=True)
    number = models.PositiveBigIntegerField(default=0)
    failure = models.TextField(blank=True)  # why it stands still, if it does
    moved_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.name} at {self.number}"
