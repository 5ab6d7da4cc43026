"""Which rollouts changed what was a tenant's: an index over revisions, kept by a follower of the trail.

Asked of the revisions themselves it would cost each page every table that there ever was, and how far back a page
could look would tell how much others roll out.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from audit.actions import Action
from audit.models import Event
from deploy.models import Rollout
from partitions.models import Partition
from people.models import Tenant
from portal.models import RolloutPart

FOLLOWED: Final = frozenset({Action.ROLLOUT_START})

type Members = Mapping[str, str]  # port GUID → full or limited
type Change = dict[str, str | None]


def follow(event: Event) -> None:
    """Keep each tenant's part of a rollout that began; the follower's function. Older ones come with the first tick."""
    found = Rollout.objects.select_related("revision", "parent").filter(public_id=event.subject_key).first()
    if found is None:
        return
    parts = parts_of(found.parent.table, found.revision.table)
    tenants = {tenant.slug: tenant for tenant in Tenant.objects.filter(slug__in=parts)}
    rows = list(Partition.objects.filter(subnet_id=found.subnet_id).order_by("pk").defer("flags", "keywords", "mgids"))
    for slug, changes in parts.items():
        if slug in tenants:
            its = {row.pkey: row for row in rows if row.tenant_id in (None, tenants[slug].pk)}
            told = [_told(change, its) for change in changes]
            RolloutPart.objects.get_or_create(tenant=tenants[slug], rollout=found, defaults={"changes": told})


def parts_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[Change]]:
    """The changes of each tenant, by its slug, between two tables as they are stored (`PartitionTable.to_json`).

    A change in a partition of the provider's is that of the tenant who has the port.
    """
    found: dict[str, list[Change]] = defaultdict(list)
    was, will = ({one["pkey"]: one for one in table["partitions"]} for table in (before, after))
    had, has = _tenants(before), _tenants(after)
    for pkey in sorted({*was, *will}):
        for owner in _owners_of(was.get(pkey), will.get(pkey)):
            old, new = _members(was.get(pkey), owner), _members(will.get(pkey), owner)
            for guid in sorted({*old, *new}):
                if old.get(guid) == new.get(guid):
                    continue
                change = {"pkey": pkey, "guid": guid, "before": old.get(guid), "after": new.get(guid)}
                whose = has if guid in new else had
                for slug in [owner] if owner is not None else whose[guid]:
                    found[slug].append(change)
    return dict(found)


def _tenants(table: Mapping[str, Any]) -> dict[str, list[str]]:
    """Who has which port."""
    found: dict[str, list[str]] = defaultdict(list)
    for partition in table["partitions"]:
        if partition["tenant"] is not None:
            for guid, _ in partition["members"]:
                if partition["tenant"] not in found[guid]:
                    found[guid].append(partition["tenant"])
    return found


def _owners_of(*partitions: Mapping[str, Any] | None) -> Iterator[str | None]:
    """Whose the P_Key was and will be: somebody else's after a cool-down."""
    yield from dict.fromkeys(one["tenant"] for one in partitions if one is not None)


def _members(partition: Mapping[str, Any] | None, owner: str | None) -> Members:
    return dict(partition["members"]) if partition is not None and partition["tenant"] == owner else {}


def _told(change: Change, rows: Mapping[int, Partition]) -> Change:
    row = rows.get(int(str(change["pkey"]), 16))
    return {"partition": row.public_id if row else "", "name": row.called if row else "", **change}
