"""After a takeover: census, files and tables are proven again by themselves, and the result is told.

The standby parsed its file for the first time when it became master (ground truth: OpenSM, 4.4), so nothing that was
proven before says what it did with it.
"""

from datetime import datetime
from typing import Final

from deploy import drift_causes, drifting
from deploy.drift_findings import Finding
from deploy.drift_models import Drift, Watch
from deploy.files import Standing
from deploy.look import Look
from inventory.models import Subnet
from remote.watch_verbs import SMCensus

KEY: Final = "master"


def notice_takeover(subnet: Subnet, row: Watch, look: Look, *, now: datetime) -> None:
    """Remember who is master; tell of another one than before, and owe a reading of all tables."""
    master = look.master
    if master is None or master.registered == row.master:
        return
    former, row.master = row.master, str(master.registered)
    row.save(update_fields=["master"])
    if not former:
        return
    name = next((view.name for view in look.views if view.registered == former), former)
    details = (
        f"{master.name} is master now, and {name} was: it has read its own partition file for the first time.",
        "Who runs an SM, every file and every table are proven again by themselves.",
    )
    cause = drift_causes.of_takeover(look, name)
    facts = {"from": name, "to": master.name, "seen_at": now.isoformat()}
    drifting.open_takeover(subnet=subnet, finding=Finding(Drift.Kind.TAKEOVER, KEY, details, cause, facts), now=now)
    # From the first port on, whatever was under way: that began before the new master was seen.
    row.full_wanted, row.scan_after, row.round_began_at = f"{master.name} took over", "", None
    row.save(update_fields=["full_wanted", "scan_after", "round_began_at"])


def conclude(
    subnet: Subnet, row: Watch, look: Look, census: SMCensus | None, standing: Standing, *, now: datetime
) -> None:
    """Close a takeover that is proven again, or say what it still waits for."""
    takeover = Drift.objects.filter(subnet=subnet, closed_at=None, kind=Drift.Kind.TAKEOVER).first()
    if takeover is None or takeover.opened_at is None:
        return
    owed = list(_owed(subnet, row, look, census, standing, since=takeover.last_seen_at))
    if owed:
        first = takeover.details[0]
        drifting.refresh(takeover, details=(first, *(f"Not proven yet: {what}" for what in owed)), facts=takeover.facts)
        return
    assert look.master is not None  # noqa: S101  else it would be owed
    hosts = " and ".join(view.name for view in look.views)
    drifting.close(
        takeover,
        closing=f"Proven again: {look.master.name} is the only master, the files on {hosts} are revision "
        f"{standing.number}, and all HCA ports that could be read of {row.ports} hold what they should.",
        now=now,
    )


def _owed(
    subnet: Subnet, row: Watch, look: Look, census: SMCensus | None, standing: Standing, *, since: datetime
) -> list[str]:
    owed = []
    masters = [] if census is None else [sm.guid for sm in census.sms if sm.state == "MASTER"]
    if look.master is None or masters != [look.master.registered]:
        owed.append("the only master has to be a registered one.")
    for view in look.views:
        if view.file is None:
            owed.append(f"the file on {view.name} could not be read.")
        elif view.digest != standing.digest:
            owed.append(f"the file on {view.name} is not revision {standing.number}.")
    if row.full_wanted or row.full_at is None or row.full_at < since:
        owed.append("all tables have to be read since.")
    kinds = (Drift.Kind.TABLE, Drift.Kind.ISOLATION_LOST, Drift.Kind.ROGUE_SM)
    for drift in Drift.objects.filter(subnet=subnet, closed_at=None, kind__in=kinds).exclude(opened_at=None):
        owed.append(drift.details[0])
    return owed
