"""Turn: a tenant's staged moves on their way out by themselves. Requests and evidence have files of their own."""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import models

from deploy.models import Rollout
from inventory.models import Subnet
from people.models import Tenant, User
from people.permissions import may_review
from people.public_id import new_public_id
from portal.activity_models import TenantEvent as TenantEvent
from portal.evidence_models import RolloutPart as RolloutPart
from portal.evidence_models import SignedEvidence as SignedEvidence
from portal.request_models import RequestComment as RequestComment
from portal.request_models import RequestedServer as RequestedServer
from portal.request_models import StorageOffer as StorageOffer
from portal.request_models import TenantRequest as TenantRequest


class TurnQuerySet(models.QuerySet["Turn"]):
    """Questions about turns."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """All for operators and auditors; for a tenant's people those of their tenants."""
        if may_review(user):
            return self.all()
        return self.filter(tenant__in=Tenant.objects.visible_to(user))


class Turn(models.Model):
    """One batch of a tenant's own staged changes that rolls out by itself; see `portal/turns.py`.

    Open while it is WAITING or ROLLING_OUT: one for each tenant and subnet. A tick takes it further at `next_try_at`.
    """

    class State(models.TextChoices):
        WAITING = "WAITING", "waiting"
        ROLLING_OUT = "ROLLING_OUT", "rolling out"
        PROVEN = "PROVEN", "proven"
        FAILED = "FAILED", "not made"  # the rollout ended otherwise; what is staged stays
        OPERATOR = "OPERATOR", "needs an operator"
        GONE = "GONE", "taken back"  # nothing was staged any more

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    subnet = models.ForeignKey(Subnet, on_delete=models.PROTECT, related_name="+")
    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    state = models.CharField(max_length=12, choices=State, default=State.WAITING)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    asked_at = models.DateTimeField()
    next_try_at = models.DateTimeField(null=True)  # None: over
    why = models.CharField(max_length=20, blank=True)  # what it waits for, or why it ended: a word of portal/words.py
    until = models.DateTimeField(null=True)  # when that is over, where it is known
    told = models.TextField(blank=True)  # the same as the rooms below say it: for operators, never for the tenant
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    rollout = models.ForeignKey(Rollout, on_delete=models.PROTECT, null=True, related_name="+")

    objects = TurnQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "subnet"], condition=models.Q(next_try_at__isnull=False), name="one_open_turn"
            )
        ]
        indexes = [
            models.Index(fields=["next_try_at"], name="turn_due"),
            models.Index(fields=["tenant", "-id"], name="turn_newest"),
        ]

    def __str__(self) -> str:
        return f"turn of {self.tenant} ({self.state})"
