"""SignedEvidence: a tenant's evidence as it was signed. RolloutPart: what of a rollout was a tenant's."""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import models

from deploy.models import Rollout
from people.models import Tenant, User
from people.permissions import may_review
from people.public_id import new_public_id


class SignedEvidenceQuerySet(models.QuerySet["SignedEvidence"]):
    """Questions about signed evidence."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """All for operators and auditors, who have no page of them; for a tenant's people those of their tenants."""
        if may_review(user):
            return self.all()
        return self.filter(tenant__in=Tenant.objects.visible_to(user))

    def waiting(self) -> Self:
        """Those that are still to be signed."""
        return self.filter(signed_at=None, given_up_at=None)


class SignedEvidence(models.Model):
    """One document: asked for by a person, then written and signed by the housekeeping worker (`portal/evidence`).

    `data` are the bytes of the file, `digest` their SHA-256, which the trail has too. The oldest go (`KEPT`): whoever
    was handed the file has it, and the trail its digest.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    asked_at = models.DateTimeField()
    signed_at = models.DateTimeField(null=True)
    given_up_at = models.DateTimeField(null=True)
    digest = models.CharField(max_length=64, blank=True)
    data = models.BinaryField(null=True)

    objects = SignedEvidenceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant"],
                condition=models.Q(signed_at=None, given_up_at=None),
                name="one_evidence_waits",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "-asked_at"], name="evidence_newest")]

    def __str__(self) -> str:
        return f"evidence {self.public_id} of {self.tenant}"


class RolloutPart(models.Model):
    """Which memberships of a tenant's a rollout was to change: an index over revisions, kept by a follower.

    `changes`: [{"partition": public id, "name", "pkey", "guid", "before": full|limited|null, "after"}]; `name` is what
    the tenant called the partition then.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    rollout = models.ForeignKey(Rollout, on_delete=models.PROTECT, related_name="+")
    changes = models.JSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "rollout"], name="one_part_of_a_rollout")]
        indexes = [models.Index(fields=["tenant", "-rollout"], name="rollout_part_newest")]

    def __str__(self) -> str:
        return f"part of {self.tenant} in {self.rollout}"
