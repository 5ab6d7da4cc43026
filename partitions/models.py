"""Partition, Membership (a mirror of the current revision) and StagedChange (what a person wants next)."""

from django.conf import settings
from django.db import models

from inventory.models import Port, Subnet
from people.models import Tenant
from people.public_id import new_public_id
from subnet.pkey import FIRST_USABLE, LAST_USABLE


class MembershipKind(models.TextChoices):
    """How a port belongs; the values of `subnet.pkey.Membership`."""

    FULL = "full", "full"
    LIMITED = "limited", "limited"


class Partition(models.Model):
    """A P_Key and its name. Belongs to a tenant, or to the provider (tenant is None)."""

    subnet = models.ForeignKey(Subnet, on_delete=models.PROTECT, related_name="partitions")
    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, null=True, related_name="partitions")
    name = models.CharField(max_length=31)
    pkey = models.PositiveSmallIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)
    retired_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["subnet", "pkey"], name="partition_pkey"),
            models.UniqueConstraint(models.F("subnet"), models.functions.Lower("name"), name="partition_name"),
            models.CheckConstraint(
                condition=models.Q(pkey__gte=FIRST_USABLE, pkey__lte=LAST_USABLE), name="partition_pkey_usable"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """One port's place in one partition, as the current revision says. Only the mirror writes it."""

    partition = models.ForeignKey(Partition, on_delete=models.PROTECT, related_name="memberships")
    port = models.ForeignKey(Port, on_delete=models.PROTECT, related_name="memberships")
    kind = models.CharField(max_length=7, choices=MembershipKind)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["partition", "port"], name="one_membership")]

    def __str__(self) -> str:
        return f"{self.port} in {self.partition} ({self.kind})"


class StagedChange(models.Model):
    """What a person wants for one port in one partition; None means no membership.

    It stays until it has become current or is discarded.
    """

    port = models.ForeignKey(Port, on_delete=models.PROTECT, related_name="staged_changes")
    partition = models.ForeignKey(Partition, on_delete=models.PROTECT, related_name="staged_changes")
    kind_from = models.CharField(max_length=7, choices=MembershipKind, null=True)  # noqa: DJ001  None is "no membership"
    kind_to = models.CharField(max_length=7, choices=MembershipKind, null=True)  # noqa: DJ001
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="staged_changes")
    at = models.DateTimeField()
    reason = models.TextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["port", "partition"], name="one_staged_change")]

    def __str__(self) -> str:
        return f"{self.port} in {self.partition}: {self.kind_from} → {self.kind_to}"
