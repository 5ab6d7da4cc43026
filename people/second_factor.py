"""The second factor: who owes one, how its secret is kept, and the event of each change.

The secret behind the codes is stored encrypted (settings.MFA_KEYS), so a copy of the database alone makes no codes.
"""

import base64
from typing import Final

from allauth.account.internal.flows.login import get_authentication_records
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest

from audit.actions import Action
from audit.record import record
from audit.values import Actor
from people.actor import person_subject
from people.errors import NoSecondFactor
from people.models import User
from people.permissions import is_operator
from people.sessions import end_all

SHOWN: Final = "second_factor"  # in the session: its person has one, so that no page has to ask


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth has no types
    """allauth's ways with our words, our keys and our rule."""

    error_messages = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": "This code is wrong, or it was used already. Wait for the next one; the clock of your "
        "telephone must be right.",
        "cannot_delete_authenticator": "Your role demands a second factor, so it cannot be removed. For another "
        "telephone, ask an administrator to reset it.",
    }

    def encrypt(self, text: str) -> str:
        """Encrypt a secret for the database."""
        return _cipher().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Read a secret from the database."""
        return _cipher().decrypt(encrypted_text.encode()).decode()

    def can_delete_authenticator(self, authenticator: Authenticator) -> bool:
        """Whether its person may do without."""
        return not is_due(authenticator.user)


def is_due(person: User) -> bool:
    """Whether `person` must have a second factor: operators and administrators."""
    return settings.MFA == "required" and bool(is_operator(person))


def is_owed(request: HttpRequest) -> bool:
    """Whether the signed-in person must set one up before anything else. One query a session."""
    user = request.user
    if not isinstance(user, User) or not is_due(user) or request.session.get(SHOWN):
        return False
    if not has_one(user):
        return True
    request.session[SHOWN] = True
    return False


def has_one(person: User) -> bool:
    """Whether `person` has set up codes from a telephone."""
    return bool(Authenticator.objects.filter(user=person, type=Authenticator.Type.TOTP).exists())


def shown_by(request: HttpRequest, person: User) -> list[str]:
    """By what `person` has shown who they are in this session, without the order of attempts: password, totp, …"""
    return sorted({str(one.get("type") or one["method"]) for one in get_authentication_records(request, person)})


def record_added(*, person: User, actor: Actor) -> None:
    """Record that a second factor was set up."""
    record(action=Action.SECOND_FACTOR_ADD, actor=actor, subject=person_subject(person), after={"kind": "totp"})


def record_removed(*, person: User, actor: Actor) -> None:
    """Record that a person took their own away."""
    record(action=Action.SECOND_FACTOR_REMOVE, actor=actor, subject=person_subject(person), before={"kind": "totp"})


def record_codes(*, person: User, actor: Actor) -> None:
    """Record that there are new recovery codes, and that the old ones are worth nothing."""
    record(action=Action.SECOND_FACTOR_CODES, actor=actor, subject=person_subject(person))


@transaction.atomic
def reset(*, person: User, actor: Actor, reason: str) -> None:
    """Take the second factor of `person` away, who lost it, and end their sessions. Raises NoSecondFactor.

    Whoever owes one sets up another at the next login, so the password alone opens that page: give a new one too.
    """
    if not Authenticator.objects.filter(user=person).exists():
        raise NoSecondFactor(f"{person} has no second factor that could be reset.")
    Authenticator.objects.filter(user=person).delete()
    end_all(person=person, actor=actor, reason=reason)
    record(
        action=Action.SECOND_FACTOR_REMOVE,
        actor=actor,
        subject=person_subject(person),
        before={"kind": "totp"},
        reason=reason,
    )


def _cipher() -> MultiFernet:
    return MultiFernet([Fernet(_key(text)) for text in settings.MFA_KEYS or [settings.SECRET_KEY]])


def _key(text: str) -> bytes:
    # Any text will do as a key in the settings, so that it is made like every other secret there.
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"fabricui second factor").derive(text.encode())
    return base64.urlsafe_b64encode(derived)
