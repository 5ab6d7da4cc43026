"""Where somebody arrives: operators and auditors in the console, a tenant's people in their portal."""

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console.views.home import home as console_home
from people.models import TenantRole
from people.permissions import may_review, person_required


@require_safe
@never_cache
def home(request: HttpRequest) -> HttpResponseBase:
    """The first page of whoever asks; a stranger hears what the console says to strangers."""
    user = request.user
    if user.is_authenticated and not may_review(user) and TenantRole.objects.of_person(user).exists():
        return redirect("portal:portal")
    answer: HttpResponseBase = console_home(request)
    return answer


@require_safe
@never_cache
@person_required
def portal(request: HttpRequest) -> HttpResponse:
    """To the person's tenant, or a choice of several; without any there is nothing here."""
    held = TenantRole.objects.of_person(request.user)
    roles = list(held.select_related("tenant").order_by("tenant__name"))
    if len(roles) == 1:
        return redirect("portal:servers", roles[0].tenant.public_id)
    return render(
        request, "portal/choose.html" if roles else "404.html", {"roles": roles}, status=200 if roles else 404
    )
