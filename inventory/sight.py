"""Which servers and ports are a tenant's: the rules of this room and of those above it, joined by *or*.

A server is a tenant's when an operator wrote the tenant on it and no port of it is or was last another's; or when a
room above says so. `partitions` does: the tenant has a port of it in one of its partitions (`partitions/sight.py`). So
the new tenant sees a server from the proof of the add, and the old one until the proof of the removal (design §6.3).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from people.models import Tenant

type Tenants = QuerySet[Tenant, Any]
type Rule = Callable[[Tenants], Q]


@dataclass(frozen=True, slots=True)
class Sight:
    """What makes servers and ports a tenant's: for given tenants a condition on Server rows and one on Port rows."""

    servers: Rule
    ports: Rule


_MORE: dict[str, Sight] = {}


def register(name: str, *, servers: Rule, ports: Rule) -> None:
    """Let a higher room say which servers and ports are a tenant's, beside what the labels say."""
    _MORE[name] = Sight(servers, ports)


def servers_of(tenants: Tenants) -> Q:
    """The condition on Server rows for being one of `tenants`'."""
    found = _labelled(tenants, "pk", "")
    for sight in _MORE.values():
        found |= sight.servers(tenants)
    return found


def ports_of(tenants: Tenants) -> Q:
    """The condition on Port rows for being one of `tenants`': of a server of theirs, or named for them."""
    found = _labelled(tenants, "hca__server", "hca__server__")
    for sight in _MORE.values():
        found |= sight.ports(tenants)
    return found


def _labelled(tenants: Tenants, server: str, prefix: str) -> Q:
    from inventory.models import Port  # the models' querysets import this file

    # Compared with the label of the row itself: two tenants of one person may not lend each other their servers.
    bound = Port.objects.filter(hca__server=OuterRef(server)).exclude(former_tenant=None)
    others = bound.exclude(former_tenant=OuterRef(f"{prefix}tenant"))
    return Q(~Exists(others), **{f"{prefix}tenant__in": tenants})
