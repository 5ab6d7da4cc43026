"""What a tenant's people may do by themselves: the form on the tenant's page, and the one address it posts to."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from people.actor import actor_of
from people.errors import PeopleError
from people.models import Tenant
from people.permissions import operator_required
from people.tenant_policy import MOST, set_tenant_policy


class PolicyForm(forms.Form):
    """Policy and quotas."""

    moves = forms.ChoiceField(choices=Tenant.Moves)
    most_servers = forms.IntegerField(min_value=0, max_value=MOST, required=False)
    most_partitions = forms.IntegerField(min_value=0, max_value=MOST)
    most_rollouts_per_hour = forms.IntegerField(min_value=0, max_value=MOST)


@require_POST
@operator_required
def policy(request: HttpRequest, public_id: str) -> HttpResponse:
    """Set it, and go back to the tenant's page."""
    tenant = get_object_or_404(Tenant.objects.visible_to(request.user), public_id=public_id)
    form = PolicyForm(request.POST)
    if not form.is_valid():
        wrong = "; ".join(
            f"{name.replace('_', ' ')}: {' '.join(map(str, errors))}" for name, errors in form.errors.items()
        )
        messages.error(request, gettext("Nothing was changed. %(wrong)s") % {"wrong": wrong})
        return redirect("console:tenant", public_id=public_id)
    try:
        set_tenant_policy(
            tenant=tenant, actor=actor_of(request.user), reason=request.POST.get("reason", ""), **form.cleaned_data
        )
    except PeopleError as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, gettext("That is what %(tenant)s may do by itself now.") % {"tenant": tenant})
    return redirect("console:tenant", public_id=public_id)
