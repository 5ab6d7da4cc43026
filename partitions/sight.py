"""Which servers and ports a tenant's partitions make its own (`inventory/sight.py`), as the current revision says."""

from django.db.models import Exists, OuterRef, Q

from inventory import sight
from partitions.models import Membership


def servers_of(tenants: sight.Tenants) -> Q:
    """The condition on Server rows: a port of it is in a partition of one of `tenants`."""
    held = Membership.objects.filter(partition__tenant__in=tenants)
    return Q(Exists(held.filter(port__hca__server=OuterRef("pk"))))


def ports_of(tenants: sight.Tenants) -> Q:
    """The condition on Port rows: it, or another port of its server, is in a partition of one of `tenants`."""
    held = Membership.objects.filter(partition__tenant__in=tenants)
    of_its_server = held.filter(port__hca__server=OuterRef("hca__server"))
    return Q(Exists(held.filter(port=OuterRef("pk")))) | Q(Exists(of_its_server))
