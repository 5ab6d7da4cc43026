"""People: who there is, what they may do, and what an administrator does for somebody who is locked out."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console.people_rows import marks_of
from console.requests import filter_text
from people import accounts, operations, sessions
from people.actor import actor_of
from people.errors import NoSuchRole, PeopleError
from people.fresh import fresh_login_required
from people.models import Tenant, TenantRole, User
from people.permissions import admin_required, is_admin, reviewer_required


class PersonForm(forms.Form):
    """What a new account needs; the password is made, not chosen."""

    username = forms.CharField(max_length=150)
    name = forms.CharField(max_length=150, required=False)
    role = forms.ChoiceField(choices=User.Role.choices, initial=User.Role.NONE)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@reviewer_required
def people(request: HttpRequest) -> HttpResponse:
    """Everybody; POST makes an account and shows its password, this once."""
    return _create(request) if request.method == "POST" else _list(request, PersonForm())


@admin_required
@fresh_login_required
@sensitive_variables("password")
def _create(request: HttpRequest) -> HttpResponse:
    form = PersonForm(request.POST)
    if not form.is_valid():
        return _list(request, form, status=422)
    password = operations.new_password()
    try:
        person = operations.create_person(
            password=password, actor=actor_of(request.user), is_given=True, **form.cleaned_data
        )
    except ValidationError as error:
        form.add_error("username", " ".join(error.messages))
        return _list(request, form, status=422)
    except PeopleError as refusal:
        form.add_error("username", str(refusal))
        return _list(request, form, status=422)
    return _list(request, PersonForm(), status=201, made=person, password=password)


def _list(request: HttpRequest, form: PersonForm, *, status: int = 200, **made: object) -> HttpResponse:
    asked = filter_text(request, "q")
    rows = User.objects.visible_to(request.user).named_like(asked)
    roles = Prefetch("tenant_roles", TenantRole.objects.select_related("tenant").order_by("tenant__name"))
    shown = {
        "rows": [
            (row, marks_of(row)) for row in rows.with_second_factor().prefetch_related(roles).order_by("username")
        ],
        "q": asked,
        "form": form,
        "may_act": is_admin(request.user),
        **made,
    }
    return render(request, "console/people.html", shown, status=status)


@require_safe
@never_cache
@reviewer_required
def person(request: HttpRequest, public_id: str) -> HttpResponse:
    """One person: roles, second factor, sessions, and the buttons for an administrator."""
    return _page(request, _found(request, public_id))


def _page(request: HttpRequest, found: User, *, status: int = 200, **more: object) -> HttpResponse:
    shown = {
        "shown": found,
        "marks": marks_of(found),
        "roles": found.tenant_roles.select_related("tenant").order_by("tenant__name"),
        "site_roles": User.Role.choices,
        "tenant_roles": TenantRole.Role.choices,
        "tenants": Tenant.objects.visible_to(request.user).order_by("name"),
        "may_act": is_admin(request.user),
        "is_oneself": found.pk == request.user.pk,
        **more,
    }
    return render(request, "console/person.html", shown, status=status)


def _step(act: Callable[..., str]) -> Callable[..., HttpResponse]:
    """A button of the page: does `act(person, request)` and says what is so now, or why it was not done."""

    @require_POST
    @admin_required
    @fresh_login_required
    def view(request: HttpRequest, public_id: str) -> HttpResponse:
        found = _found(request, public_id)
        try:
            said = act(found, request)
        except PeopleError as refusal:
            return _page(request, _found(request, public_id), status=409, refusal=str(refusal))
        messages.success(request, said)
        return redirect("console:person", public_id=public_id)

    return view


def _set_role(found: User, request: HttpRequest) -> str:
    role = _one_of(request.POST.get("role", ""), User.Role)
    operations.set_role(person=found, role=role, actor=actor_of(request.user), reason=_reason(request))
    return f"{found}: {User.Role(role).label}. Their sessions have ended."


def _give_role(found: User, request: HttpRequest) -> str:
    tenant = _tenant(request)
    role = _one_of(request.POST.get("role", ""), TenantRole.Role)
    operations.give_role(person=found, tenant=tenant, role=role, actor=actor_of(request.user))
    return f"{found} is {TenantRole.Role(role).label} of {tenant} now."


def _take_role(found: User, request: HttpRequest) -> str:
    tenant = _tenant(request)
    accounts.take_role(person=found, tenant=tenant, actor=actor_of(request.user))
    return f"{found} has no role for {tenant} any more."


def _lock(found: User, request: HttpRequest) -> str:
    accounts.lock(person=found, actor=actor_of(request.user), reason=_reason(request))
    return f"The account of {found} is locked. Its sessions and tokens are worth nothing."


def _unlock(found: User, request: HttpRequest) -> str:
    accounts.unlock(person=found, actor=actor_of(request.user), reason=_reason(request))
    return f"The account of {found} is open again."


def _reset(found: User, request: HttpRequest) -> str:
    accounts.reset_second_factor(person=found, actor=actor_of(request.user), reason=_reason(request))
    return f"{found} has no second factor any more. Give them a new password too, unless you are sure of theirs."


def _end_sessions(found: User, request: HttpRequest) -> str:
    sessions.end_all(person=found, actor=actor_of(request.user), reason=_reason(request))
    return f"Every session of {found} has ended."


set_role, give_role, take_role = _step(_set_role), _step(_give_role), _step(_take_role)
lock, unlock = _step(_lock), _step(_unlock)
reset_second_factor, end_sessions = _step(_reset), _step(_end_sessions)


@require_POST
@never_cache
@admin_required
@fresh_login_required
@sensitive_variables("password")
def new_password(request: HttpRequest, public_id: str) -> HttpResponse:
    """Give a new password and show it, this once."""
    found = _found(request, public_id)
    try:
        password = accounts.give_new_password(person=found, actor=actor_of(request.user), reason=_reason(request))
    except PeopleError as refusal:
        return _page(request, found, status=409, refusal=str(refusal))
    return _page(request, found, password=password)


def _found(request: HttpRequest, public_id: str) -> User:
    found: User = get_object_or_404(User.objects.visible_to(request.user).with_second_factor(), public_id=public_id)
    return found


def _tenant(request: HttpRequest) -> Tenant:
    return get_object_or_404(Tenant.objects.visible_to(request.user), public_id=request.POST.get("tenant", ""))


def _one_of(value: str, choices: Any) -> str:
    if value not in choices.values:
        raise NoSuchRole("Choose one of the roles that the page lists.")
    return value


def _reason(request: HttpRequest) -> str:
    return request.POST.get("reason", "").strip()[:1000]
