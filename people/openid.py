"""Signing in with an OpenID provider: who comes that way, which role they get, and what is refused.

A local account is never joined to a provider's by its name or address: whoever names accounts there could take any
here.
"""

from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import parse_qs, urlencode, urlsplit

from allauth.account.adapter import get_adapter as account_adapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp, SocialLogin
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.crypto import constant_time_compare, salted_hmac
from requests import RequestException

from audit.actions import Action
from audit.once import first_in_a_minute
from audit.record import record
from audit.values import SYSTEM, Actor, Subject
from people import operations
from people.actor import person_subject
from people.errors import LastAdmin
from people.models import User
from people.names import only_seen

NEEDED: Final = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri", "issuer")
RANK: Final = ("ADMIN", "OPERATOR", "AUDITOR")  # of several groups the strongest role counts


class CheckedProvider(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # allauth has no types
    """The provider as allauth asks it, and what it says checked as OpenID Connect Core asks for."""

    @property
    def openid_config(self) -> dict[str, str]:
        """Its description. Raises OAuth2Error when it is none, or another's (Discovery 1.0, 4.3)."""
        try:
            found = super().openid_config
        except AttributeError as error:
            raise OAuth2Error("the provider's description is no JSON object") from error
        if not isinstance(found, dict) or not all(isinstance(found.get(name), str) for name in NEEDED):
            raise OAuth2Error(f"the provider's description lacks one of {', '.join(NEEDED)}")
        configured = self.get_provider().app.settings["server_url"]
        if found["issuer"].rstrip("/") != configured:
            raise OAuth2Error("the provider's description names another issuer than FABRICUI_OIDC_ISSUER")
        return cast(dict[str, str], found)

    def get_access_token_data(self, *args: Any, **kwargs: Any) -> Any:
        """Fetch the tokens; the signature of the identity is checked although it came straight from the provider."""
        data = super().get_access_token_data(*args, **kwargs)
        self.did_fetch_access_token = False
        if not isinstance(data, dict) or not data.get("id_token"):
            raise OAuth2Error("the provider gave no identity")
        return data

    def complete_login(self, request: HttpRequest, app: SocialApp, token: Any, **kwargs: Any) -> SocialLogin:
        """Put the login together from the identity and the user info, which must be of one person (Core 1.0, 5.3.2)."""
        identity = self._identity(app, kwargs["response"]["id_token"], nonce_of(request.GET.get("state", "")))
        told = self._fetch_user_info(token.token)
        if not isinstance(told, dict) or not told.get("sub") or told["sub"] != identity.get("sub"):
            raise OAuth2Error("the provider's user info is of another person than its identity")
        return self.get_provider().sociallogin_from_response(request, {"userinfo": told, "id_token": identity})

    def _identity(self, app: SocialApp, text: object, nonce: str) -> dict[str, Any]:
        """What the identity says: allauth checks signature, issuer and audience, we the rest of Core 1.0, 3.1.3.7."""
        try:
            found = self._decode_id_token(app, text)
        except (KeyError, TypeError, ValueError, AttributeError) as error:  # a header that names no key, or is odd
            raise OAuth2Error("the provider's identity cannot be read") from error
        if "exp" not in found or "iat" not in found:
            raise OAuth2Error("the provider's identity does not say until when it is good")
        audience = found["aud"] if isinstance(found["aud"], list) else [found["aud"]]
        party = found.get("azp", app.client_id if audience == [app.client_id] else None)
        if party != app.client_id:
            raise OAuth2Error("the provider's identity was given to another client")
        if not constant_time_compare(str(found.get("nonce", "")), nonce):
            raise OAuth2Error("the provider's identity answers another login than this one")
        return cast(dict[str, Any], found)


class OpenIDAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Whoever the provider knows may come in; what they may do here is another question."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        """Everybody whom the provider lets sign in for this client has an account."""
        return True

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Let the claim decide on the role of somebody who is known, where one is configured."""
        if sociallogin.state.get("process") != "login":
            # allauth would join the identity to whoever is signed in here; accounts are never joined.
            self._refuse(request, "An identity of the provider cannot be joined to an account that is here already.")
        sociallogin.email_addresses = []  # nothing here goes by the address
        if not sociallogin.is_existing or not settings.OIDC_ROLE_CLAIM:
            return
        try:
            operations.set_role(
                person=sociallogin.user, role=_role(sociallogin), actor=SYSTEM,
                reason=f"the claim {settings.OIDC_ROLE_CLAIM} of the provider",
            )  # fmt: skip
        except LastAdmin as error:
            self._refuse(request, str(error))

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: object = None) -> User:
        """Create the person at the first login, with the role that the claim gives, or none."""
        person = cast(User, sociallogin.user)
        with transaction.atomic():
            # allauth empties a name that is taken.
            person.username = _free_name(str(sociallogin.account.extra_data["userinfo"].get("preferred_username", "")))
            person.first_name, person.last_name = (
                only_seen(name)[:150] for name in (person.first_name, person.last_name)
            )
            person.email = ""
            person.role = _role(sociallogin)
            person.set_unusable_password()
            sociallogin.save(request)
            record(
                action=Action.PERSON_CREATE,
                actor=SYSTEM,
                subject=person_subject(person),
                after={"username": person.username, "name": person.get_full_name(), "role": person.role},
                reason=f"first login with {settings.OIDC_NAME}",
            )
        return person

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: object,
        error: object = None,
        exception: object = None,
        extra_context: object = None,
    ) -> None:
        """Record the failure once a minute and address, and say that nobody was signed in."""
        self._refuse(request, str(exception or f"the login was {error}"))

    def _refuse(self, request: HttpRequest, why: str) -> None:
        raise ImmediateHttpResponse(refusal(request, why))


def login(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Send the browser to the provider's own login page, with state and PKCE of allauth's and a nonce of ours."""
    response = _answer(OAuth2LoginView, request, provider_id)
    if isinstance(response, HttpResponseRedirect):
        state = parse_qs(urlsplit(response.url).query).get("state", [""])[0]
        return HttpResponseRedirect(f"{response.url}&{urlencode({'nonce': nonce_of(state)})}")
    return response


def callback(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Take the code that the browser brings back, and sign its person in."""
    return _answer(OAuth2CallbackView, request, provider_id)


def nonce_of(state: str) -> str:
    """The nonce of the login with `state`, which is random, of one session and good once: so is what follows."""
    return salted_hmac("people.openid nonce", state, algorithm="sha256").hexdigest()


def refusal(request: HttpRequest, why: str) -> HttpResponseBase:
    """The page of a login that failed, with its event; the reason is the provider's or ours, and no secret."""
    address = account_adapter(request).get_client_ip(request)
    if first_in_a_minute(action=Action.PERSON_LOGIN_FAILED, source=f"openid:{address}"):
        with transaction.atomic():
            record(
                action=Action.PERSON_LOGIN_FAILED,
                actor=Actor.anonymous(address),
                subject=Subject(kind="person", key="", label="somebody at the OpenID provider"),
                after={"address": address},
                reason=why[:500],
            )
    return render(request, "account/sso_failed.html", {"name": settings.OIDC_NAME}, status=502)


def _answer(view: Any, request: HttpRequest, provider_id: str) -> HttpResponseBase:
    try:
        adapter = CheckedProvider(request, provider_id)
        adapter.get_provider()
    except SocialApp.DoesNotExist as error:
        raise Http404 from error
    try:
        adapter.openid_config  # noqa: B018  fetched and checked before anything else
        response: HttpResponseBase = view.adapter_view(adapter)(request)
    except (RequestException, OAuth2Error) as error:
        return refusal(request, str(error))
    return response


def _role(sociallogin: SocialLogin) -> User.Role:
    """The strongest role that the configured claim gives; none without a claim, or a match."""
    claimed: set[str] = set()
    for part in ("userinfo", "id_token"):
        told = sociallogin.account.extra_data.get(part)
        held = told.get(settings.OIDC_ROLE_CLAIM) if isinstance(told, Mapping) else None
        claimed |= {held} if isinstance(held, str) else {one for one in held or () if isinstance(one, str)}
    given = {settings.OIDC_ROLES[group].upper() for group in claimed if group in settings.OIDC_ROLES}
    return User.Role(next((role for role in RANK if role in given), User.Role.NONE))


def _free_name(wanted: str) -> str:
    """The name that the provider gives, or one like it that nobody has."""
    wanted = wanted[:140]
    try:
        User._meta.get_field("username").clean(wanted, None)
    except ValidationError:
        wanted = "person"
    name, number = wanted, 1
    while User.objects.filter(username__iexact=name).exists():
        number += 1
        name = f"{wanted}-{number}"
    return name
