"""Enrolment: make a token for servers, and the line that installs the agent with it. The token is shown once."""

from datetime import timedelta
from typing import Final

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from console import inventory_rows
from console.frame import the_subnet
from console.views.home import no_subnet
from inventory import operations
from inventory.errors import InventoryError
from inventory.models import EnrolmentToken, Subnet
from people.actor import actor_of
from people.permissions import is_operator, operator_required, reviewer_required

SHOWN: Final = 50


class TokenForm(forms.Form):
    """What a token is for; the operation checks the bounds and says them."""

    name = forms.CharField(max_length=60, strip=True)
    uses = forms.IntegerField(min_value=1, max_value=100_000)
    hours = forms.IntegerField(min_value=1, max_value=720)


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
        )
    except InventoryError as refusal:
        form.add_error(None, str(refusal))
        return _page(request, subnet, form, status=422)
    return _page(request, subnet, TokenForm(), secret=secret, made=asked["name"], uses=asked["uses"], status=201)


def _page(
    request: HttpRequest, subnet: Subnet, form: TokenForm, *, status: int = 200, secret: str = "", **more: object
) -> HttpResponse:
    now = timezone.now()
    tokens = EnrolmentToken.objects.filter(subnet=subnet).order_by("-id")[:SHOWN]
    shown = {
        "form": form,
        "secret": secret,
        "install": install_lines(secret) if secret else "",
        "address": settings.REGISTER_URL,
        "tokens": [(token, token.expires_at > now and token.uses_left > 0) for token in tokens],
        "may_act": is_operator(request.user),
        "totals": inventory_rows.totals(subnet),
        **more,
    }
    return render(request, "console/enrolment.html", shown, status=status)


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
