"""Partition, Membership and DefaultRule (mirrors of the current revision), StagedChange and StagedDefault (what a
person wants next), StagingAction (how to undo it), Cleaning (a word that a server may go to another tenant), LinkLoss
(what the fabric showed of its links), Replacement (a port's new GUID).
"""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.db.models.functions import Lower

from deploy.models import Revision
from inventory.fields import GUIDField
from inventory.models import Port, Server, Subnet
from people.models import Tenant, User
from people.permissions import may_review
from people.public_id import new_public_id
from subnet.pkey import FIRST_USABLE, LAST_USABLE, PKey

NOTHING = models.Value({}, models.JSONField())
NONE = models.Value([], models.JSONField())


class MembershipKind(models.TextChoices):
    """How a port belongs; the values of `subnet.pkey.Membership`."""

    FULL = "full", "full"
    LIMITED = "limited", "limited"


class PartitionQuerySet(models.QuerySet["Partition"]):
    """Questions about partitions."""

    def in_use(self) -> Self:
        """Those that take members: not retired."""
        return self.filter(retired_at=None)

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """All for operators and auditors; for a tenant's people its own, and the provider's that it has ports in."""
        if may_review(user):
            return self.all()
        held = Membership.objects.filter(partition=models.OuterRef("pk"), port__in=Port.objects.visible_to(user))
        own = models.Q(tenant__in=Tenant.objects.visible_to(user))
        return self.filter(own | (models.Q(tenant=None) & models.Exists(held)))

    def by_pkey(self) -> "dict[PKey, Partition]":
        """These by P_Key, with their tenants; of several with one key the one in use, else the newest. One query."""
        oldest_first = self.select_related("tenant").order_by(models.F("retired_at").asc(nulls_last=True), "pk")
        return {PKey(partition.pkey): partition for partition in oldest_first}


class Partition(models.Model):
    """A P_Key and its name. Belongs to a tenant, or to the provider (tenant is None)."""

    subnet = models.ForeignKey(Subnet, on_delete=models.PROTECT, related_name="partitions")
    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, null=True, related_name="partitions")
    name = models.CharField(max_length=31)
    # What its tenant calls it, where `name` (the file's) had to be made from that: partitions/titles.py, ADR 45.
    title = models.CharField(max_length=31, blank=True, default="", db_default="")
    pkey = models.PositiveSmallIntegerField()
    # What the current revision says beside the port GUIDs, or, while it has no members there, what it will say.
    # The database has the defaults too: code of before these columns writes rows without them.
    flags = models.JSONField(default=dict, db_default=NOTHING)  # the fields of `subnet.flags.Flags`
    keywords = models.JSONField(default=list, db_default=NONE)  # [["ALL_SWITCHES", "full"], …]
    mgids = models.JSONField(default=list, db_default=NONE)  # multicast group lines as text, from a found file
    # What the hand-written file called it that it was adopted from, where OpenSM's name rules made it another one.
    found_name = models.CharField(max_length=100, blank=True, default="", db_default="")
    created_at = models.DateTimeField(auto_now_add=True)
    retired_at = models.DateTimeField(null=True)  # the row stays; its P_Key may be drawn again: partitions/pkeys.py

    objects = PartitionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["subnet", "pkey"], condition=models.Q(retired_at=None), name="partition_pkey_in_use"
            ),
            models.UniqueConstraint(models.F("subnet"), Lower("name"), name="partition_name"),
            models.UniqueConstraint(
                models.F("subnet"),
                models.F("tenant"),
                Lower("title"),
                condition=~models.Q(title=""),
                name="partition_title",
            ),
            models.CheckConstraint(
                condition=models.Q(pkey__gte=FIRST_USABLE, pkey__lte=LAST_USABLE), name="partition_pkey_usable"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def called(self) -> str:
        """What its tenant calls it."""
        return self.title or self.name


class MembershipQuerySet(models.QuerySet["Membership"]):
    """Questions about memberships."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Those `user` may see: all for operators and auditors, a tenant's own ports' for its people."""
        return self.all() if may_review(user) else self.filter(port__in=Port.objects.visible_to(user))


class Membership(models.Model):
    """One port's place in one partition, as the current revision says. Only the mirror writes it."""

    partition = models.ForeignKey(Partition, on_delete=models.PROTECT, related_name="memberships")
    port = models.ForeignKey(Port, on_delete=models.PROTECT, related_name="memberships")
    kind = models.CharField(max_length=7, choices=MembershipKind)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["partition", "port"], name="one_membership")]

    def __str__(self) -> str:
        return f"{self.port} in {self.partition} ({self.kind})"


class StagedChangeQuerySet(models.QuerySet["StagedChange"]):
    """Questions about staged changes."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """All for operators and auditors; for a tenant's people what was staged for it in the portal.

        What the provider means to do is not theirs to know before it is done.
        """
        if may_review(user):
            return self.all()
        tenants = Tenant.objects.visible_to(user)
        return self.filter(for_tenant__in=tenants, partition__tenant=models.F("for_tenant"))

    def of_subnet(self, subnet: Subnet) -> Self:
        """Those of one subnet."""
        return self.filter(partition__subnet=subnet)

    def of_server(self, server: Server) -> Self:
        """Those of one server's ports."""
        return self.filter(port__hca__server=server)

    def whole(self) -> Self:
        """With everything that a sentence about a change names, in one query."""
        return self.select_related("port__hca__server", "port__former_tenant", "partition__tenant", "by")


class StagedChange(models.Model):
    """What a person wants for one port in one partition; None means no membership.

    It stays until it has become current or is discarded.
    """

    port = models.ForeignKey(Port, on_delete=models.PROTECT, related_name="staged_changes")
    partition = models.ForeignKey(Partition, on_delete=models.PROTECT, related_name="staged_changes")
    kind_from = models.CharField(max_length=7, choices=MembershipKind, null=True)  # None: no membership
    kind_to = models.CharField(max_length=7, choices=MembershipKind, null=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="staged_changes")
    at = models.DateTimeField()
    reason = models.TextField(blank=True)
    # Whose people staged it for themselves in the portal: what may roll out by itself. None: the provider's.
    for_tenant = models.ForeignKey(Tenant, on_delete=models.SET_NULL, null=True, related_name="+")

    objects = StagedChangeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["port", "partition"], name="one_staged_change"),
            models.CheckConstraint(
                # NULL-safe: exactly the rows whose two sides are equal, or both "no membership", change nothing.
                condition=~models.Q(kind_from=None, kind_to=None) & ~models.Q(kind_from=models.F("kind_to")),
                name="staged_change_changes_something",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.port} in {self.partition}: {self.kind_from} → {self.kind_to}"


class StagingAction(models.Model):
    """What one action of a person did to staged changes, so that it can be undone; see `partitions/undoing.py`.

    A memory and no wish: it goes when it is undone, when a rollout settles one of its ports, or when it is old.
    """

    subnet = models.ForeignKey(Subnet, on_delete=models.CASCADE, related_name="+")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField()
    title = models.CharField(max_length=200)  # “srv-001 to inference”
    ports = models.JSONField(default=list)  # row ids
    # All staged changes of these ports: [[port, partition, kind_from, kind_to, by, ISO time, reason], …]
    before = models.JSONField(default=list)
    after = models.JSONField(default=list)

    class Meta:
        indexes = [models.Index(fields=["subnet", "by", "-id"], name="staging_action_newest")]

    def __str__(self) -> str:
        return self.title


class DefaultRule(models.Model):
    """What the Default partition is in the current revision. Only the mirror writes it."""

    subnet = models.OneToOneField(Subnet, on_delete=models.PROTECT, related_name="default_rule")
    keywords = models.JSONField(default=list)  # [["ALL", "limited"], …]
    members = models.JSONField(default=list)  # [[port GUID, "full"], …] beside the manager hosts' SM ports
    flags = models.JSONField(default=dict)
    mgids = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"Default of {self.subnet}"


class StagedDefault(models.Model):
    """What a person wants Default to be; it stays until it has become current or is discarded."""

    subnet = models.OneToOneField(Subnet, on_delete=models.PROTECT, related_name="staged_default")
    keywords = models.JSONField(default=list)
    members = models.JSONField(default=list)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="staged_defaults")
    at = models.DateTimeField()
    reason = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"Default of {self.subnet} as {self.by} wants it"


class Cleaning(models.Model):
    """A person's word that nothing of its former tenant is left on a port; see `partitions/cleaning.py`."""

    port = models.ForeignKey(Port, on_delete=models.PROTECT, related_name="cleanings")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")  # the former one
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="+")  # that proved the removal
    # None: FabricUI itself, because the fabric showed that every link was lost (`partitions/link_loss.py`)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="cleanings")
    at = models.DateTimeField()
    reason = models.TextField()

    class Meta:
        indexes = [models.Index(fields=["port", "-at"], name="cleaning_newest")]

    def __str__(self) -> str:
        return f"{self.port} is clean of {self.tenant}"

    @property
    def doer(self) -> str:
        """Whose word it is."""
        return "FabricUI" if self.by is None else str(self.by)


class LinkLoss(models.Model):
    """A port between two tenants that the fabric showed down; see `partitions/link_loss.py`."""

    port = models.ForeignKey(Port, on_delete=models.CASCADE, related_name="link_losses")
    seen_at = models.DateTimeField()  # the discovery that did not find its link; the last but one of those in a row
    again_at = models.DateTimeField(null=True)  # the last of them; None: seen once, and not believed
    up_at = models.DateTimeField(null=True)  # the first one that found it again

    class Meta:
        indexes = [models.Index(fields=["port", "-seen_at"], name="link_loss_newest")]

    def __str__(self) -> str:
        return f"link of {self.port} was down at {self.seen_at}"


class ReplacementQuerySet(models.QuerySet["Replacement"]):
    """Questions about replaced ports."""

    def pending(self) -> Self:
        """Those whose old GUID may still stand in the current revision."""
        return self.filter(done_at=None)


class Replacement(models.Model):
    """A port that has another GUID since its HCA was replaced, while the current revision still names the old one.

    The row of the port, its memberships and labels stay; `partitions/desired.py` puts the new GUID where the old one
    stands, in the plan of whoever replaced it. Done once a revision without the old GUID is current.
    """

    port = models.ForeignKey(Port, on_delete=models.PROTECT, related_name="replacements")
    # The row that had the new GUID until then has the old one now: it knows the card that went away.
    former = models.ForeignKey(Port, on_delete=models.PROTECT, related_name="+")
    old_guid = GUIDField()
    new_guid = GUIDField()
    old_hca = models.JSONField(default=dict)  # the columns of the HCA that went away, for taking it back
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="replacements")
    at = models.DateTimeField()
    reason = models.TextField(blank=True)
    done_at = models.DateTimeField(null=True)
    undone = models.BooleanField(default=False)

    objects = ReplacementQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["port"], condition=models.Q(done_at=None), name="one_pending_replacement")
        ]

    def __str__(self) -> str:
        return f"{self.old_guid} → {self.new_guid}"


class MirroredRevision(models.Model):
    """The revision that the Membership rows of a subnet show; see `partitions/mirror.py`."""

    subnet = models.OneToOneField(Subnet, on_delete=models.PROTECT, related_name="mirrored")
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.subnet} shows {self.revision}"
