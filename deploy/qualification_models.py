"""Qualification and HostCheck: what was asked of the managers' worker, and the report it left. See deploy/models.py."""

from django.db import models

from inventory.models import ManagerHost, Subnet
from people.public_id import new_public_id


class RequestState(models.TextChoices):
    """How far the worker of the queue `observe` has come with a request."""

    REQUESTED = "REQUESTED", "requested"
    READING = "READING", "reading"
    DONE = "DONE", "done"
    FAILED = "FAILED", "failed"


class WorkerRequest(models.Model):
    """A row that asks the managers' worker for something: who, when, and what became of it."""

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    state = models.CharField(max_length=10, choices=RequestState, default=RequestState.REQUESTED)
    requested_by_key = models.CharField(max_length=80)
    requested_by_name = models.CharField(max_length=150)
    requested_at = models.DateTimeField()
    began_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    failure = models.TextField(blank=True)  # a sentence: what, where, what to do

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} {self.public_id} ({self.get_state_display()})"

    @property
    def is_pending(self) -> bool:
        """Whether the worker has still to do it."""
        return self.state in PENDING_REQUEST


class Qualification(WorkerRequest):
    """One report on whether FabricUI may write to a subnet, as it was measured there, and who signed its checklist.

    The report is canonical JSON under `digest`; its shape is that of `deploy/qualifying.py`. What it stands for is
    decided by `deploy.qualification.why_not`, never by this row alone.
    """

    subnet = models.ForeignKey(Subnet, on_delete=models.PROTECT, related_name="qualifications")
    may_sweep = models.BooleanField(default=False)  # a person allowed it to cause heavy sweeps, to measure them
    report = models.JSONField(null=True)
    digest = models.CharField(max_length=64, blank=True)  # SHA-256 of the canonical report
    is_fit = models.BooleanField(default=False)  # nothing in the report refuses
    answers = models.JSONField(null=True)  # item of the checklist → true, once signed
    signed_by_key = models.CharField(max_length=80, blank=True)
    signed_by_name = models.CharField(max_length=150, blank=True)
    signed_at = models.DateTimeField(null=True)
    signed_reason = models.TextField(blank=True)

    class Meta:
        indexes = [models.Index(fields=["subnet", "-id"], name="qualification_newest")]


class HostCheck(WorkerRequest):
    """One answer to “what is missing on this manager host?”."""

    host = models.ForeignKey(ManagerHost, on_delete=models.PROTECT, related_name="checks")
    facts = models.JSONField(null=True)  # see deploy/host_check.py

    class Meta:
        indexes = [models.Index(fields=["host", "-id"], name="host_check_newest")]


PENDING_REQUEST = frozenset({RequestState.REQUESTED, RequestState.READING})
