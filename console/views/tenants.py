"""Tenants: who they are, who acts for them, and what they have."""

from django import forms
from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from partitions import offboarding
from partitions.models import Partition
from partitions.selection import Selection
from people import operations
from people.actor import actor_of
from people.errors import PeopleError
from people.fresh import fresh_login_required
from people.models import Tenant
from people.permissions import admin_required, is_admin, is_operator, reviewer_required


class TenantForm(forms.Form):
    """What a new tenant needs."""

    name = forms.CharField(max_length=80)
    slug = forms.CharField(max_length=40, required=False)


@require_http_methods(["GET", "HEAD", "POST"])
@reviewer_required
def tenants(request: HttpRequest) -> HttpResponse:
    """All tenants with their counts; POST creates one."""
    return _create(request) if request.method == "POST" else _list(request, TenantForm())


@admin_required
@fresh_login_required
def _create(request: HttpRequest) -> HttpResponse:
    form = TenantForm(request.POST)
    if not form.is_valid():
        return _list(request, form, status=422)
    try:
        tenant = operations.create_tenant(actor=actor_of(request.user), **form.cleaned_data)
    except PeopleError as refusal:
        form.add_error("name", str(refusal))
        return _list(request, form, status=422)
    messages.success(request, f"{tenant} is called {tenant.slug} in partitions.conf, for ever.")
    return redirect("console:tenant", public_id=tenant.public_id)


def _list(request: HttpRequest, form: TenantForm, *, status: int = 200) -> HttpResponse:
    in_use = Q(partitions__retired_at=None)
    rows = (
        Tenant.objects.visible_to(request.user)
        .annotate(
            people=Count("roles", distinct=True),
            partition_count=Count("partitions", filter=in_use, distinct=True),
            servers=Count("partitions__memberships__port__hca__server", filter=in_use, distinct=True),
        )
        .select_related("probe_consent")
        .order_by("name")
    )
    shown = {"rows": rows, "form": form, "may_act": is_admin(request.user)}
    return render(request, "console/tenants.html", shown, status=status)


@require_safe
@reviewer_required
def tenant(request: HttpRequest, public_id: str) -> HttpResponse:
    """One tenant: its people with their roles, its partitions, and how it leaves."""
    return page(request, found_tenant(request, public_id))


def page(request: HttpRequest, found: Tenant, *, status: int = 200, refusal: str = "") -> HttpResponse:
    """The page of one tenant, with why something was not done."""
    shown = {
        "tenant": found,
        "roles": found.roles.select_related("user").order_by("user__username"),
        "partitions": Partition.objects.filter(tenant=found).order_by("retired_at", "name"),
        "leaving": offboarding.standing(found),
        "plan_selection": str(Selection.of_tenant(found)),
        "may_act": is_admin(request.user),
        "refusal": refusal,
        "may_set_policy": is_operator(request.user),
    }
    return render(request, "console/tenant.html", shown, status=status)


def found_tenant(request: HttpRequest, public_id: str) -> Tenant:
    """The tenant of an address, if the person may know of it."""
    known = Tenant.objects.visible_to(request.user).select_related("probe_consent")
    found: Tenant = get_object_or_404(known, public_id=public_id)
    return found
