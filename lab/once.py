"""`demo --once`: one move within a tenant, planned, rolled out and proven, with evidence anyone can recompute."""

import json
import sys
from pathlib import Path
from typing import Any

from lab.breaking import spoil_port
from lab.house import DemoFailed, House


def move_and_prove(house: House, *, servers: int, spoil: str | None, out: Path, as_json: bool) -> int:
    """Move `servers` servers from the tenant's training to its inference partition; print the summary.

    Return 0 only if the rollout ended PROVEN. `out` keeps the tables before and after as JSON lines.
    """
    from audit.models import Event
    from deploy.queries import observed_fabric
    from partitions import operations as partitions
    from partitions.models import Partition
    from partitions.selection import Selection
    from subnet.observed import kept_lines

    source = Partition.objects.get(name="acme-training")
    target = Partition.objects.get(name="acme-inference")
    moving = sorted(
        {server for membership in source.memberships.all() if (server := server_of(membership.port)) is not None},
        key=lambda server: server.hostname,
    )[:servers]
    if len(moving) < servers:
        raise DemoFailed(f"{servers} servers cannot be moved: {source} has only {len(moving)}.")
    events_before = Event.objects.count()
    for server in moving:
        partitions.stage_move(server=server, source=source, target=target, actor=house.operator)
    by_hand = 0

    def before_start() -> None:
        nonlocal by_hand
        drawn = partitions.draw_up_plan(subnet=house.subnet, selection=Selection.mine(), user=house.operator)
        by_hand = drawn.by_hand
        if spoil:
            spoil_port(house.site, spoil)

    rollout = house.roll_out(Selection.mine(), reason="demo --once", before_start=before_start)
    out.mkdir(parents=True, exist_ok=True)
    before_file, after_file = out / "before.jsonl", out / "after.jsonl"
    before = observed_fabric(rollout.before)
    before_file.write_text("".join(f"{line}\n" for line in kept_lines(before)), encoding="ascii")
    if rollout.after is not None:
        after_file.write_text(
            "".join(f"{line}\n" for line in kept_lines(observed_fabric(rollout.after))), encoding="ascii"
        )
    read_back: dict[str, Any] = dict(rollout.read_back or {})
    counts = read_back.get("counts", {})
    events = Event.objects.filter(number__gt=events_before)
    ended = rollout.finished_at - rollout.requested_at if rollout.finished_at else None
    summary = {
        "servers": house.subnet.servers.count(),
        "ports": len(before.end_ports),
        "moved": [{"server": server.hostname, "from": source.name, "to": target.name} for server in moving],
        "rollout": {
            "state": rollout.state,
            "seconds": round(ended.total_seconds(), 3) if ended else None,
            "cause": rollout.cause,
            "hosts": [
                {"name": outcome.host.name, "role_at_proof": outcome.role_at_proof, "digest": outcome.digest}
                for outcome in rollout.outcomes.select_related("host").order_by("host__name")
            ],
        },
        "readback": {
            **counts,
            "findings": read_back.get("discrepancies", []),
            "before_file": str(before_file),
            "after_file": str(after_file) if rollout.after is not None else None,
        },
        "audit_events": Event.objects.count(),
        "manual_actions": {"by_hand": by_hand, "here": manual_actions(list(events))},
    }
    if servers == 1:
        summary["moved"] = summary["moved"][0]  # type: ignore[index]
    _print(summary, as_json=as_json)
    return 0 if rollout.state == "PROVEN" else 1


def server_of(port: Any) -> Any:
    """The server a port is in; None for a port that only the fabric or a file names."""
    return None if port.hca is None else port.hca.server


def manual_actions(events: list[Any]) -> int:
    """What the person did, counted from the audit trail: each drag, the review and the confirmation.

    A rollout cannot be started but from the plan page, so each confirmation had its review.
    """
    from audit.actions import Action

    drags = sum(event.action == Action.MEMBER_STAGE for event in events)
    confirmations = sum(event.action == Action.ROLLOUT_START for event in events)
    return int(drags + 2 * confirmations)


def _print(summary: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(summary, indent=2))
        return
    rollout, readback = summary["rollout"], summary["readback"]
    print(f"{rollout['state']} after {rollout['seconds']} s: {rollout['cause'] or 'every port as planned'}")
    print(f"{readback}", file=sys.stderr)
