"""Whom a rollout concerns: the tenants in whose partitions its revision differs from what stood there before."""

from typing import Any

from audit.models import Event
from deploy.models import Rollout
from people.models import Tenant


def tenants_of(event: Event) -> set[str]:
    """Public ids of the tenants whose partitions the rollout of `event` changes; none for other events.

    Two queries and the JSON of two revisions: only asked while a tenant has a webhook.
    """
    if not event.rollout_key or not event.action.startswith("deploy:rollout:"):
        return set()
    rollout = Rollout.objects.filter(public_id=event.rollout_key).select_related("revision", "parent").first()
    if rollout is None:
        return set()
    after, before = _members(rollout.revision.table), _members(rollout.parent.table)
    changed = {place for place in after.keys() | before.keys() if after.get(place) != before.get(place)}
    slugs = {slug for slug, _ in changed}
    return set(Tenant.objects.filter(slug__in=slugs).values_list("public_id", flat=True))


def _members(table: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """Who is in each partition of a tenant, by slug and P_Key, as a revision's stored JSON says."""
    return {(item["tenant"], item["pkey"]): item["members"] for item in table["partitions"] if item["tenant"]}
