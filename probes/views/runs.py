"""One run with its evidence, and the comparisons around a rollout."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from deploy.models import Rollout
from people.permissions import reviewer_required
from probes.forgeable import FORGEABLE, NOT_PROVEN
from probes.models import IsolationCheck, ProbeRun, RolloutComparison
from probes.views.isolation import lamp_of

# What both ends said, in the order in which people look at it; anything else follows by name.
_FIRST = ("backend", "device", "port", "link_layer", "rate", "lid", "gid", "pkey_index", "pkey_entry", "mtu", "qpns")
_HEX = frozenset({"pkey_entry", "pkey"})


@require_safe
@never_cache
@reviewer_required
def run(request: HttpRequest, public_id: str) -> HttpResponse:
    """Everything that is stored about one run."""
    shown = get_object_or_404(ProbeRun.objects.visible_to(request.user).whole(), public_id=public_id)
    evidence = shown.evidence
    return render(
        request,
        "probes/run.html",
        {
            "run": shown,
            "ends": _side_by_side(evidence.get("sender"), evidence.get("target")),
            "facts": [
                (key.replace("_", " "), _text(key, value))
                for key, value in evidence.items()
                if key not in ("sender", "target", "checksum")
            ],
            "checksum": evidence.get("checksum") if isinstance(evidence.get("checksum"), dict) else None,
            "figures": sorted(shown.figures.items()),
            "forgeable": FORGEABLE,
            "not_proven": NOT_PROVEN,
            "is_live": shown.finished_at is None,
        },
    )


@require_safe
@reviewer_required
def around_rollout(request: HttpRequest, public_id: str) -> HttpResponse:
    """What the pairs that a rollout touched could do before and after."""
    rollout = get_object_or_404(Rollout.objects.select_related("revision"), public_id=public_id)
    rows = (
        RolloutComparison.objects.filter(rollout=rollout)
        .select_related("scope__partition", "scope__probe_set", "sender__server", "target__server", "before", "after")
        .order_by("scope", "sender__server__hostname", "target__server__hostname", "profile")
    )
    checks = IsolationCheck.objects.visible_to(request.user).whole().filter(rollout=rollout).order_by("pk")
    shown = {
        "rollout": rollout,
        "lines": [(row, _change(row)) for row in rows],
        "checks": [(check, lamp_of(check)) for check in checks],
    }
    return render(request, "probes/rollout.html", shown)


def _change(row: RolloutComparison) -> float | None:
    """How much better the after is, per cent; None without both (a missing baseline is never guessed)."""
    if row.before is None or row.after is None or not row.before.gbps or not row.after.gbps:
        return None
    if row.profile == "lat" and row.before.p50_ns and row.after.p50_ns:
        return 100 * (row.before.p50_ns / row.after.p50_ns - 1)
    return 100 * (row.after.gbps / row.before.gbps - 1)


def _side_by_side(sender: object, target: object) -> list[tuple[str, str, str]]:
    one = sender if isinstance(sender, dict) else {}
    other = target if isinstance(target, dict) else {}
    keys = [key for key in _FIRST if key in one or key in other]
    keys += sorted((one.keys() | other.keys()) - set(keys))
    return [(key.replace("_", " "), _text(key, one.get(key)), _text(key, other.get(key))) for key in keys]


def _text(key: str, value: object) -> str:
    """A value of the evidence as text; P_Keys in hex, as everywhere."""
    if value is None:
        return "–"
    if key in _HEX and isinstance(value, int) and not isinstance(value, bool):
        return f"0x{value & 0xFFFF:04x}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
