"""How allauth works here: nobody signs up, and every attempt to sign in leaves a trace."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.stagekit import clear_login
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse

from audit.actions import Action
from audit.once import first_in_a_minute
from audit.record import record
from audit.values import Actor, Subject
from people import limits, operations, suspension
from people.actor import actor_of, person_subject
from people.models import User


class ClosedAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Accounts are made by an administrator."""

    error_messages = {
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": "User name or password is wrong. Type both again; in the password, upper and "
        "lower case count.",
        "too_many_login_attempts": "Too many failed attempts. Nothing was checked this time: wait five minutes, then "
        "try again. An administrator can give you a new password.",
        "enter_current_password": "This is not your present password.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Nobody signs up by themselves."""
        return False

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Refuse after too many failures (settings.ACCOUNT_RATE_LIMITS), and record that once a minute and source."""
        try:
            super().pre_authenticate(request, **credentials)
        except ValidationError:
            refused(address=self.get_client_ip(request), username=credentials.get("username", ""))
            raise

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """Whose failures are counted together: those of a name, but apart where its person has signed in before.

        Otherwise anybody who knows an operator's name could keep them out by wrong passwords.
        """
        key: str = super()._get_login_attempts_cache_key(request, **credentials)
        address, username = self.get_client_ip(request), credentials.get("username", "")
        if limits.has_signed_in_from(username=username, address=address):
            return f"{key}:{limits.network_of(address)}"
        return key

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        """Record a wrong name or password."""
        address = self.get_client_ip(request)
        with transaction.atomic():
            record(
                action=Action.PERSON_LOGIN_FAILED,
                actor=Actor.anonymous(address),
                subject=_attempted(credentials.get("username", "")),
                after={"address": address},
            )

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        """Record that the right password was given for a closed account, and say that it is closed."""
        address = self.get_client_ip(request)
        with transaction.atomic():
            record(
                action=Action.PERSON_LOGIN_FAILED,
                actor=Actor.anonymous(address),
                subject=person_subject(user),
                after={"address": address},
                reason="the tenant is suspended" if user.is_active else "the account is closed",
            )
        response: HttpResponse = super().respond_user_inactive(request, user)
        return response

    def pre_login(self, request: HttpRequest, user: User, **more: Any) -> HttpResponse | None:
        """Refuse whose tenants are all suspended; the rest as allauth does, whichever way they came."""
        found: HttpResponse | None = super().pre_login(request, user, **more)
        if found is None and suspension.is_shut_out(user):
            clear_login(request)
            return self.respond_user_inactive(request, user)
        return found

    def clean_password(self, password: str, user: User | None = None) -> str:
        """Refuse the password of now as a new one, and what Django finds weak."""
        if user is not None and user.check_password(password):
            raise ValidationError("This is the password that you have. Choose another.")
        found: str = super().clean_password(password, user)
        return found

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        """On to what somebody came for; it may ask for a second factor first."""
        messages.success(request, "Your password is changed, and your other sessions have ended.")
        return str(settings.LOGIN_REDIRECT_URL)

    def set_password(self, user: User, password: str) -> None:
        """Change the password, with its event."""
        operations.set_password(person=user, password=password, actor=actor_of(self.request.user))

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        """Never by allauth: people.fresh asks, and keeps what was posted."""
        return False

    def add_message(self, request: HttpRequest, level: int, *args: Any, **kwargs: Any) -> None:
        """Say nothing about signing in or out: the page that follows says it."""


def refused(*, address: str, username: str) -> None:
    """Record that `address` was kept from trying to sign in: one event per source and minute."""
    if first_in_a_minute(action=Action.PERSON_LOGIN_REFUSED, source=limits.network_of(address)):
        with transaction.atomic():
            record(
                action=Action.PERSON_LOGIN_REFUSED,
                actor=Actor.anonymous(address),
                subject=_attempted(username),
                after={"address": address},
            )


def _attempted(username: str) -> Subject:
    # What was typed is recorded only if it names a person: people type passwords into the wrong field.
    person = User.objects.filter(username__iexact=username).first()
    return person_subject(person) if person is not None else Subject(kind="person", key="", label="an unknown name")
