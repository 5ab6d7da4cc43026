"""Whether strangers can connect: tenants against tenants, the newest checks, and one check with its evidence."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from inventory.models import Subnet
from people.actor import actor_of
from people.permissions import is_operator, operator_required, reviewer_required
from probes import lamps, operations
from probes.errors import ProbesError
from probes.models import Incident, IsolationCheck
from probes.verdict import Isolation

SHOWN: Final = 100
LOOKED_AT: Final = 5000  # newest checks that the matrix is made of
WITHIN: Final = timedelta(days=7)
NOBODY: Final = "no tenant"
_WORST_FIRST: Final = (Isolation.LEAK, Isolation.INCONCLUSIVE, Isolation.ISOLATED)
_PROVES_NOT: Final = {
    "CONTROL": (
        "This is the SM’s view only: it says whom the SA would introduce to whom. What switches and HCAs do with a "
        "packet is shown by an attempt on the data plane, which needs probe hosts and the consent of both tenants.",
        "A server that knows or guesses the other’s LID and QP needs no SA. Then the P_Key tables of both ports "
        "decide, and every rollout reads those back.",
        "On a simulated fabric this is the only check there is: half of the proof.",
    ),
    "DATA": (
        "One write of 8 bytes in each direction, at one moment, with the P_Keys that each end holds by the current "
        "revision. It says nothing about IPoIB, TCP or the management network.",
        "Without a risen counter (not “confirmed”) something else than the P_Key may have dropped the write just then, "
        "between two controls that succeeded.",
        "Somebody with root on both servers could forge every answer.",
    ),
}  # fmt: skip


@dataclass
class Cell:
    """What the newest checks say about one tenant’s servers as senders and another’s as targets."""

    counts: dict[str, int] = field(default_factory=dict)
    newest_at: datetime | None = None

    @property
    def worst(self) -> lamps.Lamp:
        """The worst verdict as a lamp."""
        return lamps.isolation(next((one for one in _WORST_FIRST if self.counts.get(one)), ""))

    @property
    def total(self) -> int:
        """How many pairs and planes."""
        return sum(self.counts.values())

    @property
    def words(self) -> str:
        """“3 isolated, 1 inconclusive”."""
        leaks, undecided, isolated = (self.counts.get(one, 0) for one in ("LEAK", "INCONCLUSIVE", "ISOLATED"))
        told = [f"{leaks} {'leak' if leaks == 1 else 'leaks'}"] if leaks else []
        told += [f"{undecided} inconclusive"] if undecided else []
        return ", ".join([*told, *([f"{isolated} isolated"] if isolated else [])])


@require_safe
@reviewer_required
def isolation(request: HttpRequest) -> HttpResponse:
    """The matrix of tenants and the newest checks; `?verdict=` shows one verdict only."""
    checks = IsolationCheck.objects.visible_to(request.user)
    names, rows = matrix(
        checks.filter(state="DONE", finished_at__gte=timezone.now() - WITHIN).order_by("-pk")[:LOOKED_AT]
    )
    wanted = request.GET.get("verdict", "")
    shown = checks.whole().order_by("-asked_at", "-pk")
    if wanted in Isolation.__members__:
        shown = shown.filter(verdict=wanted)
    return render(
        request,
        "probes/isolation.html",
        {
            "names": names,
            "rows": rows,
            "checks": [(check, lamp_of(check)) for check in shown[:SHOWN]],
            "verdict": wanted,
            "verdicts": [one.value for one in _WORST_FIRST],
            "leaks": Incident.objects.filter(leak__isnull=False, acknowledged_at=None).count(),
            "may_act": is_operator(request.user),
            "has_subnet": Subnet.objects.exists(),
        },
    )


@require_safe
@never_cache
@reviewer_required
def check(request: HttpRequest, public_id: str) -> HttpResponse:
    """Everything that is stored about one check."""
    found = get_object_or_404(IsolationCheck.objects.visible_to(request.user).whole(), public_id=public_id)
    evidence = found.evidence
    back = (
        IsolationCheck.objects.filter(
            plane=found.plane, sender=found.target, target=found.sender, asked_at=found.asked_at,
            sender_guid=found.target_guid, target_guid=found.sender_guid,
        )
        .order_by("-pk")
        .first()
    )  # fmt: skip
    return render(
        request,
        "probes/isolation_check.html",
        {
            "check": found,
            "lamp": lamp_of(found),
            "other_direction": back,
            "controls": [
                (when, control) for when in ("before", "after") for control in evidence.get(f"controls_{when}", [])
            ],
            "attempt": evidence.get("attempt"),
            "answer": evidence.get("answer"),
            "ends": [
                (end, (evidence.get("attempt") or {}).get("ends", {}).get(end, {})) for end in ("sender", "target")
            ],
            "proves_not": _PROVES_NOT[found.plane],
            "incidents": Incident.objects.filter(leak_of=f"{found.plane}:{found.sender_id}:{found.target_id}").order_by(
                "-opened_at"
            )[:5],
            "is_live": found.finished_at is None,
        },
    )


@require_POST
@operator_required
def check_now(request: HttpRequest) -> HttpResponse:
    """Check sampled pairs of every subnet out of turn."""
    for subnet in Subnet.objects.order_by("pk"):
        try:
            made = operations.check_now(subnet=subnet, actor=actor_of(request.user))
        except ProbesError as error:
            messages.error(request, str(error))
        else:
            messages.success(request, f"{len(made)} checks are queued and will begin at once.")
    return redirect("probes:isolation")


def lamp_of(check: IsolationCheck) -> lamps.Lamp:
    """A check’s verdict, or how far it is."""
    return lamps.isolation(check.verdict) if check.verdict else lamps.isolation_state(check.state)


def matrix(checks: Iterable[IsolationCheck]) -> tuple[list[str], list[tuple[str, list[Cell | None]]]]:
    """Names of tenants, and a row of cells for each as sender; None where nothing was checked.

    `checks` come newest first; of each pair and plane only the newest counts.
    """
    cells: dict[tuple[str, str], Cell] = {}
    seen = set()
    for check in checks:
        key = (check.plane, check.sender_id, check.target_id, check.sender_guid, check.target_guid)
        if key in seen:
            continue
        seen.add(key)
        cell = cells.setdefault((check.sender_tenant or NOBODY, check.target_tenant or NOBODY), Cell())
        cell.counts[check.verdict] = cell.counts.get(check.verdict, 0) + 1
        if cell.newest_at is None:
            cell.newest_at = check.finished_at
    names = sorted({name for pair in cells for name in pair}, key=lambda name: (name == NOBODY, name))
    return names, [(one, [cells.get((one, other)) for other in names]) for one in names]
