"""Who may see which endpoints, and which messages are due."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from django.contrib.auth.models import AnonymousUser
from django.db import models

from audit.actions import Action
from audit.models import Event
from people.permissions import may_review

if TYPE_CHECKING:
    from people.models import User
    from webhooks.models import Delivery, Endpoint  # noqa: F401  used in strings below


class EndpointQuerySet(models.QuerySet["Endpoint"]):
    """Endpoints."""

    def visible_to(self, user: User | AnonymousUser) -> EndpointQuerySet:
        """Keep the operators' own for who reviews; for others those of the tenants that they administer.

        A tenant's endpoint is no business of an operator: its address says with whom the tenant works.
        """
        if may_review(user):
            return self.filter(tenant=None)
        if not user.is_authenticated:
            return self.none()
        return self.filter(tenant__in=user.tenant_roles.of_person(user).filter(role="ADMIN").values("tenant"))

    def on(self) -> EndpointQuerySet:
        """Keep those that are told: switched on, and of no tenant that is suspended."""
        return self.filter(off_since=None, tenant__suspended_at=None)

    def given_up(self) -> EndpointQuerySet:
        """Keep the operators' own that were switched off because they took nothing: no person did that."""
        said = Event.objects.filter(
            action=Action.WEBHOOK_GIVE_UP,
            subject_key=models.OuterRef("public_id"),
            at__gte=models.OuterRef("off_since"),
        )
        return self.filter(models.Exists(said), tenant=None, off_since__isnull=False)


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    """Messages."""

    def waiting(self) -> DeliveryQuerySet:
        """Keep those that are on their way."""
        return self.filter(state="WAITING")

    def due(self, now: datetime) -> DeliveryQuerySet:
        """Keep those to be tried now, the longest due first."""
        return self.waiting().filter(next_try_at__lte=now).order_by("next_try_at", "pk")
