"""What a person may do: predicates for verbs (`rules`), and decorators for views.

What a person may *see* is decided in querysets, by `visible_to`. No template decides anything.
"""

from collections.abc import Awaitable, Callable
from copy import copy
from functools import wraps
from typing import Any, cast

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import resolve_url
from django.utils.http import urlencode
from django_htmx.http import HttpResponseClientRedirect
from rules.permissions import add_perm
from rules.predicates import is_active, is_authenticated, predicate


def _has_role(user: Any, *roles: str) -> bool:
    if user is None or not user.is_authenticated or getattr(user, "narrowed_to", None) is not None:
        return False  # by a token of a tenant nobody is anything for the provider
    return bool(user.is_active and user.role in roles)


@predicate  # type: ignore[untyped-decorator]  # rules has no types
def is_admin(user: Any) -> bool:
    """Whether `user` looks after people and tenants, beside all that an operator does."""
    return _has_role(user, "ADMIN")


@predicate  # type: ignore[untyped-decorator]  # rules has no types
def is_operator(user: Any) -> bool:
    """Whether `user` runs the fabric for the provider: operators, and administrators."""
    return _has_role(user, "OPERATOR", "ADMIN")


@predicate  # type: ignore[untyped-decorator]  # rules has no types
def is_auditor(user: Any) -> bool:
    """Whether `user` reviews what happened, and changes nothing."""
    return _has_role(user, "AUDITOR")


may_review = is_operator | is_auditor


@predicate  # type: ignore[untyped-decorator]  # rules has no types
def is_somebodys(user: Any) -> bool:
    """Whether `user` has to do with the fabric at all: with a role for the provider or for a tenant."""
    if user is None or not user.is_authenticated or not user.is_active:
        return False
    return bool(may_review(user) or is_a_tenants(user))


@predicate  # type: ignore[untyped-decorator]  # rules has no types
def is_a_tenants(user: Any) -> bool:
    """Whether `user` has a role for some tenant, be it a viewer's."""
    if user is None or not user.is_authenticated or not user.is_active:
        return False
    return bool(user.tenant_roles.of_person(user).exists())


@predicate  # type: ignore[untyped-decorator]  # rules has no types
def acts_for_a_tenant(user: Any) -> bool:
    """Whether `user` may change anything in the name of some tenant: as its member or administrator."""
    if user is None or not user.is_authenticated or not user.is_active:
        return False
    return bool(user.tenant_roles.of_person(user).filter(role__in=("MEMBER", "ADMIN")).exists())


def narrowed(user: Any, tenant: Any) -> Any:
    """`user` as by a token of `tenant`: another object of theirs, to be asked and never saved (ADR 50)."""
    one = copy(user)
    one.narrowed_to = tenant
    return one


add_perm("people.administer", is_admin)  # type: ignore[no-untyped-call]
add_perm("people.operate", is_operator)  # type: ignore[no-untyped-call]
add_perm("people.review", may_review)  # type: ignore[no-untyped-call]


def admin_required[V: Callable[..., Any]](view: V) -> V:
    """Let only administrators in; otherwise as `operator_required`."""
    return _only(is_admin, view)


def operator_required[V: Callable[..., Any]](view: V) -> V:
    """Let only operators in. Strangers get 404, so that they do not learn what exists; anonymous people may log in."""
    return _only(is_operator, view)


def reviewer_required[V: Callable[..., Any]](view: V) -> V:
    """Let only operators and auditors in; otherwise as `operator_required`."""
    return _only(may_review, view)


def person_required[V: Callable[..., Any]](view: V) -> V:
    """Let everybody in who is logged in."""
    return _only(is_authenticated & is_active, view)


def _only[V: Callable[..., Any]](may_enter: Callable[[Any], bool], view: V) -> V:
    def refusal(request: HttpRequest, user: Any) -> HttpResponseBase | None:
        if not user.is_authenticated:
            return to_login(request)
        if not may_enter(user):
            raise Http404
        return None

    if iscoroutinefunction(view):

        @wraps(view)
        async def guarded_async(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            answer: Awaitable[HttpResponseBase]
            refused = refusal(request, await request.auser())
            if refused is not None:
                return refused
            answer = view(request, *args, **kwargs)
            return await answer

        return cast(V, guarded_async)

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        refused = refusal(request, request.user)
        if refused is not None:
            return refused
        response: HttpResponseBase = view(request, *args, **kwargs)
        return response

    return cast(V, guarded)


def to_login(request: HttpRequest) -> HttpResponseBase:
    """Send an anonymous person to the login page and back; an htmx request moves the whole page, not its fragment."""
    login = resolve_url(settings.LOGIN_URL)
    if request.headers.get("HX-Request") == "true":
        here = getattr(getattr(request, "htmx", None), "current_url_abs_path", None)  # None for another host's
        return HttpResponseClientRedirect(f"{login}?{urlencode({'next': here})}" if here else login)
    return HttpResponseRedirect(f"{login}?{urlencode({'next': request.get_full_path()})}")
