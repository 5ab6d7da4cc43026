"""Endpoint: where messages go. Delivery: one message on its way, with when it is tried next."""

from django.db import models

from people.models import Tenant
from people.public_id import new_public_id
from webhooks.querysets import DeliveryQuerySet, EndpointQuerySet


class Endpoint(models.Model):
    """A program of somebody’s that wants to be told. Of a tenant, or of the operators (tenant is None)."""

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True, related_name="webhooks")
    name = models.CharField(max_length=60)
    host = models.CharField(max_length=260)  # what pages and events show of the address
    url = models.CharField(max_length=1000)  # encrypted: the path of many an address is all that keeps others out
    kinds = models.JSONField(default=list)  # webhooks.kinds.Kind, as text
    secret = models.CharField(max_length=400)  # encrypted (webhooks/sealing.py); shown once
    created_at = models.DateTimeField()
    off_since = models.DateTimeField(null=True)  # nothing is queued while it is off
    off_because = models.TextField(blank=True, default="")

    objects = EndpointQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


class Delivery(models.Model):
    """One message for one endpoint. The row is the timer: `next_try_at` says when it is tried."""

    class State(models.TextChoices):
        WAITING = "WAITING", "waiting"
        DELIVERED = "DELIVERED", "delivered"
        GIVEN_UP = "GIVEN_UP", "given up"

    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="deliveries")
    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    number = models.PositiveBigIntegerField(null=True)  # of the event; None for a test
    kind = models.CharField(max_length=20)
    said = models.JSONField()  # the body, but for its id
    created_at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    status = models.PositiveSmallIntegerField(null=True)  # of the answer that took it
    failure = models.TextField(blank=True, default="")  # why the last try failed

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["endpoint", "number"], name="one_delivery_per_event")]
        indexes = [
            models.Index(fields=["state", "next_try_at"], name="delivery_due"),
            models.Index(fields=["endpoint", "-id"], name="delivery_newest"),
            models.Index(fields=["finished_at"], name="delivery_old"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} to {self.endpoint} ({self.state})"
