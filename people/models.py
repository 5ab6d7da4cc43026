"""User, Tenant, TenantRole, the API token, and what a program was answered."""

from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils import timezone
from knox.models import AbstractAuthToken

from people.public_id import new_public_id
from people.querysets import PersonManager, TenantQuerySet, TenantRoleQuerySet, TokenManager


class User(AbstractUser):  # type: ignore[django-manager-missing]  # that of tokens: knox has no types
    """A person. `role` is what they are for the provider; what they are for a tenant is a TenantRole."""

    class Role(models.TextChoices):
        NONE = "NONE", "none"  # a tenant's person, or nobody yet
        AUDITOR = "AUDITOR", "auditor"
        OPERATOR = "OPERATOR", "operator"
        ADMIN = "ADMIN", "administrator"  # an operator who also looks after people and tenants

    class Theme(models.TextChoices):
        AUTO = "AUTO", "as the system"
        LIGHT = "LIGHT", "light"
        DARK = "DARK", "dark"

    class Language(models.TextChoices):  # each under its own name
        ENGLISH = "en", "English"
        RUSSIAN = "ru", "Русский"

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    role = models.CharField(max_length=10, choices=Role, default=Role.NONE)
    theme = models.CharField(max_length=5, choices=Theme, default=Theme.AUTO)
    # Empty: what the browser asks for; the site's own (people.languages).
    language = models.CharField(max_length=5, choices=Language, default="", db_default="", blank=True)
    time_zone = models.CharField(max_length=64, default="", db_default="", blank=True)
    # Somebody else made the password and knows it: its person chooses another before anything else (people.given).
    must_change_password = models.BooleanField(default=False, db_default=False, editable=False)
    # Sessions that began before this moment are over (people.sessions).
    sessions_ended_at = models.DateTimeField(null=True, editable=False)

    # No column: the tenant whose token somebody acts by. They have no role then but that for this tenant, whatever they
    # are besides; people.authentication sets it, people.permissions and people.querysets heed it (ADR 50).
    narrowed_to: "Tenant | None" = None

    objects: ClassVar[PersonManager] = PersonManager()

    def __str__(self) -> str:
        return self.get_full_name() or self.username


class Tenant(models.Model):  # type: ignore[django-manager-missing]  # that of tokens: knox has no types
    """A customer who rents servers. `slug` stands in partitions.conf and never changes."""

    class Moves(models.TextChoices):
        WAIT = "WAIT", "wait for an operator"
        ALONE = "ALONE", "roll out by themselves when the plan is safe"

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    name = models.CharField(max_length=80, unique=True)
    slug = models.SlugField(max_length=40, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # While it is suspended its people see and change nothing of it; on the fabric nothing is different.
    suspended_at = models.DateTimeField(null=True)
    suspended_because = models.TextField(blank=True, default="", db_default="")
    offboarded_at = models.DateTimeField(null=True)  # its partitions are retired, and nobody has a role for it
    # What its people may do by themselves (people/tenant_policy.py). The database has the defaults too: code of before
    # these columns writes rows without them.
    moves = models.CharField(max_length=5, choices=Moves, default=Moves.WAIT, db_default="WAIT")
    most_servers = models.PositiveIntegerField(null=True)  # that it may have; None: as many as it likes
    most_partitions = models.PositiveIntegerField(default=8, db_default=8)
    most_rollouts_per_hour = models.PositiveIntegerField(default=6, db_default=6)

    objects = TenantQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


class TenantRole(models.Model):
    """What a person may do for a tenant."""

    class Role(models.TextChoices):
        VIEWER = "VIEWER", "viewer"
        MEMBER = "MEMBER", "member"
        ADMIN = "ADMIN", "administrator"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tenant_roles")
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="roles")
    role = models.CharField(max_length=10, choices=Role)

    objects = TenantRoleQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "tenant"], name="one_role_per_tenant")]

    def __str__(self) -> str:
        return f"{self.user} has the role {self.get_role_display()} of {self.tenant}"


class Token(AbstractAuthToken):  # type: ignore[misc]  # knox has no types
    """A person's API token: named, scoped, expiring, shown once; only its digest is stored."""

    name = models.CharField(max_length=60, default="")
    scopes = models.JSONField(default=list)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True, related_name="tokens")
    last_used_at = models.DateTimeField(null=True)

    objects: ClassVar[TokenManager] = TokenManager()

    @property
    def is_over(self) -> bool:
        """Whether its time has run out."""
        return self.expiry is not None and self.expiry < timezone.now()

    def __str__(self) -> str:
        return f"{self.name} of {self.user}"


class IdempotencyKey(models.Model):
    """What was answered to a program's request, so that the same one sent again is not done again.

    One row a key, for a day (`people.api.once`).
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)  # SHA-256 of method, address and body
    created_at = models.DateTimeField()
    status = models.PositiveSmallIntegerField(default=0)
    body = models.JSONField(null=True)
    headers = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_answer_per_key")]

    def __str__(self) -> str:
        return f"answer to {self.key} of {self.user}"
