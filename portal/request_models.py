"""TenantRequest: what a tenant's people ask their provider for; with its servers and comments; and what storage is
offered to be asked for.
"""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import models

from inventory.models import Server, Subnet
from partitions.models import Partition
from people.models import Tenant, User
from people.permissions import may_review
from people.public_id import new_public_id


class TenantRequestQuerySet(models.QuerySet["TenantRequest"]):
    """Questions about requests."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """All for operators and auditors; for a tenant's people those of their tenants. Nothing else scopes them."""
        if may_review(user):
            return self.all()
        return self.filter(tenant__in=Tenant.objects.visible_to(user))

    def unanswered(self) -> Self:
        """Those that wait for an operator's answer."""
        return self.filter(state="OPEN")

    def not_over(self) -> Self:
        """Those that may still change: open, or approved and on their way."""
        return self.filter(state__in=("OPEN", "APPROVED"))

    def whole(self) -> Self:
        """With what a page or an answer says of each, in one query."""
        return self.select_related("tenant", "subnet", "asked_by", "partition", "storage", "decided_by")


class TenantRequest(models.Model):
    """One request; see `portal/asking.py` and `portal/deciding.py`.

    OPEN → APPROVED → DONE, or DECLINED, or WITHDRAWN. APPROVED: what it asks for is staged; DONE: the fabric proved it.
    """

    class Kind(models.TextChoices):
        MORE_SERVERS = "MORE_SERVERS", "more servers"
        RETURN_SERVERS = "RETURN_SERVERS", "return servers"
        SHARED_STORAGE = "SHARED_STORAGE", "shared storage"

    class State(models.TextChoices):
        OPEN = "OPEN", "open"
        APPROVED = "APPROVED", "approved"
        DECLINED = "DECLINED", "declined"
        WITHDRAWN = "WITHDRAWN", "withdrawn"
        DONE = "DONE", "done"

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    subnet = models.ForeignKey(Subnet, on_delete=models.PROTECT, related_name="+")
    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    kind = models.CharField(max_length=14, choices=Kind)
    state = models.CharField(max_length=9, choices=State, default=State.OPEN)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    asked_at = models.DateTimeField()
    why = models.TextField()
    # MORE_SERVERS: how many, of which sort in the tenant's words, from when on.
    count = models.PositiveIntegerField(null=True)
    sort = models.CharField(max_length=120, blank=True)
    wanted_from = models.DateField(null=True)
    # The tenant's own partition: which is to share the storage, or into which the servers are to come (None: any).
    partition = models.ForeignKey(Partition, on_delete=models.PROTECT, null=True, related_name="+")
    storage = models.ForeignKey(Partition, on_delete=models.PROTECT, null=True, related_name="+")  # the provider's
    # What the tenant was answered last. Who did so is the provider's business: no tenant is told.
    answer = models.TextField(blank=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    decided_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)  # declined, withdrawn or done

    objects = TenantRequestQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "-asked_at"], name="request_newest"),
            models.Index(fields=["state", "-asked_at"], name="request_state"),
        ]

    def __str__(self) -> str:
        return f"request {self.public_id} of {self.tenant}"


class RequestedServer(models.Model):
    """A server of a request: one that the tenant returns, or that an operator chose or staged for it.

    `name` is as it was then: who gave a server away does not learn what it is called later.
    """

    request = models.ForeignKey(TenantRequest, on_delete=models.CASCADE, related_name="servers")
    server = models.ForeignKey(Server, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=255)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["request", "server"], name="one_server_a_request")]

    def __str__(self) -> str:
        return self.name


class RequestComment(models.Model):
    """What somebody said to a request; `by_provider`: an operator, whose name no tenant is told."""

    request = models.ForeignKey(TenantRequest, on_delete=models.CASCADE, related_name="comments")
    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    by_provider = models.BooleanField()
    at = models.DateTimeField()
    text = models.TextField()

    class Meta:
        indexes = [models.Index(fields=["request", "at"], name="request_comments")]

    def __str__(self) -> str:
        return f"{self.by} at {self.at}"


class StorageOfferQuerySet(models.QuerySet["StorageOffer"]):
    """Questions about what is offered."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """All for operators and auditors; for a tenant's people those in use, on the fabrics of their partitions."""
        if may_review(user):
            return self.all()
        own = Partition.objects.filter(tenant__in=Tenant.objects.visible_to(user), retired_at=None)
        return self.filter(partition__retired_at=None, partition__subnet__in=own.order_by().values("subnet"))


class StorageOffer(models.Model):
    """A partition of the provider's that tenants may ask to share; they see its name, these words, and no other one."""

    partition = models.OneToOneField(Partition, on_delete=models.PROTECT, related_name="+")
    words = models.CharField(max_length=120, blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()

    objects = StorageOfferQuerySet.as_manager()

    def __str__(self) -> str:
        return self.partition.name
