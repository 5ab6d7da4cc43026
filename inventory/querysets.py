"""Which rows a person may see and which ports a partition may take: the questions other rooms ask of the inventory."""

from typing import TYPE_CHECKING

from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.db.models import F, Q

from inventory import sight
from people.models import Tenant, User
from people.permissions import may_review

if TYPE_CHECKING:
    from inventory.models import ManagerHost, Port, Server  # noqa: F401  the models import this file


class ManagerHostManager(models.Manager["ManagerHost"]):
    """The manager hosts that count: those that nobody has retired."""

    def get_queryset(self) -> models.QuerySet["ManagerHost"]:
        """All rows but the retired ones."""
        return super().get_queryset().filter(retired_at=None)


class ServerQuerySet(models.QuerySet["Server"]):
    """Servers."""

    def visible_to(self, user: User | AnonymousUser) -> "ServerQuerySet":
        """Keep all for operators and auditors, a tenant's own for its people (`inventory/sight.py`)."""
        if may_review(user):
            return self.all()
        tenants = Tenant.objects.visible_to(user)
        return self.filter(sight.servers_of(tenants)) if user.is_authenticated else self.none()


class PortQuerySet(models.QuerySet["Port"]):
    """Ports."""

    def visible_to(self, user: User | AnonymousUser) -> "PortQuerySet":
        """Those `user` may see: all for operators and auditors, those of a tenant's servers for its people."""
        if may_review(user):
            return self.all()
        tenants = Tenant.objects.visible_to(user)
        return self.filter(sight.ports_of(tenants)) if user.is_authenticated else self.none()

    def candidates(self) -> "PortQuerySet":
        """Those that may be staged into a partition: InfiniBand ports of their own subnet, confirmed as the site asks.

        Left out: Ethernet ports; unconfirmed ones; ports that report another subnet prefix than their subnet's (they
        hang on another fabric); the ports OpenSM itself is bound to, which belong to Default alone. A port that is
        down or missing stays a candidate: its server may be moved while it is off.
        """
        from inventory.models import ManagerHost, Port
        from inventory.ownership import trusted

        return self.filter(
            Q(subnet_prefix=None) | Q(subnet_prefix=F("subnet__prefix")),
            trusted(),
            link_layer=Port.LinkLayer.INFINIBAND,
        ).exclude(guid__in=ManagerHost.objects.values("port_guid"))

    def of_server(self, server: "Server") -> "PortQuerySet":
        """Those that `server` has registered, in order of device and number."""
        return self.filter(hca__server=server).select_related("hca").order_by("hca__device", "number", "guid")
