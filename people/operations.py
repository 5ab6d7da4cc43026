"""Everything that changes a person, a tenant, a role or a token. Each writes its event in the same transaction.

A password or token never reaches an event, a log or the database in clear.
"""

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from zoneinfo import available_timezones

from django.contrib.auth.password_validation import validate_password
from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify

from audit.actions import Action
from audit.once import first_in_a_minute, first_within
from audit.record import record
from audit.request_id import current_address
from audit.values import Actor, ActorKind, Subject
from people.actor import person_subject, tenant_subject
from people.errors import (
    BadSlug,
    LastAdmin,
    NoSuchLanguage,
    NoSuchScope,
    NoSuchTheme,
    NoSuchTimeZone,
    PersonExists,
    TenantExists,
    TooManyTokens,
)
from people.limits import network_of
from people.models import Tenant, TenantRole, Token, User
from people.names import looks, plain_name
from people.permissions import narrowed
from people.scopes import scopes_of

MOST_TOKENS: Final = 20  # a person's, expired ones as well: they stay until somebody revokes them
TOKEN_USE_S: Final = 3600  # a program that works all day is one event an hour

_READABLE: Final = "abcdefghjkmnpqrstuvwxyz23456789"  # nothing that is mistaken for something else when read aloud


def new_password() -> str:
    """Make a random password that can be read aloud: four groups of four characters, 79 bits."""
    return "-".join("".join(secrets.choice(_READABLE) for _ in range(4)) for _ in range(4))


def create_person(
    *,
    username: str,
    password: str,
    actor: Actor,
    name: str = "",
    role: str = User.Role.NONE,
    is_given: bool = False,
) -> User:
    """Create a person with `role` for the provider; `name` is what pages call them.

    A password that `is_given` by somebody else must be changed at the first login (people.given). Raises PersonExists,
    BadName, and ValidationError with sentences for a weak password or a bad username.
    """
    name = plain_name(name)
    person = User(username=username, first_name=name, role=User.Role(role), must_change_password=is_given)
    person.clean_fields(exclude=["password"])
    validate_password(password, person)
    person.set_password(password)  # slow by design, so before the transaction
    with transaction.atomic():
        if User.objects.filter(username__iexact=username).exists():
            raise PersonExists(f"There is a person with the user name {username} already. Choose another.")
        person.save(force_insert=True)
        record(
            action=Action.PERSON_CREATE,
            actor=actor,
            subject=person_subject(person),
            after={"username": username, "name": name, "role": person.role} | _to_be_changed(is_given),
        )
    return person


def create_operator(*, username: str, password: str, actor: Actor, name: str = "") -> User:
    """Create a person who runs the fabric."""
    return create_person(username=username, password=password, actor=actor, name=name, role=User.Role.OPERATOR)


def create_auditor(*, username: str, password: str, actor: Actor, name: str = "") -> User:
    """Create a person who reviews and changes nothing."""
    return create_person(username=username, password=password, actor=actor, name=name, role=User.Role.AUDITOR)


def set_password(*, person: User, password: str, actor: Actor, is_given: bool = False) -> None:
    """Give `person` a new password that the caller has validated; nothing of it is recorded.

    One that `is_given` by somebody else must be changed at the next login (people.given).
    """
    person.set_password(password)  # slow by design, so before the transaction
    before, person.must_change_password = person.must_change_password, is_given
    with transaction.atomic():
        person.save(update_fields=["password", "must_change_password"])
        record(
            action=Action.PERSON_PASSWORD,
            actor=actor,
            subject=person_subject(person),
            before=_to_be_changed(before) or None,
            after=_to_be_changed(is_given) or None,
        )


def _to_be_changed(is_given: bool) -> dict[str, object]:
    return {"to_be_changed": True} if is_given else {}


@transaction.atomic
def set_role(*, person: User, role: str, actor: Actor, reason: str = "") -> None:
    """Make `person` an administrator, operator, auditor or nobody for the provider. No change, no event.

    Their sessions end, so whoever needs a second factor now sets it up at the next login. Raises LastAdmin.
    """
    wanted = User.Role(role)
    hold_administrators()
    held = User.objects.select_for_update().get(pk=person.pk)
    if held.role == wanted:
        return
    if held.role == User.Role.ADMIN and not others_administer(held):
        raise LastAdmin(f"{person} is the only administrator. Make another person one first.")
    before, person.role, person.sessions_ended_at = held.role, wanted, timezone.now()
    person.save(update_fields=["role", "sessions_ended_at"])
    record(
        action=Action.PERSON_ROLE,
        actor=actor,
        subject=person_subject(person),
        before={"role": before},
        after={"role": wanted},
        reason=reason,
    )


def hold_administrators() -> None:
    """Hold all administrators' rows until the transaction ends, in one order: two of them never remove each other."""
    list(User.objects.select_for_update(no_key=True).filter(role=User.Role.ADMIN).order_by("pk").values_list("pk"))


def others_administer(person: User) -> bool:
    """Whether there is an administrator who can sign in beside `person`."""
    return bool(User.objects.active().filter(role=User.Role.ADMIN).exclude(pk=person.pk).exists())


@transaction.atomic
def create_tenant(*, name: str, actor: Actor, slug: str = "") -> Tenant:
    """Create a tenant. Its slug (made from the name if not given) stands in partitions.conf and never changes.

    Raises TenantExists, BadSlug, BadName.
    """
    name = plain_name(name)
    slug = slug or slugify(name)[:40].strip("-")
    if not slug or slug != slugify(slug) or len(slug) > 40:
        raise BadSlug(
            f"“{slug or name}” cannot name a tenant in partitions.conf. "
            "Give a short name of at most 40 letters a–z, digits and hyphens."
        )
    others = Tenant.objects.values_list("name", "slug")
    if any(looks(name) == looks(other) or slug == taken for other, taken in others):
        raise TenantExists(f"There is a tenant called {name} (or with the short name {slug}) already.")
    tenant = Tenant.objects.create(name=name, slug=slug)
    record(
        action=Action.TENANT_CREATE,
        actor=actor,
        subject=tenant_subject(tenant),
        after={"name": name, "slug": slug},
        tenant_key=tenant.public_id,
    )
    return tenant


@transaction.atomic
def give_role(*, person: User, tenant: Tenant, role: str, actor: Actor) -> TenantRole:
    """Make `person` a viewer, member or administrator of `tenant`, instead of what they were. No change, no event."""
    wanted = TenantRole.Role(role)
    held = TenantRole.objects.select_for_update().filter(user=person, tenant=tenant).first()
    if held is not None and held.role == wanted:
        return held
    before = held.role if held is not None else None
    given, _ = TenantRole.objects.update_or_create(user=person, tenant=tenant, defaults={"role": wanted})
    record_tenant_role(Action.ROLE_GIVE, person=person, tenant=tenant, before=before, after=wanted, actor=actor)
    return given


def record_tenant_role(
    action: Action, *, person: User, tenant: Tenant, before: str | None, after: str | None, actor: Actor
) -> None:
    """Record what `person` was for `tenant` and is now; None is nothing."""
    record(
        action=action,
        actor=actor,
        subject=person_subject(person),
        before={"tenant": tenant.name, "role": before},
        after={"tenant": tenant.name, "role": after},
        tenant_key=tenant.public_id,
    )


@transaction.atomic
def set_theme(*, person: User, theme: str, actor: Actor) -> None:
    """Show `person` every page in light, dark, or the system's colours. No change, no event. Raises NoSuchTheme."""
    if theme not in User.Theme.values:
        raise NoSuchTheme(f"There are no colours called “{theme[:20]}”. Choose {', '.join(User.Theme.values)}.")
    before = User.objects.select_for_update().get(pk=person.pk).theme
    if before == theme:
        return
    person.theme = theme
    person.save(update_fields=["theme"])
    record(
        action=Action.PERSON_THEME,
        actor=actor,
        subject=person_subject(person),
        before={"theme": before},
        after={"theme": theme},
    )


@transaction.atomic
def set_language(*, person: User, language: str, actor: Actor) -> None:
    """Show `person` every page in `language`; "" for their browser's. No change, no event. Raises NoSuchLanguage."""
    if language not in ("", *User.Language.values):
        raise NoSuchLanguage(f"There are no pages in “{language[:20]}”. Choose {', '.join(User.Language.values)}.")
    _set_own(person, "language", language, Action.PERSON_LANGUAGE, actor)


@transaction.atomic
def set_time_zone(*, person: User, time_zone: str, actor: Actor) -> None:
    """Show `person` times in `time_zone`, an IANA name; "" for the site's. Raises NoSuchTimeZone."""
    if time_zone and time_zone not in available_timezones():
        raise NoSuchTimeZone(f"There is no time zone “{time_zone[:40]}”. Write it as Europe/Berlin.")
    _set_own(person, "time_zone", time_zone, Action.PERSON_TIME_ZONE, actor)


def _set_own(person: User, field: str, value: str, action: Action, actor: Actor) -> None:
    before = getattr(User.objects.select_for_update().get(pk=person.pk), field)
    if before == value:
        return
    setattr(person, field, value)
    person.save(update_fields=[field])
    record(action=action, actor=actor, subject=person_subject(person), before={field: before}, after={field: value})


@transaction.atomic
def create_token(
    *,
    person: User,
    name: str,
    lifetime: timedelta,
    actor: Actor,
    scopes: Sequence[str] = (),
    tenant: Tenant | None = None,
) -> tuple[Token, str]:
    """Create an API token that is valid for `lifetime`; return it with its text, which is shown once and kept nowhere.

    Only its SHA-512 digest is stored. Raises BadName.
    """
    name = plain_name(name)
    token, text = Token.objects.issue(person, lifetime=lifetime, name=name, scopes=list(scopes), tenant=tenant)
    record(
        action=Action.TOKEN_CREATE,
        actor=actor,
        subject=_token_subject(token),
        after={"person": person.public_id, "scopes": list(scopes), "expires_at": token.expiry},
        tenant_key=tenant.public_id if tenant is not None else "",
    )
    return token, text


@transaction.atomic
def create_own_token(
    *,
    person: User,
    name: str,
    lifetime: timedelta,
    scopes: Sequence[str],
    actor: Actor,
    tenant: Tenant | None = None,
) -> tuple[Token, str]:
    """Create a token that a person asked for themselves, of one of their tenants alone or of all that they may.

    As `create_token`. Raises TooManyTokens, NoSuchScope too.
    """
    User.objects.select_for_update().get(pk=person.pk)
    if Token.objects.filter(user=person).count() >= MOST_TOKENS:
        raise TooManyTokens(f"You have {MOST_TOKENS} tokens. Revoke one that no program needs any more.")
    if not scopes or not set(scopes) <= {scope.name for scope in scopes_of(person)}:
        raise NoSuchScope("A token is for one or more of the things that the page lists.")
    if tenant is not None:
        _require_of_tenant(person, tenant, scopes)
    return create_token(person=person, name=name, lifetime=lifetime, scopes=scopes, actor=actor, tenant=tenant)


def _require_of_tenant(person: User, tenant: Tenant, scopes: Sequence[str]) -> None:
    """Raise NoSuchScope unless `person` could use each of the scopes as what they are for `tenant`."""
    as_its_own = narrowed(person, tenant)
    if not TenantRole.objects.of_person(as_its_own).exists():
        raise NoSuchScope("You have no role for that tenant. Choose one from the list.")
    beyond = set(scopes) - {scope.name for scope in scopes_of(as_its_own)}
    if beyond:
        raise NoSuchScope(
            f"What you are for {tenant.name} does not allow {', '.join(sorted(beyond))}. Leave that out, or make the "
            f"token for all that you may."
        )


@transaction.atomic
def revoke_token(*, token: Token, actor: Actor) -> None:
    """Make a token useless at once."""
    subject = _token_subject(token)
    tenant_key = token.tenant.public_id if token.tenant is not None else ""
    token.delete()
    record(action=Action.TOKEN_REVOKE, actor=actor, subject=subject, tenant_key=tenant_key)


def record_token_use(*, token: Token, scope: str) -> None:
    """Record that a program showed `token` for `scope`, once an hour, scope and address."""
    address = current_address()
    source = f"{token.token_key}:{scope}:{address}"
    if not first_within(window_s=TOKEN_USE_S, action=Action.TOKEN_USE, source=source):
        return
    with transaction.atomic():
        Token.objects.filter(pk=token.pk).update(last_used_at=timezone.now())
        record(
            action=Action.TOKEN_USE,
            actor=Actor(kind=ActorKind.TOKEN, key=token.token_key, name=str(token)),
            subject=_token_subject(token),
            after={"scope": scope, "person": token.user.public_id},
            tenant_key=token.tenant.public_id if token.tenant is not None else "",
        )


def record_token_refused(*, reason: str, token: Token | None = None) -> None:
    """Record that a token was refused, once a minute and address. What was shown instead of one is not recorded."""
    address = current_address()
    source = f"{network_of(address)}:{token.pk if token else ''}"
    if not first_in_a_minute(action=Action.TOKEN_REFUSED, source=source):
        return
    with transaction.atomic():
        record(
            action=Action.TOKEN_REFUSED,
            actor=Actor.anonymous(address),
            subject=_token_subject(token) if token else Subject(kind="token", key="", label="an unknown token"),
            reason=reason,
        )


def _token_subject(token: Token) -> Subject:
    # The digest would be no secret either, but the first characters of the token are what its owner sees.
    return Subject(kind="token", key=token.token_key, label=f"{token.name} of {token.user}")
