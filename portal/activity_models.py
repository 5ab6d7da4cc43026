"""TenantEvent: the trail's events as a tenant sees them. No table of its own: what is told is the trail itself."""

from typing import Self

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef, Q

from audit.actions import Action
from audit.models import Event
from audit.querysets import EventQuerySet
from people.models import Tenant, TenantRole, User
from portal.activity import kinds
from portal.evidence_models import RolloutPart


def by_own_people() -> Q:
    """Whether whoever acted is or was one of the tenant that an event is of, and is nothing for the provider."""
    is_plain = User.objects.filter(public_id=OuterRef("actor_key"), role=User.Role.NONE)
    is_theirs = TenantRole.objects.filter(
        tenant__public_id=OuterRef("tenant_key"), user__public_id=OuterRef("actor_key")
    )
    was_theirs = Event.objects.filter(
        subject_kind="person", subject_key=OuterRef("actor_key"), tenant_key=OuterRef("tenant_key"),
        action__in=(Action.ROLE_GIVE.value, Action.ROLE_TAKE.value),
    )  # fmt: skip
    return Q(Exists(is_plain)) & (Q(Exists(is_theirs)) | Q(Exists(was_theirs)))


class TenantEventQuerySet(EventQuerySet):
    """Events as tenants see them."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Keep what happened to what is the tenants' whose people `user` is of; all that any tenant sees for reviewers.

        By action, and who acted, as `portal/activity/kinds.py` says; of rollouts those that were to change theirs.
        """
        tenants = Tenant.objects.visible_to(user)
        told = Q(action__in=kinds.every(kinds.ALWAYS))
        told |= Q(action__in=kinds.every(kinds.OF_OWN)) & by_own_people()
        told |= Q(action__in=[one.value for one in kinds.OF_TURNS], after__state__in=kinds.TURNS_TOLD)
        parts = RolloutPart.objects.filter(tenant__in=tenants).values("rollout__public_id")
        rollouts = Q(action__in=[one.value for one in kinds.OF_ROLLOUTS], rollout_key__in=parts)
        return self.filter(Q(tenant_key__in=tenants.values("public_id")) & told | rollouts)


class TenantEvent(Event):
    """One event that a tenant is told of."""

    objects = TenantEventQuerySet.as_manager()  # type: ignore[misc]  # instead of all events

    class Meta:
        proxy = True
