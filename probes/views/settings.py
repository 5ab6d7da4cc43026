"""The settings page of a partition or probe set."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from people.actor import actor_of
from people.permissions import operator_required
from probes import operations, windows
from probes.forms import SettingsForm
from probes.kv_models import MODELS
from probes.members import roll_of
from probes.pairing import full_cycle
from probes.profiles import NAMES, words_for
from probes.views.scopes import scope_or_404


@require_http_methods(["GET", "HEAD", "POST"])
@operator_required
def settings(request: HttpRequest, public_id: str) -> HttpResponse:
    """Show the settings, or change them."""
    scope = scope_or_404(request, public_id)
    if request.method == "POST":
        form = SettingsForm(request.POST)
        wanted = form.settings()
        if wanted is not None:
            operations.change_settings(
                scope=scope, settings=wanted, actor=actor_of(request.user), reason=form.cleaned_data["reason"]
            )
            is_on = f"The probes of {scope} are on.", f"The probes of {scope} are off."
            messages.success(request, is_on[not wanted.is_enabled])
            return redirect("probes:scope", scope.public_id)
    else:
        form = SettingsForm.of(scope)
    roll = roll_of(scope)
    pairs = full_cycle([member.host.pk for member in roll.members])
    ticks = -(-pairs // max(1, scope.budget))
    return render(
        request,
        "probes/settings.html",
        {
            "scope": scope,
            "form": form,
            "roll": roll,
            "pairs": pairs,
            "cycle_h": ticks * scope.interval_s / 3600,
            "is_closed": windows.is_closed(windows.parse(scope.windows), timezone.now()),
            "profiles": [(name, words_for(name)) for name in NAMES],
            "models": MODELS,
        },
        status=422 if form.errors else 200,
    )
