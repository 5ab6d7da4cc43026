"""Revision, AdoptedFile, StoredTables, StoredFile, Observation, Rollout and its steps, and the fence of a subnet."""

from typing import Any, NoReturn

from django.db import models

from deploy.drift_models import Drift as Drift
from deploy.drift_models import Watch as Watch
from deploy.errors import Immutable
from inventory.models import ManagerHost, Subnet
from people.public_id import new_public_id
from subnet.table import PartitionTable


class RevisionQuerySet(models.QuerySet["Revision"]):
    """Revisions; there is no way to change or remove many of them either."""

    def update(self, **kwargs: Any) -> NoReturn:
        """Refuse: a revision never changes."""
        raise Immutable("A revision is written once; propose another one instead of changing it.")

    def delete(self) -> NoReturn:
        """Refuse: no revision ever goes."""
        raise Immutable("A revision is never removed: rollouts, evidence and the audit trail refer to it.")


class Revision(models.Model):
    """An immutable partition table with the exact bytes that render it. It is current once a rollout proves it.

    Triggers refuse UPDATE and DELETE as well (migration 0002).
    """

    subnet = models.ForeignKey(Subnet, on_delete=models.PROTECT, related_name="revisions")
    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    number = models.PositiveIntegerField()
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="children")
    table = models.JSONField()  # PartitionTable.to_json()
    data = models.BinaryField()  # the rendered file, byte for byte
    digest = models.CharField(max_length=64)  # SHA-256 of `data`
    table_digest = models.CharField(max_length=64)
    author_key = models.CharField(max_length=80)
    author_name = models.CharField(max_length=150)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField()

    objects = RevisionQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["subnet", "number"], name="revision_number")]

    def __str__(self) -> str:
        return f"revision {self.number}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert the revision; raise Immutable when it is already stored."""
        if not self._state.adding:
            raise Immutable(f"Revision {self.number} is written once; propose another one instead of changing it.")
        super().save(*args, **{**kwargs, "force_insert": True})

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: no revision ever goes."""
        raise Immutable(f"Revision {self.number} is never removed: rollouts, evidence and the trail refer to it.")

    def partition_table(self) -> PartitionTable:
        """The table as a value. Parses it anew each time: about 20 ms for 4,000 members."""
        return PartitionTable.from_json(self.table)


class AdoptedFile(models.Model):
    """The hand-written file that lay on one manager host when its table was adopted as a revision.

    As long as that revision is current this is what stands on the host, and what a restore puts back, byte for byte.
    Written once, like the revision.
    """

    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="adopted_files")
    host = models.ForeignKey(ManagerHost, on_delete=models.PROTECT, related_name="+")
    data = models.BinaryField()
    digest = models.CharField(max_length=64)  # SHA-256 of `data`

    class Meta:
        constraints = [models.UniqueConstraint(fields=["revision", "host"], name="one_adopted_file_per_host")]

    def __str__(self) -> str:
        return f"file of {self.host} adopted as {self.revision}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert the file; raise Immutable when it is already stored."""
        if not self._state.adding:
            raise Immutable(f"The file of {self.host} was adopted as it was read; it is never changed.")
        super().save(*args, **{**kwargs, "force_insert": True})


class Fence(models.Model):
    """One row a subnet: which revision is current, which rollout runs, and the newest fencing generation.

    Changed only by compare-and-swap, so two workers can never both hold it.
    """

    subnet = models.OneToOneField(Subnet, on_delete=models.PROTECT, related_name="fence")
    current = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="+")
    rollout = models.ForeignKey("Rollout", on_delete=models.PROTECT, null=True, related_name="+")
    generation = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"fence of {self.subnet} at generation {self.generation}"


class StoredTables(models.Model):
    """P_Key tables as the reader sent them (JSON lines, zlib), stored once by content."""

    digest = models.CharField(max_length=64, unique=True)  # SHA-256 of the uncompressed bytes
    data = models.BinaryField()
    ports = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"tables of {self.ports} ports"


class StoredFile(models.Model):
    """A partition file as it was read from a manager host and is no revision of ours; stored once by content."""

    digest = models.CharField(max_length=64, unique=True)  # SHA-256 of the uncompressed bytes
    data = models.BinaryField()  # zlib
    size = models.PositiveBigIntegerField()  # bytes, uncompressed

    def __str__(self) -> str:
        return f"file {self.digest[:12]}…"


class Observation(models.Model):
    """One look at the managers and the fabric: what stands in each file, who is SM, what each port holds."""

    class State(models.TextChoices):
        REQUESTED = "REQUESTED", "requested"
        READING = "READING", "reading"
        DONE = "DONE", "done"
        FAILED = "FAILED", "failed"

    subnet = models.ForeignKey(Subnet, on_delete=models.PROTECT, related_name="observations")
    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    state = models.CharField(max_length=10, choices=State, default=State.REQUESTED)
    why = models.CharField(max_length=20)  # plan | proof | scan
    requested_at = models.DateTimeField()
    read_at = models.DateTimeField(null=True)  # when the reader began
    finished_at = models.DateTimeField(null=True)
    tables = models.ForeignKey(StoredTables, on_delete=models.PROTECT, null=True, related_name="+")
    # [{"host", "digest", "revision": number|null, "role", "error": sentence|null, "problems": [sentence],
    #   "opensm_version", "options_digest"}], one each
    managers = models.JSONField(default=list)
    census = models.JSONField(default=list)  # [{"guid", "lid", "state", "priority", "registered", "leaf", "leaf_port"}]
    failure = models.TextField(blank=True)  # a sentence: what, where, what to do

    class Meta:
        indexes = [models.Index(fields=["subnet", "-id"], name="observation_newest")]

    def __str__(self) -> str:
        return f"observation of {self.subnet} ({self.state})"


class TableChanges(models.Model):
    """Which tables an observation found changed since the one before, and which OpenSM processes it met.

    What index prediction needs of the past (`deploy/table_history.py`), without reading every stored table again.
    """

    observation = models.OneToOneField(Observation, on_delete=models.PROTECT, related_name="table_changes")
    subnet = models.ForeignKey(Subnet, on_delete=models.PROTECT, related_name="+")
    master = models.CharField(max_length=40, blank=True)  # manager host of the only master; "" when it is none of ours
    processes = models.JSONField(default=dict)  # host → [pid, started] of its OpenSM, [] when none ran; those asked
    is_base = models.BooleanField(default=False)  # whether `data` holds every port, so that nothing older is needed
    data = models.BinaryField()  # zlib of JSON: port GUID → {index: entry}, "unread", or null when it was not there

    class Meta:
        indexes = [models.Index(fields=["subnet", "-id"], name="table_changes_newest")]

    def __str__(self) -> str:
        return f"changes seen by {self.observation}"


class Rollout(models.Model):
    """One run that makes a revision true. Its story is in its steps, its end in `state` and `cause`."""

    class State(models.TextChoices):
        QUEUED = "QUEUED", "queued"
        STAGING = "STAGING", "staging"
        PLACING = "PLACING", "placing"
        RELOADING = "RELOADING", "reloading"
        READING_BACK = "READING_BACK", "reading back"
        RESTORING = "RESTORING", "restoring"
        PROVEN = "PROVEN", "proven"
        REFUSED = "REFUSED", "refused"
        CANCELLED = "CANCELLED", "cancelled"
        RESTORED = "RESTORED", "restored"
        UNPROVEN = "UNPROVEN", "unproven"
        DEGRADED = "DEGRADED", "degraded"
        STUCK = "STUCK", "stuck"

        @property
        def is_running(self) -> bool:
            """Whether a worker is on it, or should be."""
            return self in RUNNING

        @property
        def is_waiting(self) -> bool:
            """Whether it is looked at again by itself until it is PROVEN, or turns out otherwise."""
            return self in WAITING

        @property
        def is_over(self) -> bool:
            """Whether it has let go of the subnet for good. STUCK has not: it waits for a person."""
            return self in OVER

    subnet = models.ForeignKey(Subnet, on_delete=models.PROTECT, related_name="rollouts")
    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="rollouts")
    parent = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="+")
    before = models.ForeignKey(Observation, on_delete=models.PROTECT, related_name="+")  # tables to compare with
    after = models.ForeignKey(Observation, on_delete=models.PROTECT, null=True, related_name="+")  # the proof
    state = models.CharField(max_length=12, choices=State, default=State.QUEUED)
    generation = models.PositiveBigIntegerField(null=True)
    started_by_key = models.CharField(max_length=80)
    started_by_name = models.CharField(max_length=150)
    reason = models.TextField(blank=True)
    requested_at = models.DateTimeField()  # the button
    finished_at = models.DateTimeField(null=True)
    cause = models.TextField(blank=True)  # why it ended as it did: what, where, what to do
    contrary = models.TextField(blank=True)  # the evidence against the revision, if its parent was put back
    read_back = models.JSONField(null=True)  # counts and discrepancies, see deploy/evidence.py
    # {"host": name, …what `reload` returned}: the barrier takes it back, also after a crash
    mark = models.JSONField(null=True)
    next_try_at = models.DateTimeField(null=True)  # a tick looks at UNPROVEN and DEGRADED rollouts again
    tries = models.PositiveIntegerField(default=0)
    released_at = models.DateTimeField(null=True)  # when a person let go of a STUCK one
    # The lease: which worker's process runs it (see deploy/lease.py), and until when it is believed to live.
    claimed_by = models.CharField(max_length=200, blank=True)
    claimed_until = models.DateTimeField(null=True)
    claimed_until_up = models.FloatField(null=True)  # the same on the holder's own machine: seconds since its boot
    # Commit-confirmed (deploy/confirmation.py): proven and not confirmed by then, its parent's table goes out again.
    confirm_within_s = models.PositiveIntegerField(null=True)  # asked for at the start; counted from the proof
    confirm_by = models.DateTimeField(null=True)
    confirmed_at = models.DateTimeField(null=True)
    not_rolled_back = models.TextField(blank=True, default="", db_default="")  # why that waits although it is time
    undoes = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="undone_by")
    # {"hosts": [name], "by", "reason"}: standbys that a person lets it go without, if they cannot be staged
    without = models.JSONField(null=True)
    # {"by", "reason", "at", "moved": {port GUID: [LID, state]}, "absent": [port GUID]}: what a person takes for granted
    accepted = models.JSONField(null=True)

    class Meta:
        indexes = [models.Index(fields=["subnet", "-id"], name="rollout_newest")]

    def __str__(self) -> str:
        return f"rollout of {self.revision} ({self.state})"


PENDING = frozenset({Observation.State.REQUESTED, Observation.State.READING})
RUNNING = frozenset(
    {
        Rollout.State.QUEUED,
        Rollout.State.STAGING,
        Rollout.State.PLACING,
        Rollout.State.RELOADING,
        Rollout.State.READING_BACK,
        Rollout.State.RESTORING,
    }
)
WAITING = frozenset({Rollout.State.UNPROVEN, Rollout.State.DEGRADED})
OVER = frozenset({Rollout.State.PROVEN, Rollout.State.REFUSED, Rollout.State.CANCELLED, Rollout.State.RESTORED})


class RolloutStep(models.Model):
    """One line of a rollout's story, as the page shows it live."""

    rollout = models.ForeignKey(Rollout, on_delete=models.PROTECT, related_name="steps")
    at = models.DateTimeField()
    state = models.CharField(max_length=12, choices=Rollout.State)
    host = models.CharField(max_length=40, blank=True)  # name of the manager host, if the step is of one
    text = models.TextField()

    def __str__(self) -> str:
        return self.text


class HostOutcome(models.Model):
    """How far a rollout has come on one manager host, and what was found there at the proof."""

    rollout = models.ForeignKey(Rollout, on_delete=models.PROTECT, related_name="outcomes")
    host = models.ForeignKey(ManagerHost, on_delete=models.PROTECT, related_name="+")
    role_at_start = models.CharField(max_length=12, blank=True)  # MASTER, STANDBY, as sminfo prints it
    role_at_proof = models.CharField(max_length=12, blank=True)
    staged_at = models.DateTimeField(null=True)
    placed_at = models.DateTimeField(null=True)
    reloaded_at = models.DateTimeField(null=True)
    digest = models.CharField(max_length=64, blank=True)  # what stands in its file at the end
    failure = models.TextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rollout", "host"], name="one_outcome_per_host")]

    def __str__(self) -> str:
        return f"{self.host} in {self.rollout}"


from deploy.qualification_models import HostCheck, Qualification  # noqa: E402  Django looks for every model here

__all__ = [
    "OVER",
    "PENDING",
    "RUNNING",
    "WAITING",
    "AdoptedFile",
    "Fence",
    "HostCheck",
    "HostOutcome",
    "Observation",
    "Qualification",
    "Revision",
    "Rollout",
    "RolloutStep",
    "StoredFile",
    "StoredTables",
    "TableChanges",
]
