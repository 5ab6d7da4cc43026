"""One manager host: what is pinned, what is missing there, and its retirement."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from deploy import host_check
from deploy.models import HostCheck
from inventory import operations
from inventory.errors import InventoryError
from inventory.models import ManagerHost
from people.actor import actor_of
from people.permissions import is_operator, operator_required, reviewer_required
from remote.fingerprint import fingerprint


@require_safe
@never_cache
@reviewer_required
def manager(request: HttpRequest, public_id: str) -> HttpResponse:
    """The host with its newest check; the fragment asks again while one is under way. Retired hosts have it too."""
    host = get_object_or_404(ManagerHost.with_retired.select_related("subnet"), public_id=public_id)
    checks = HostCheck.objects.filter(host=host).order_by("-id")
    newest = checks.first()
    shown = newest if newest is not None and not newest.is_pending else checks.exclude(finished_at=None).first()
    facts = (shown.facts if shown is not None else None) or {}
    name = "console/manager.html#body" if request.htmx else "console/manager.html"  # type: ignore[attr-defined]
    return render(
        request,
        name,
        {
            "host": host,
            "fingerprint": fingerprint(host.host_key),
            "newest": newest,
            "is_pending": newest is not None and newest.is_pending,
            "shown": shown,
            "facts": facts,
            "pieces": [
                {"name": name.replace("_", " "), "is_there": is_there, "sentence": sentence}
                for name, is_there, sentence in facts.get("pieces", ())
            ],
            "options": sorted(facts.get("options", {}).items()),
            "may_act": is_operator(request.user) and host.retired_at is None,
        },
    )


@require_POST
@operator_required
def check(request: HttpRequest, public_id: str) -> HttpResponse:
    """Have the managers' worker ask the host what is missing."""
    host = get_object_or_404(ManagerHost, public_id=public_id)
    host_check.request(host=host, actor=actor_of(request.user))
    return redirect("console:manager", public_id=public_id)


@require_POST
@operator_required
def retire(request: HttpRequest, public_id: str) -> HttpResponse:
    """Take the host out for good."""
    host = get_object_or_404(ManagerHost, public_id=public_id)
    try:
        operations.retire_manager_host(
            manager_host=host, actor=actor_of(request.user), reason=request.POST.get("reason", "")
        )
    except InventoryError as refusal:
        messages.error(request, str(refusal))
        return redirect("console:manager", public_id=public_id)
    messages.success(request, f"Manager host {host.name} is retired. Stop OpenSM there if the machine still runs.")
    return redirect("console:managers")
