"""Manager hosts: who they are, what stands in their files, and who is master."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console import lamps
from console.frame import fence_of, the_subnet
from console.views.home import no_subnet
from deploy import operations, queries
from deploy.files import Standing
from deploy.models import PENDING, Observation
from inventory.models import ManagerHost, Server, Subnet
from people.actor import actor_of
from people.permissions import is_operator, operator_required, reviewer_required


@dataclass(frozen=True, slots=True)
class HostRow:
    """One manager host as it was last looked at; `error` says what is wrong there, or why it could not be."""

    host: ManagerHost
    role: lamps.Lamp
    file: lamps.Lamp
    digest: str
    revision: int | None
    error: str


@require_safe
@never_cache
@reviewer_required
def managers(request: HttpRequest) -> HttpResponse:
    """The manager hosts of the subnet; the fragment asks again while a look is under way."""
    subnet = the_subnet(request)
    if subnet is None:
        return no_subnet(request)
    newest = queries.newest_request(subnet)
    shown_from = newest if newest is not None and newest.managers else _last_with_managers(subnet)
    fence = fence_of(subnet)
    standing = Standing.of(fence.current) if fence is not None else None
    name = "console/managers.html#body" if request.htmx else "console/managers.html"  # type: ignore[attr-defined]
    return render(
        request,
        name,
        {
            "subnet": subnet,
            "rows": _rows(subnet, shown_from, standing),
            "standing": standing,
            "strangers": [sm for sm in (shown_from.census if shown_from else []) if not sm.get("registered")],
            "current": fence.current if fence is not None else None,
            "observation": shown_from,
            "newest": newest,
            "is_pending": newest is not None and newest.state in PENDING,
            "may_act": is_operator(request.user),
        },
    )


@require_POST
@operator_required
def look(request: HttpRequest) -> HttpResponse:
    """Have the managers and the fabric looked at now."""
    subnet = the_subnet(request)
    if subnet is None:
        raise Http404
    operations.request_observation(subnet=subnet, why="check", actor=actor_of(request.user))
    messages.info(request, "A look at the managers and the fabric is asked for.")
    server = Server.objects.visible_to(request.user).filter(public_id=request.POST.get("server", "")).first()
    return redirect("console:managers") if server is None else redirect("console:server", server.public_id)


def _last_with_managers(subnet: Subnet) -> Observation | None:
    finished = Observation.objects.filter(subnet=subnet).exclude(state__in=PENDING)
    return finished.order_by("-id").first()


def _rows(subnet: Subnet, observation: Observation | None, standing: Standing | None) -> list[HostRow]:
    """One row a host; its file is current when it holds the bytes that must lie there, hand-written ones included."""
    current = standing.digest if standing is not None else ""
    looked: list[dict[str, Any]] = [] if observation is None else observation.managers
    seen = {item["host"]: item for item in looked}
    rows = []
    for host in ManagerHost.objects.filter(subnet=subnet).order_by("name"):
        item = seen.get(host.name, {})
        error = item.get("error") or ""
        digest = item.get("digest") or ""
        rows.append(
            HostRow(
                host=host,
                role=lamps.subnet_manager(item.get("role")),
                file=lamps.file(digest=digest, current=current, error=error),
                digest=digest,
                revision=item.get("revision"),
                error=error or " ".join(item.get("problems", ())),
            )
        )
    return rows
