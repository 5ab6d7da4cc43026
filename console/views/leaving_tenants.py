"""Suspend a tenant, let it in again, and let it go: the buttons of the tenant's page, for administrators."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from console.views.tenants import found_tenant, page
from partitions import operations as partitions
from partitions.errors import PartitionsError
from people import suspension
from people.actor import actor_of
from people.errors import PeopleError
from people.fresh import fresh_login_required
from people.models import Tenant, User
from people.permissions import admin_required

type Act = Callable[[Tenant, User, str], str]


def _step(act: Act) -> Callable[..., HttpResponse]:
    """A button: does `act(tenant, person, reason)` and says what is so now, or why it was not done."""

    @require_POST
    @admin_required
    @fresh_login_required
    def view(request: HttpRequest, public_id: str) -> HttpResponse:
        found, person = found_tenant(request, public_id), request.user
        assert isinstance(person, User)  # noqa: S101  the decorator saw to it
        try:
            said = act(found, person, request.POST.get("reason", "")[:1000])
        except (PeopleError, PartitionsError) as refusal:
            return page(request, found_tenant(request, public_id), status=409, refusal=str(refusal))
        messages.success(request, said)
        return redirect("console:tenant", public_id=public_id)

    return view


def _suspend(tenant: Tenant, person: User, reason: str) -> str:
    suspension.suspend(tenant=tenant, actor=actor_of(person), reason=reason)
    return _("{tenant} is suspended. Its people’s sessions have ended; on the fabric nothing changed.").format(
        tenant=tenant
    )


def _resume(tenant: Tenant, person: User, reason: str) -> str:
    suspension.resume(tenant=tenant, actor=actor_of(person), reason=reason)
    return _("The people of {tenant} may sign in again.").format(tenant=tenant)


def _empty(tenant: Tenant, person: User, reason: str) -> str:
    ports = partitions.stage_everybody_out(tenant=tenant, actor=person, reason=reason)
    said = ngettext(
        "{ports} port is staged to leave. Review and roll out this tenant’s changes.",
        "{ports} ports are staged to leave. Review and roll out this tenant’s changes.",
        ports,
    )
    return said.format(ports=ports)


def _finish(tenant: Tenant, person: User, reason: str) -> str:
    retired, roles, tokens = partitions.finish_offboarding(tenant=tenant, actor=person, reason=reason)
    said = _("{tenant} is gone: {retired} partitions retired, {roles} roles and {tokens} tokens ended.")
    return said.format(tenant=tenant, retired=retired, roles=roles, tokens=tokens)


suspend, resume, empty, finish = _step(_suspend), _step(_resume), _step(_empty), _step(_finish)
