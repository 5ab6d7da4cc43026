"""A tenant's partitions: create within quota, rename, retire; in words for the tenant."""

from django.db import transaction
from django.utils.translation import gettext

from inventory.models import Subnet
from partitions import operations as partitions
from partitions import titles
from partitions.doer import Doer
from partitions.errors import MoveRefused, PartitionsError
from partitions.models import Membership, Partition, StagedChange
from people.models import Tenant
from portal.door import Seat
from portal.errors import OverQuota, Refused
from portal.moves import refuse_closed
from subnet.errors import SubnetError


@transaction.atomic
def create(*, seat: Seat, subnet: Subnet, title: str, actor: Doer | None = None) -> Partition:
    """Create an empty partition that the tenant calls `title`. Raises OverQuota, Refused."""
    refuse_closed(subnet)
    tenant = Tenant.objects.select_for_update(no_key=True).get(pk=seat.tenant.pk)  # two people never take the last one
    there = Partition.objects.in_use().filter(tenant=tenant).count()
    if there >= tenant.most_partitions:
        raise OverQuota(
            gettext(
                "%(tenant)s has %(there)s partitions, and may have %(most)s. Nothing was created. Retire one that you "
                "do not need, or ask your provider for more with a request."
            )
            % {"tenant": tenant.name, "there": there, "most": tenant.most_partitions}
        )
    _check(seat, subnet, title)
    name = titles.file_name(tenant=tenant, subnet=subnet, title=title)
    try:
        return partitions.create_partition(
            subnet=subnet, tenant=tenant, name=name, title=title, actor=actor or seat.person
        )
    except (PartitionsError, SubnetError) as error:
        raise Refused(
            gettext("Your provider has to make room first. Nothing was created. Ask them with a request.")
        ) from error


@transaction.atomic
def rename(*, seat: Seat, partition: Partition, title: str, actor: Doer | None = None, reason: str = "") -> Partition:
    """Call it otherwise. Raises Refused."""
    _refuse_shared(seat, partition)
    if partition.retired_at is not None:
        raise Refused(gettext("%(name)s is retired, so it keeps its name.") % {"name": partition.called})
    if partition.called == title:
        raise Refused(gettext("It is called %(name)s already.") % {"name": title})
    _check(seat, partition.subnet, title, of=partition)
    name = titles.file_name(tenant=seat.tenant, subnet=partition.subnet, title=title, of=partition)
    return partitions.rename_partition(
        partition=partition, name=name, title=title, actor=actor or seat.person, reason=reason
    )


@transaction.atomic
def retire(*, seat: Seat, partition: Partition, actor: Doer | None = None) -> Partition:
    """Retire an empty one. Whoever would empty it by this would lose the servers. Raises Refused."""
    _refuse_shared(seat, partition)
    refuse_closed(partition.subnet)
    servers = set(
        Membership.objects.filter(partition=partition).values_list("port__hca__server__hostname", flat=True)
    ) | set(StagedChange.objects.filter(partition=partition).values_list("port__hca__server__hostname", flat=True))
    if servers:
        raise Refused(
            gettext(
                "%(count)s servers are in %(name)s, or on their way there or out. Nothing was changed. Move them to "
                "another of your partitions first, or return them to your provider with a request."
            )
            % {"count": len(servers), "name": partition.called}
        )
    try:
        return partitions.retire_partition(partition=partition, actor=actor or seat.person).partition
    except (MoveRefused, PartitionsError) as error:
        raise Refused(
            gettext("%(name)s cannot be retired now. Nothing was changed. Ask your provider with a request.")
            % {"name": partition.called}
        ) from error


def _refuse_shared(seat: Seat, partition: Partition) -> None:
    if partition.tenant_id != seat.tenant.pk:
        raise Refused(
            gettext("%(name)s is your provider's, and shared: it is not yours to change. Nothing was changed.")
            % {"name": partition.called}
        )


def _check(seat: Seat, subnet: Subnet, title: str, *, of: Partition | None = None) -> None:
    try:
        titles.check(tenant=seat.tenant, subnet=subnet, title=title, of=of)
    except (PartitionsError, SubnetError) as error:
        raise Refused(str(error)) from error  # of the name itself, and of own partitions: nothing of others' is in it
