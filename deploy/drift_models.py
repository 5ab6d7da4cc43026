"""Watch: what is known of a subnet between rollouts. Drift: one thing found other than the current revision says."""

from typing import Final

from django.db import models

from inventory.models import Subnet
from people.public_id import new_public_id

NOTHING: Final = models.Value({}, models.JSONField())
NONE: Final = models.Value([], models.JSONField())


class Watch(models.Model):
    """The watch of one subnet: when it looks next, what it saw last, and how much of the tables it has covered."""

    subnet = models.OneToOneField(Subnet, on_delete=models.PROTECT, related_name="watch")
    next_at = models.DateTimeField()
    asked_at = models.DateTimeField(null=True)  # when the tick handed it to the queue last
    # The lease of the worker that looks now (deploy/lease.py).
    claimed_by = models.CharField(max_length=200, blank=True, default="", db_default="")
    claimed_until = models.DateTimeField(null=True)
    checked_at = models.DateTimeField(null=True)  # when files and SMs were seen last
    failure = models.TextField(blank=True, default="", db_default="")  # why less was seen than should be
    # [{"host", "digest", "revision", "role", "error", "problems", "version", "priority"}], one a manager host
    managers = models.JSONField(default=list, db_default=NONE)
    # [{"guid", "lid", "state", "priority", "registered", "leaf", "leaf_port"}], one an SM
    census = models.JSONField(default=list, db_default=NONE)
    # [{"name", "question", "answer", "sentence", "values"}], see subnet/posture.py
    posture = models.JSONField(default=list, db_default=NONE)
    master = models.CharField(max_length=18, blank=True, default="", db_default="")  # SM port of the registered master
    list_mtime_ns = models.PositiveBigIntegerField(default=0, db_default=0)  # of the master's list: one a clean sweep
    # The rolling scan: how far this round has come, and when the last complete one began.
    scan_after = models.CharField(max_length=18, blank=True, default="", db_default="")
    round_began_at = models.DateTimeField(null=True)
    covered_at = models.DateTimeField(null=True)
    ports = models.PositiveIntegerField(default=0, db_default=0)  # HCA ports on the fabric, as the last part said
    full_wanted = models.TextField(blank=True, default="", db_default="")  # why all tables are owed a reading at once
    full_at = models.DateTimeField(null=True)  # when such a reading ended last
    # Whether a lost isolation is mended without a person; off unless somebody decided so.
    restores_alone = models.BooleanField(default=False, db_default=False)
    restored_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"watch of {self.subnet}"


class Drift(models.Model):
    """One difference from the current revision, from the first sight of it to its end. Told once, closed once."""

    class Kind(models.TextChoices):
        FILE = "FILE", "file differs"
        ROGUE_SM = "ROGUE_SM", "rogue SM"
        ISOLATION_LOST = "ISOLATION_LOST", "isolation lost"
        TAKEOVER = "TAKEOVER", "takeover"
        TABLE = "TABLE", "table differs"
        OPTION = "OPTION", "option differs"
        ROLES = "ROLES", "SM roles"
        HOST = "HOST", "manager host"

    subnet = models.ForeignKey(Subnet, on_delete=models.PROTECT, related_name="drifts")
    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    kind = models.CharField(max_length=16, choices=Kind)
    key = models.CharField(max_length=80)  # of what: a manager host, a port GUID, an option; "fabric"
    first_seen_at = models.DateTimeField()
    opened_at = models.DateTimeField(null=True)  # when it was told; None while it was seen too seldom to be believed
    last_seen_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    sightings = models.PositiveIntegerField(default=1)
    missed = models.PositiveSmallIntegerField(default=0)  # looks in a row that would have seen it and did not
    details = models.JSONField(default=list)  # sentences, the gravest first
    cause = models.TextField(blank=True)  # what probably did it, and how to mend it
    facts = models.JSONField(default=dict)  # what the sentences are made of: host, digest, guid, leaf, ports …
    closing = models.TextField(blank=True)  # how it ended
    # A file whose difference somebody took over as staged changes may be overwritten by the next rollout.
    adopted_digest = models.CharField(max_length=64, blank=True)
    adopted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["subnet", "kind", "key"], condition=models.Q(closed_at=None), name="one_open_drift"
            )
        ]
        indexes = [models.Index(fields=["subnet", "-id"], name="drift_newest")]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.key}"

    @property
    def title(self) -> str:
        """Its kind at the beginning of a sentence: “Rogue SM”."""
        words: str = self.get_kind_display()
        return words[:1].upper() + words[1:]

    @property
    def is_alarm(self) -> bool:
        """Whether it stops rollouts and stands at the head of every page."""
        return self.kind in ALARMS


ALARMS: Final = frozenset({Drift.Kind.ROGUE_SM, Drift.Kind.ISOLATION_LOST})
# What passes by itself, as during a takeover, is told only when it is seen again.
SEEN_TWICE: Final = frozenset({Drift.Kind.OPTION, Drift.Kind.ROLES, Drift.Kind.HOST})
