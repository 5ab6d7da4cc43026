"""Who may see which people and tenants, as queryset methods: views, tables and the API ask nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from django.contrib.auth.models import AnonymousUser, UserManager
from django.db import models
from knox.models import AuthTokenManager

from people.permissions import may_review

if TYPE_CHECKING:
    from people.models import Tenant, TenantRole, Token, User  # noqa: F401  used in strings below


class PersonQuerySet(models.QuerySet["User"]):
    """People."""

    def active(self) -> PersonQuerySet:
        """Keep those who may sign in."""
        return self.filter(is_active=True)

    def operators(self) -> PersonQuerySet:
        """Keep active operators; administrators are."""
        return self.active().filter(role__in=["OPERATOR", "ADMIN"])

    def auditors(self) -> PersonQuerySet:
        """Keep active auditors."""
        return self.active().filter(role="AUDITOR")

    def named_like(self, text: str) -> PersonQuerySet:
        """Keep those in whose user name or name `text` stands; all for an empty one."""
        return self.filter(
            models.Q(username__icontains=text)
            | models.Q(first_name__icontains=text)
            | models.Q(last_name__icontains=text)
        )

    def with_second_factor(self) -> PersonQuerySet:
        """Add `has_second_factor` to each row, and `is_from_provider`: do they sign in with the OpenID provider?"""
        from allauth.mfa.models import Authenticator  # both need the model of people first
        from allauth.socialaccount.models import SocialAccount

        totp = Authenticator.objects.filter(user=models.OuterRef("pk"), type=Authenticator.Type.TOTP)
        return self.annotate(
            has_second_factor=models.Exists(totp),
            is_from_provider=models.Exists(SocialAccount.objects.filter(user=models.OuterRef("pk"))),
        )

    def visible_to(self, user: User | AnonymousUser) -> PersonQuerySet:
        """Keep those `user` may know of: all for operators and auditors, else the people of the same tenants."""
        if may_review(user):
            return self
        if not user.is_authenticated:
            return self.none()
        return self.filter(
            models.Q(pk=user.pk) | models.Q(tenant_roles__tenant__in=user.tenant_roles.of_person(user).values("tenant"))
        ).distinct()


class TenantQuerySet(models.QuerySet["Tenant"]):
    """Tenants."""

    def visible_to(self, user: User | AnonymousUser) -> TenantQuerySet:
        """Keep all for operators and auditors, else the tenants in which `user` has a role and that are not suspended.

        All that a tenant's people see and change goes through here, so a suspension needs no second place.
        """
        if may_review(user):
            return self
        if not user.is_authenticated:
            return self.none()
        return self.filter(pk__in=user.tenant_roles.of_person(user).values("tenant"))


class TenantRoleQuerySet(models.QuerySet["TenantRole"]):
    """Roles in tenants."""

    def in_force(self) -> TenantRoleQuerySet:
        """Keep those that let anybody do anything: of tenants that are not suspended."""
        return self.filter(tenant__suspended_at=None)

    def of_person(self, user: User | AnonymousUser) -> TenantRoleQuerySet:
        """Keep those by which `user` acts now: in force, and of a token's tenant alone where one is shown.

        Whoever asks what somebody is for a tenant asks here; `tests/people/test_narrowed.py` looks for who does not.
        """
        held = self.in_force().filter(user=user.pk)
        only = getattr(user, "narrowed_to", None)
        return held if only is None else held.filter(tenant=only)


class PersonManager(UserManager["User"].from_queryset(PersonQuerySet)):  # type: ignore[misc]
    """People, with Django's own ways to look one up."""

    use_in_migrations = False


class TokenManager(AuthTokenManager, models.Manager["Token"]):  # type: ignore[misc]  # knox has no types
    """Tokens; knox's `create` returns a row together with the token's text, which is stored nowhere."""

    def visible_to(self, user: User | AnonymousUser) -> models.QuerySet[Token]:
        """Keep the person's own: nobody sees or revokes another's here."""
        return self.filter(user=user) if user.is_authenticated else self.none()

    def issue(self, user: User, *, lifetime: timedelta, **fields: Any) -> tuple[Token, str]:
        """Create a token that expires after `lifetime`; return it and its text."""
        issued: tuple[Token, str] = cast(Any, self).create(user, expiry=lifetime, **fields)
        return issued
