"""Enrolment: tokens for servers, shown once with the line that installs the agent; and servers' own credentials."""

from datetime import datetime, timedelta
from typing import Final

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from console import inventory_rows
from console.frame import the_subnet
from console.views.home import no_subnet
from inventory import operations
from inventory.errors import InventoryError
from inventory.models import EnrolmentToken, Server, Subnet
from people.actor import actor_of
from people.permissions import is_operator, operator_required, reviewer_required

SHOWN: Final = 50


class TokenForm(forms.Form):
    """What a token is for; the operation checks the bounds and says them."""

    name = forms.CharField(max_length=60, strip=True)
    uses = forms.IntegerField(min_value=1, max_value=100_000)
    hours = forms.IntegerField(min_value=1, max_value=24 * operations.LONGEST_LIFETIME.days)
    rack = forms.CharField(max_length=60, strip=True, required=False)
    hostnames = forms.CharField(max_length=255, strip=True, required=False)
    networks = forms.CharField(max_length=255, strip=True, required=False)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@reviewer_required
def enrolment(request: HttpRequest) -> HttpResponse:
    """The tokens and the form; POST makes one and shows it this once, in the line to paste on a server."""
    subnet = the_subnet(request)
    if subnet is None:
        return no_subnet(request)
    return _create(request, subnet) if request.method == "POST" else _page(request, subnet, TokenForm())


@operator_required
def _create(request: HttpRequest, subnet: Subnet) -> HttpResponse:
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _page(request, subnet, form, status=422)
    asked = form.cleaned_data
    try:
        secret = operations.create_enrolment_token(
            subnet=subnet,
            name=asked["name"],
            uses=asked["uses"],
            lifetime=timedelta(hours=asked["hours"]),
            actor=actor_of(request.user),
            rack=asked["rack"],
            hostnames=asked["hostnames"],
            networks=asked["networks"],
        )
    except InventoryError as refusal:
        form.add_error(None, str(refusal))
        return _page(request, subnet, form, status=422)
    made = {"made": asked["name"], "uses": asked["uses"], "hostnames": asked["hostnames"]}
    return _page(request, subnet, TokenForm(), secret=secret, status=201, **made)


def _page(
    request: HttpRequest, subnet: Subnet, form: TokenForm, *, status: int = 200, secret: str = "", **more: object
) -> HttpResponse:
    tokens = EnrolmentToken.objects.filter(subnet=subnet).order_by("-id")[:SHOWN]
    now = timezone.now()
    shown = {
        "form": form,
        "secret": secret,
        "install": install_lines(secret) if secret else "",
        "address": settings.REGISTER_URL,
        "tokens": [(token, _standing(token, now)) for token in tokens],
        "is_narrowed": any(form[name].value() for name in ("rack", "hostnames", "networks")),
        "may_act": is_operator(request.user),
        "totals": inventory_rows.totals(subnet),
        **more,
    }
    return render(request, "console/enrolment.html", shown, status=status)


def _standing(token: EnrolmentToken, now: datetime) -> str:
    """What the token is worth now, in one word or two."""
    if token.revoked_at is not None:
        return "revoked"
    if not token.uses_left:
        return "used up"
    return "expired" if token.expires_at <= now else "usable"


@require_POST
@operator_required
def revoke_token(request: HttpRequest, pk: int) -> HttpResponse:
    """Make a token worthless from now on."""
    token = get_object_or_404(EnrolmentToken, pk=pk, subnet=the_subnet(request))
    reason = request.POST.get("reason", "").strip()
    if not reason:
        messages.error(request, "Say why the token is revoked: it stands in the trail.")
    elif operations.revoke_enrolment_token(token=token, actor=actor_of(request.user), reason=reason):
        messages.success(request, f"The token “{token.name}” lets nobody in any more. Servers it let in stay enrolled.")
    else:
        messages.error(request, f"The token “{token.name}” was worth nothing any more; nothing has changed.")
    return redirect("console:enrolment")


@require_POST
@operator_required
def rotate_credential(request: HttpRequest, public_id: str) -> HttpResponse:
    """Ask a server to make itself a new credential with its next report."""
    server = get_object_or_404(Server.objects.visible_to(request.user), public_id=public_id)
    try:
        is_news = operations.ask_for_rotation(
            server=server, actor=actor_of(request.user), reason=request.POST.get("reason", "").strip()
        )
    except InventoryError as refusal:
        messages.error(request, str(refusal))
    else:
        said = f"{server} makes itself a new credential with its next report; until then the old one is valid."
        messages.success(request, said if is_news else f"{server} was asked for a new credential already.")
    return redirect("console:server", public_id=public_id)


@require_POST
@operator_required
def revoke_credential(request: HttpRequest, public_id: str) -> HttpResponse:
    """Make every credential of a server worthless; it must enrol anew."""
    server = get_object_or_404(Server.objects.visible_to(request.user), public_id=public_id)
    reason = request.POST.get("reason", "").strip()
    if not reason:
        messages.error(request, "Say why the credential is revoked: it stands in the trail.")
    elif operations.revoke_credentials(server=server, actor=actor_of(request.user), reason=reason):
        messages.success(request, f"{server} may report no more until it enrols anew. Its ports stay where they are.")
    else:
        messages.error(request, f"{server} has no valid credential; nothing has changed.")
    return redirect("console:server", public_id=public_id)


def install_lines(secret: str) -> str:
    """What to paste as root on a server that has `agent.py` and its two units beside it (docs/registration.md).

    The token goes through a here-document: it stands in no process list and no shell history file of its own.
    """
    address = settings.REGISTER_URL or "https://REGISTER-HOST:PORT"
    return (
        "install -D -m 0755 agent.py /usr/local/lib/fabricui/agent.py &&\n"
        "install -m 0644 fabricui-agent.service fabricui-agent.timer /etc/systemd/system/ &&\n"
        f"echo 'FABRICUI_URL={address}' > /etc/fabricui-agent.env &&\n"
        "systemctl daemon-reload &&\n"
        "install -m 0600 /dev/stdin /etc/fabricui-agent.token <<'TOKEN' && "
        "systemctl enable --now fabricui-agent.timer\n"
        f"{secret}\n"
        "TOKEN\n"
    )
