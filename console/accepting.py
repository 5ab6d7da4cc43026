"""What keeps a rollout unproven and a person may accept: ports that moved beside it, and ports that are gone."""

from dataclasses import dataclass

from deploy import decisions
from deploy.models import Rollout
from inventory.models import Port
from subnet.guid import GUID

MOST = 20  # ports named on the page; all of them are counted


@dataclass(frozen=True, slots=True)
class Acceptable:
    """Sentences for the page; `seen` names exactly these ports, so that nothing else is accepted by the click."""

    moved: tuple[str, ...]
    absent: tuple[str, ...]
    more: int
    seen: str


def acceptable(rollout: Rollout) -> Acceptable | None:
    """What its last read-back found of that kind; None when there is none, or it waits for nothing. One query."""
    if rollout.state != Rollout.State.UNPROVEN:
        return None
    moved, absent = decisions.in_the_way(rollout)
    if not moved and not absent:
        return None
    guids = [GUID(guid) for guid in (*sorted(moved)[:MOST], *absent[:MOST])]
    rows = Port.objects.filter(guid__in=guids).values_list("guid", "hca__server__hostname")
    names = {str(guid): hostname for guid, hostname in rows if hostname}

    def named(guid: str) -> str:
        return f"{names[guid]}, port {guid}" if guid in names else f"Port {guid}"

    return Acceptable(
        moved=tuple(f"{named(guid)}: LID {lid} and {state} now" for guid, (lid, state) in sorted(moved.items())[:MOST]),
        absent=tuple(f"{named(guid)}: not on the fabric" for guid in absent[:MOST]),
        more=max(0, len(moved) - MOST) + max(0, len(absent) - MOST),
        seen=decisions.name_of(moved, absent),
    )


def left_out(rollout: Rollout) -> tuple[str, ...]:
    """The standbys whose failure stopped a refused rollout before anything was placed. One query."""
    if rollout.state != Rollout.State.REFUSED or rollout.without:
        return ()
    failed = rollout.outcomes.exclude(failure="").exclude(role_at_start="MASTER")
    return tuple(failed.order_by("host__name").values_list("host__name", flat=True))
