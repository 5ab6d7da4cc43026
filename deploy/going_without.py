"""Going without a standby that cannot be staged: a person's word for it, and what is never done on such a word.

A standby that keeps its old file gives back at a takeover whatever was taken away meanwhile. The master never lacks.
"""

from collections.abc import Collection
from typing import Any

from audit.values import Actor
from deploy.errors import NotWritable, ReasonNeeded, StandbyNeeded
from deploy.models import Revision
from inventory.models import ManagerHost, Subnet
from subnet.moves import needs_every_standby


def terms(*, subnet: Subnet, hosts: Collection[str], actor: Actor, reason: str) -> dict[str, Any] | None:
    """What `Rollout.without` holds: {"hosts", "by", "reason"}; None when no host is named.

    Raises ReasonNeeded, and NotWritable for a name that no manager host of `subnet` has. One query, none without hosts.
    """
    if not hosts:
        return None
    if not reason.strip():
        names = ", ".join(sorted(hosts))
        raise ReasonNeeded(f"Say why the rollout should go without {names}, so that the next person can read it.")
    known = set(ManagerHost.objects.filter(subnet=subnet).values_list("name", flat=True))
    if unknown := sorted(set(hosts) - known):
        raise NotWritable(f"Subnet {subnet} has no manager host {unknown[0]}.")
    return {"hosts": sorted(hosts), "by": actor.name, "reason": reason}


def require_harmless(revision: Revision, hosts: Collection[str]) -> None:
    """Raise StandbyNeeded when the parent's file, read at a takeover, would give a port back what it lost."""
    parent = revision.parent
    why = "" if parent is None else needs_every_standby(parent.partition_table(), revision.partition_table())
    if why:
        raise StandbyNeeded(
            f"{str(revision).capitalize()} cannot go out without {', '.join(sorted(hosts))}, because {why}: a takeover "
            "by a host with the old file would undo that. Bring the host back, or take it out of service and retire it."
        )
