"""Selection: which staged changes go into a plan. Nobody's unfinished work travels with somebody else's rollout."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from django.db.models import Exists, OuterRef, Q

from inventory.models import Subnet
from partitions.errors import InvalidSelection
from partitions.models import (
    Membership,
    Replacement,
    ReplacementQuerySet,
    StagedChange,
    StagedChangeQuerySet,
    StagedDefault,
)
from people.models import Tenant, User


class Whose(StrEnum):
    """The ways to choose."""

    MINE = "mine"
    TENANT = "tenant"
    OWN = "own"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Selection:
    """The choice itself. In a query string: `mine`, `tenant:<public id>`, `own:<public id>` or `all`."""

    whose: Whose
    tenant: str = ""  # public id, when whose is TENANT or OWN

    def __str__(self) -> str:
        return f"{self.whose.value}:{self.tenant}" if self.tenant else self.whose.value

    @classmethod
    def mine(cls) -> Self:
        """What the person at the page has staged."""
        return cls(Whose.MINE)

    @classmethod
    def everything(cls) -> Self:
        """What anybody has staged."""
        return cls(Whose.ALL)

    @classmethod
    def of_tenant(cls, tenant: Tenant) -> Self:
        """What is staged in one tenant's partitions, and for its ports in the provider's."""
        return cls(Whose.TENANT, tenant.public_id)

    @classmethod
    def own_of(cls, tenant: Tenant) -> Self:
        """What one tenant's people have staged for themselves, among its own partitions, and nothing else."""
        return cls(Whose.OWN, tenant.public_id)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The selection that `text` spells, *mine* when it is empty; raise InvalidSelection for anything else."""
        word, colon, tenant = text.strip().partition(":")
        if word in (Whose.TENANT, Whose.OWN) and tenant:
            return cls(Whose(word), tenant)
        if not word:
            return cls.mine()
        if not colon and word in (Whose.MINE, Whose.ALL):
            return cls(Whose(word))
        raise InvalidSelection(
            f"“{text[:40]}” selects no staged changes. Write mine, all, or tenant: and the tenant's id."
        )

    @property
    def in_words(self) -> str:
        """What the page calls it."""
        return {
            Whose.MINE: "your changes",
            Whose.TENANT: "this tenant's changes",
            Whose.OWN: "what this tenant staged for itself",
            Whose.ALL: "all changes",
        }[self.whose]

    def of(self, *, subnet: Subnet, user: User) -> StagedChangeQuerySet:
        """The staged changes that `user` means by this, of one subnet."""
        staged = StagedChange.objects.of_subnet(subnet)
        if self.whose is Whose.MINE:
            return staged.filter(by=user)
        if self.whose is Whose.ALL:
            return staged
        if self.whose is Whose.OWN:
            return staged.filter(for_tenant__public_id=self.tenant, partition__tenant__public_id=self.tenant)
        return staged.filter(Q(partition__tenant__public_id=self.tenant) | self._shared_with_tenant())

    def default(self, *, subnet: Subnet, user: User) -> StagedDefault | None:
        """The staged change of Default that `user` means by this; a tenant's never holds it."""
        if self.whose in (Whose.TENANT, Whose.OWN):
            return None
        staged = StagedDefault.objects.filter(subnet=subnet).select_related("by").first()
        if staged is None or (self.whose is Whose.MINE and staged.by_id != user.pk):
            return None
        return staged

    def replacements(self, *, subnet: Subnet, user: User) -> ReplacementQuerySet:
        """The replaced ports that `user` means by this, as far as they wait for a rollout."""
        pending = Replacement.objects.pending().filter(port__subnet=subnet)
        if self.whose is Whose.MINE:
            return pending.filter(by=user)
        if self.whose is Whose.ALL:
            return pending
        if self.whose is Whose.OWN:
            return pending.none()
        theirs = Membership.objects.filter(port=OuterRef("port"), partition__tenant__public_id=self.tenant)
        return pending.filter(Exists(theirs))

    def _shared_with_tenant(self) -> Q:
        """Changes of this tenant's ports in the provider's partitions: halves of one move stay together."""
        port = OuterRef("port")
        theirs = Q(partition__tenant__public_id=self.tenant)
        return Q(partition__tenant=None) & (
            Q(port__former_tenant__public_id=self.tenant)
            | Exists(Membership.objects.filter(theirs, port=port))
            | Exists(StagedChange.objects.filter(theirs, port=port))
        )
