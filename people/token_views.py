"""One's own API tokens: made, shown once, and revoked."""

from datetime import timedelta
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from people import operations
from people.actor import actor_of
from people.errors import PeopleError
from people.fresh import fresh_login_required
from people.models import Tenant, TenantRole, Token, User
from people.permissions import may_review, person_required
from people.scopes import Scope, scopes_of

LIFETIMES: Final = (("1", "a day"), ("7", "a week"), ("30", "30 days"), ("90", "90 days"), ("365", "a year"))


class TokenForm(forms.Form):
    """What a token is called, what it is for, and how long it lives."""

    name = forms.CharField(max_length=60)
    days = forms.ChoiceField(choices=LIFETIMES, initial="30")
    scopes = forms.MultipleChoiceField(error_messages={"required": "Say what the token is for."})
    tenant = forms.ChoiceField(
        required=False, error_messages={"invalid_choice": "You have no role for that tenant. Choose one from the list."}
    )

    def __init__(self, *args: Any, offered: list[Scope], tenants: list[Tenant], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        narrow = self.fields["tenant"]
        assert isinstance(narrow, forms.ChoiceField)  # noqa: S101  declared above
        narrow.choices = [("", ""), *((tenant.public_id, tenant.name) for tenant in tenants)]
        scopes = self.fields["scopes"]
        assert isinstance(scopes, forms.MultipleChoiceField)  # noqa: S101  declared above
        scopes.choices = [(scope.name, scope.words) for scope in offered]


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@person_required
def tokens(request: HttpRequest) -> HttpResponse:
    """List one's tokens; POST makes one and shows it, this once."""
    if request.method == "POST":
        return _make(request)
    return _page(request, _form(_person(request)))


@fresh_login_required
@sensitive_variables("text")
def _make(request: HttpRequest) -> HttpResponse:
    person = _person(request)
    form = _form(person, request.POST)
    if not form.is_valid():
        return _page(request, form, status=422)
    try:
        token, text = operations.create_own_token(
            person=person,
            name=form.cleaned_data["name"],
            lifetime=timedelta(days=int(form.cleaned_data["days"])),
            scopes=form.cleaned_data["scopes"],
            actor=actor_of(person),
            tenant=next((one for one in _tenants(person) if one.public_id == form.cleaned_data["tenant"]), None),
        )
    except PeopleError as refusal:
        form.add_error(None, str(refusal))
        return _page(request, form, status=422)
    return _page(request, _form(person), status=201, made=token, text=text)


@require_POST
@person_required
def revoke(request: HttpRequest, key: str) -> HttpResponse:
    """Make one of one's tokens useless at once."""
    token = get_object_or_404(Token.objects.visible_to(request.user), token_key=key)
    operations.revoke_token(token=token, actor=actor_of(request.user))
    messages.success(request, f"The token “{token.name}” is worth nothing from now on.")
    return redirect("tokens")


def _form(person: User, *posted: Any) -> TokenForm:
    return TokenForm(*posted, offered=scopes_of(person), tenants=_tenants(person))


def _tenants(person: User) -> list[Tenant]:
    """The tenants that a token may be narrowed to; none for who is but one tenant's, whose token is that anyway."""
    roles = TenantRole.objects.of_person(person).select_related("tenant").order_by("tenant__name")
    found = [role.tenant for role in roles]
    return found if len(found) > 1 or may_review(person) else []


def _page(request: HttpRequest, form: TokenForm, *, status: int = 200, **made: object) -> HttpResponse:
    shown = {
        "form": form,
        "offered": scopes_of(request.user),
        "tokens": Token.objects.visible_to(request.user).select_related("tenant").order_by("-created"),
        "most": operations.MOST_TOKENS,
        **made,
    }
    return render(request, "account/tokens.html", shown, status=status)


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101  the decorator saw to it
    return request.user
