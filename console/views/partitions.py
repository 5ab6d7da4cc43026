"""Partitions: the list, and the form that creates one."""

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db.models import Count, F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_safe

from console.frame import the_subnet
from console.requests import person, told_as_json, wants_json
from console.views.home import no_subnet
from inventory.models import Subnet
from partitions import operations, pkeys
from partitions.errors import PartitionsError
from partitions.models import Partition
from people.models import Tenant
from people.permissions import is_operator, operator_required, reviewer_required
from subnet.errors import SubnetError
from subnet.flags import Flags
from subnet.pkey import PKey


class PartitionForm(forms.Form):
    """What a new partition needs; what OpenSM would misread is refused by the operation, with its sentence."""

    tenant = forms.ModelChoiceField(
        queryset=Tenant.objects.order_by("name"), required=False, empty_label=gettext_lazy("The provider")
    )
    name = forms.CharField(max_length=31, strip=True)
    pkey = forms.CharField(max_length=8, required=False, strip=True)
    ipoib = forms.BooleanField(required=False)


@require_http_methods(["GET", "HEAD", "POST"])
@reviewer_required
def partitions(request: HttpRequest) -> HttpResponse:
    """All partitions with their P_Keys and counts; POST creates one."""
    subnet = the_subnet(request)
    if subnet is None:
        return no_subnet(request)
    if request.method == "POST":
        return _create(request, subnet)
    return _page(request, subnet, PartitionForm())


@require_safe
@operator_required
def new(request: HttpRequest) -> HttpResponse:
    """The form that creates a partition, for the board's dialog."""
    return render(request, "console/new_partition.html", {"form": PartitionForm()})


@operator_required
def _create(request: HttpRequest, subnet: Subnet) -> HttpResponse:
    form = PartitionForm(request.POST)
    if not form.is_valid():
        if wants_json(request):
            sentence = " ".join(f"{field}: {error}" for field, errors in form.errors.items() for error in errors)
            return told_as_json(sentence, status=422)
        return _page(request, subnet, form, status=422)
    try:
        typed = form.cleaned_data["pkey"]
        partition = operations.create_partition(
            subnet=subnet,
            tenant=form.cleaned_data["tenant"],
            name=form.cleaned_data["name"],
            pkey=PKey.of_partition(typed) if typed else None,
            flags=Flags(ipoib=form.cleaned_data["ipoib"]),
            actor=person(request),
        )
    except (PartitionsError, SubnetError) as refusal:
        if wants_json(request):
            return told_as_json(str(refusal), status=422)
        form.add_error(None, str(refusal))
        return _page(request, subnet, form, status=422)
    sentence = (
        f"Partition {partition.name} has P_Key {PKey(partition.pkey)}. It changes no port until a server joins it."
    )
    if wants_json(request):
        return told_as_json(sentence, key=partition.public_id)
    messages.success(request, sentence)
    return redirect("console:partition", public_id=partition.public_id)


def _page(request: HttpRequest, subnet: Subnet, form: PartitionForm, *, status: int = 200) -> HttpResponse:
    rows = (
        Partition.objects.filter(subnet=subnet)
        .select_related("tenant")
        .annotate(
            ports=Count("memberships", distinct=True),
            servers=Count("memberships__port__hca__server", distinct=True),
            staged=Count("staged_changes__port__hca__server", distinct=True),
        )
        .order_by(F("retired_at").asc(nulls_first=True), F("tenant__name").asc(nulls_last=True), "name")
    )
    may_act = is_operator(request.user)
    return render(
        request,
        "console/partitions.html",
        {
            "rows": [(row, str(PKey(row.pkey))) for row in rows],
            "form": form,
            "may_act": may_act,
            "pool": pkeys.pool(subnet) if may_act else None,
            "pool_text": ", ".join(f"{first:#06x}–{last:#06x}" for first, last in settings.PKEY_POOL),
            "cool_down_days": settings.PKEY_COOL_DOWN_DAYS,
        },
        status=status,
    )
