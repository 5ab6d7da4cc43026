"""The first steps: from an empty database to a fabric that FabricUI may write.

The web reaches no host and pins no key: what has to be done on a manager host is shown as the command to paste.
"""

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console import lamps
from console.first_steps import ENOUGH_MANAGERS, Known, steps
from console.frame import fence_of, the_subnet
from deploy import host_check
from deploy.models import HostCheck
from inventory import operations
from inventory.errors import InventoryError
from inventory.models import EnrolmentToken, ManagerHost, Server, Subnet
from people.actor import actor_of
from people.permissions import is_operator, operator_required, reviewer_required
from subnet.errors import InvalidGUID


@dataclass(frozen=True, slots=True)
class HostRow:
    """One manager host with what its newest check found."""

    host: ManagerHost
    check: HostCheck | None
    missing: int

    @property
    def is_good(self) -> bool:
        """Whether it was checked, and nothing was missing."""
        return self.check is not None and self.check.state == "DONE" and not self.missing

    @property
    def lamp(self) -> lamps.Lamp:
        """How it is drawn; a check that failed or was never made is no good news."""
        if self.check is None:
            return lamps.Lamp(lamps.Colour.IDLE, "help-circle", "not checked")
        if self.check.is_pending:
            return lamps.Lamp(lamps.Colour.BUSY, "loader-2", "being checked")
        if self.check.state != "DONE":
            return lamps.Lamp(lamps.Colour.BAD, "plug-connected-x", "not reached")
        if self.missing:
            return lamps.Lamp(lamps.Colour.BAD, "alert-triangle", f"{self.missing} missing")
        return lamps.Lamp(lamps.Colour.GOOD, "circle-check", "all there")


@require_safe
@never_cache
@reviewer_required
def page(request: HttpRequest) -> HttpResponse:
    """The steps with what is done; asks again when something changed."""
    return _page(request)


@require_POST
@operator_required
def create(request: HttpRequest) -> HttpResponse:
    """Make the first subnet, in mode observe."""
    asked = {name: request.POST.get(name, "").strip() for name in ("name", "prefix")}
    try:
        subnet = operations.create_subnet(
            name=asked["name"], actor=actor_of(request.user), **({"prefix": asked["prefix"]} if asked["prefix"] else {})
        )
    except (InventoryError, InvalidGUID) as refusal:
        return _page(request, status=422, refusal=str(refusal), asked=asked)
    messages.success(request, f"Subnet {subnet.name} is there, in mode observe: FabricUI only looks.")
    return redirect("console:first_run")


@require_POST
@operator_required
def check(request: HttpRequest, public_id: str) -> HttpResponse:
    """Have the managers' worker ask the host what is missing, and stay on this page."""
    host = get_object_or_404(ManagerHost, public_id=public_id)
    host_check.request(host=host, actor=actor_of(request.user))
    return redirect("console:first_run")


def _page(request: HttpRequest, *, status: int = 200, refusal: str = "", asked: object = None) -> HttpResponse:
    subnet = the_subnet(request)
    hosts = [] if subnet is None else _hosts(subnet)
    known = _known(subnet, hosts)
    done = {step.name: step for step in steps(known)}
    is_pending = any(row.check is not None and row.check.is_pending for row in hosts)
    name = "console/first_run.html#body" if request.htmx else "console/first_run.html"  # type: ignore[attr-defined]
    shown = {
        "steps": done.values(),
        "step": done,
        "subnet": subnet,
        "hosts": hosts,
        "owed": [f"sm-{letter}" for letter in "ab"][len(hosts) : ENOUGH_MANAGERS],
        "known": known,
        "tokens": 0 if subnet is None else EnrolmentToken.objects.filter(subnet=subnet).count(),
        "is_pending": is_pending,
        "is_complete": all(step.at == "done" for step in done.values()),
        "refusal": refusal,
        "asked": asked or {},
        "may_act": is_operator(request.user),
    }
    return render(request, name, shown, status=status)


def _hosts(subnet: Subnet) -> list[HostRow]:
    hosts = list(ManagerHost.objects.filter(subnet=subnet).order_by("name"))
    newest = {check.host_id: check for check in HostCheck.objects.filter(host__in=hosts).order_by("id")}
    return [HostRow(host, newest.get(host.pk), _missing(newest.get(host.pk))) for host in hosts]


def _missing(check: HostCheck | None) -> int:
    facts = (check.facts if check is not None else None) or {}
    return sum(not is_there for _, is_there, _ in facts.get("pieces", ()))


def _known(subnet: Subnet | None, hosts: list[HostRow]) -> Known:
    if subnet is None:
        return Known()
    fence = fence_of(subnet)
    return Known(
        has_subnet=True,
        managers=len(hosts),
        good_managers=sum(row.is_good for row in hosts),
        has_revision=fence is not None and fence.current is not None,
        servers=Server.objects.filter(subnet=subnet).count(),
        may_write=subnet.mode == Subnet.Mode.WRITE,
    )
