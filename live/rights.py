"""Who may listen to what. Asked when a stream opens and again every few seconds while it is open."""

from collections.abc import Iterable
from importlib import import_module

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest

from live.hints import PROVIDER, tenant_audience
from people.models import TenantRole, User
from people.permissions import may_review
from people.sessions import why_over

type Audiences = frozenset[str]


def audiences_of(user: object) -> Audiences:
    """What `user` may listen to: that of the provider's people, and that of each tenant whose role they have."""
    if not isinstance(user, User) or not user.is_active:
        return frozenset()
    of_tenants = TenantRole.objects.of_person(user).values_list("tenant__public_id", flat=True)
    found = {tenant_audience(public_id) for public_id in of_tenants}
    return frozenset(found | {PROVIDER} if may_review(user) else found)


def audiences_by_session(keys: Iterable[str]) -> dict[str, Audiences]:
    """What each session may listen to now; nothing for one that is over or whose password was changed.

    Three queries a session.
    """
    return {key: audiences_of(_user_of(key)) for key in set(keys)}


def _user_of(session_key: str) -> object:
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    request.user = get_user(request)
    is_over = isinstance(request.user, User) and why_over(request)
    return AnonymousUser() if is_over else request.user
