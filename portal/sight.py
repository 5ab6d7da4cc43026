"""What one tenant's person sees: own servers, own partitions, and those of the provider's that own servers share."""

from django.db.models import Exists, OuterRef, QuerySet
from django.http import Http404

from inventory.models import Server, Subnet
from inventory.sight import servers_of
from partitions.models import Membership, Partition
from people.models import Tenant
from portal.door import Seat


def own_servers(seat: Seat) -> QuerySet[Server]:
    """The tenant's servers (inventory/sight.py says which), by host name; of several tenants of a person this one's."""
    its = servers_of(Tenant.objects.filter(pk=seat.tenant.pk))
    return Server.objects.visible_to(seat.person).filter(its).select_related("subnet").order_by("hostname")


def own_partitions(seat: Seat) -> QuerySet[Partition]:
    """The tenant's partitions, retired ones too."""
    return Partition.objects.visible_to(seat.person).filter(tenant=seat.tenant).select_related("tenant", "subnet")


def shared_partitions(seat: Seat) -> QuerySet[Partition]:
    """The provider's partitions that a server of the tenant is in."""
    member = Membership.objects.filter(port__hca__server__in=own_servers(seat).order_by(), partition=OuterRef("pk"))
    shared = Partition.objects.visible_to(seat.person).filter(Exists(member), tenant=None)
    return shared.select_related("subnet").order_by("name")


def own_server(seat: Seat, public_id: str) -> Server:
    """One of them; Http404 for any other."""
    found = own_servers(seat).filter(public_id=public_id).first()
    if found is None:
        raise Http404
    return found


def own_partition(seat: Seat, public_id: str) -> Partition:
    """One of them; Http404 for any other."""
    found = own_partitions(seat).filter(public_id=public_id).first()
    if found is None:
        raise Http404
    return found


def the_subnet(seat: Seat) -> Subnet | None:
    """The subnet that the tenant is on: that of its partitions, or the only one."""
    own = Partition.objects.filter(tenant=seat.tenant).select_related("subnet").order_by("pk").first()
    return own.subnet if own is not None else Subnet.objects.order_by("pk").first()
