"""The door: which tenant a request is about, what the person may do for it, and what a refusal looks like.

Whoever has no role for the tenant gets the answer of a page that does not exist, operators too: theirs is the console.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext

from console.requests import told_as_json, wants_json
from people.models import Tenant, TenantRole, User
from people.permissions import person_required


@dataclass(frozen=True, slots=True)
class Seat:
    """A person at the door of one tenant."""

    person: User
    tenant: Tenant
    role: TenantRole.Role

    @property
    def may_act(self) -> bool:
        """Whether they may change anything: a viewer may not."""
        return self.role in (TenantRole.Role.MEMBER, TenantRole.Role.ADMIN)


type SeatedView = Callable[..., HttpResponse]


def seat_of(user: User, public_id: str) -> Seat:
    """The seat of `user` at the tenant with this public id. Raises Http404 without a role there that is in force."""
    held = TenantRole.objects.of_person(user).filter(tenant__public_id=public_id)
    role = held.select_related("tenant").first()
    if role is None:
        raise Http404
    return Seat(user, role.tenant, TenantRole.Role(role.role))


def tenant_page(view: SeatedView) -> SeatedView:
    """Let the tenant's people in; the view is called with their seat instead of the tenant's id."""

    @person_required
    @wraps(view)
    def guarded(request: HttpRequest, tenant: str, *args: Any, **kwargs: Any) -> HttpResponse:
        assert isinstance(request.user, User)  # noqa: S101  person_required saw to it
        seat = seat_of(request.user, tenant)
        request.portal_seat = seat  # type: ignore[attr-defined]
        return view(request, seat, *args, **kwargs)

    return guarded


def acting(view: SeatedView) -> SeatedView:
    """Let only members and administrators of the tenant do this; a viewer is told so. Under `tenant_page`."""

    @wraps(view)
    def guarded(request: HttpRequest, seat: Seat, *args: Any, **kwargs: Any) -> HttpResponse:
        if not seat.may_act:
            return refusal(request, seat, viewer_sentence(seat), status=403)
        return view(request, seat, *args, **kwargs)

    return guarded


def viewer_sentence(seat: Seat) -> str:
    """Why a viewer may not, and who can mend it."""
    admins = TenantRole.objects.filter(tenant=seat.tenant, role=TenantRole.Role.ADMIN, user__is_active=True)
    names = ", ".join(str(row.user) for row in admins.select_related("user").order_by("user__username")[:3])
    return gettext(
        "You are a viewer of %(tenant)s, and viewers change nothing. Nothing was changed. Ask %(who)s to make you a "
        "member."
    ) % {"tenant": seat.tenant.name, "who": names or gettext("your provider")}


def refusal(request: HttpRequest, seat: Seat, sentence: str, *, status: int = 409) -> HttpResponse:
    """The sentence as a page, or to the page's own script."""
    if wants_json(request):
        return told_as_json(sentence, status=status)
    return render(request, "portal/refused.html", {"seat": seat, "sentence": sentence}, status=status)
