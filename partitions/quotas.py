"""How many servers a tenant may have (`Tenant.most_servers`), held wherever a server comes to it.

At staging, so that whoever drags a card hears it at once; and in the plan, which is the gate of every rollout, whatever
staged the change: an undo, a way back in time, an adopted file. A server that the tenant has already is never refused,
also when somebody lowered the number under what is there.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import Exists, OuterRef

from inventory.models import Port, Server, Subnet
from partitions.errors import MoveRefused
from partitions.mirror import batches
from partitions.models import Membership, Partition, StagedChange
from people.models import Tenant
from subnet.guid import GUID
from subnet.policy import Violation
from subnet.table import PartitionTable


def servers_wanted(tenant: Tenant) -> set[int]:
    """Row ids of the servers that are in the tenant's partitions once everything staged is current. Two queries."""
    left = StagedChange.objects.filter(port=OuterRef("port"), partition=OuterRef("partition"), kind_to=None)
    stay = Membership.objects.filter(partition__tenant=tenant).exclude(Exists(left))
    come = StagedChange.objects.filter(partition__tenant=tenant).exclude(kind_to=None)
    of_servers = (rows.exclude(port__hca=None).values_list("port__hca__server", flat=True) for rows in (stay, come))
    return {server for servers in of_servers for server in servers}


@dataclass(slots=True)
class Rooms:
    """What servers the tenants with a quota are wanted to have, kept up while wishes are decided one by one."""

    tenants: dict[int, Tenant] = field(default_factory=dict)
    servers: dict[int, set[int]] = field(default_factory=dict)

    @classmethod
    def held_for(cls, targets: Iterable[Partition | None]) -> "Rooms":
        """Hold the tenants of these partitions that have a quota, until the transaction ends: two people never give
        the last place away. No query without a tenant, one without a quota. Tenants come before subnets, those before
        partitions.
        """
        ids = {
            partition.tenant_id for partition in targets if partition is not None and partition.tenant_id is not None
        }
        if not ids:
            return cls()
        limited = Tenant.objects.filter(pk__in=ids).exclude(most_servers=None).order_by("pk")
        held = {tenant.pk: tenant for tenant in limited.select_for_update(no_key=True)}
        return cls(held)

    def take(self, server: Server, wanted: Iterable[Partition]) -> None:
        """Note where `server` is wanted. Raises MoveRefused when a tenant would have more servers than it may."""
        homes = {partition.tenant_id for partition in wanted}
        for pk, tenant in self.tenants.items():
            if pk not in self.servers:
                self.servers[pk] = servers_wanted(tenant)
            its, most = self.servers[pk], tenant.most_servers
            if pk not in homes:
                its.discard(server.pk)
            elif server.pk not in its:
                if most is not None and len(its) >= most:
                    raise MoveRefused(_sentence(tenant, len(its), str(server)), rule="quota")
                its.add(server.pk)


def refuse_newcomer(tenant: Tenant, server: Server, *, had: set[int]) -> None:
    """Refuse that `server`, which was not among those that `tenant` `had`, is one too many now. Raises MoveRefused."""
    has, most = servers_wanted(tenant), tenant.most_servers
    if most is not None and server.pk in has - had and len(has) > most:
        raise MoveRefused(_sentence(tenant, len(has) - 1, str(server)), rule="quota")


def too_many(
    changes: Iterable[StagedChange], table: PartitionTable, current: PartitionTable, subnet: Subnet
) -> Iterable[Violation]:
    """Refuse a plan of `changes` that gives a tenant another server than it has, when it has more than it may by that.

    No query while no tenant with a quota is joined: the changes come with their partitions' tenants.
    """
    joined = {change.partition.tenant for change in changes if change.kind_to is not None}
    limited = [tenant for tenant in joined if tenant is not None and tenant.most_servers is not None]
    for tenant in sorted(limited, key=lambda tenant: tenant.name):
        before, after = _servers_in(current, tenant), _servers_in(table, tenant)
        owner: dict[str, tuple[int, str]] = {}
        for batch in batches(sorted(before | after)):
            rows = Port.objects.filter(subnet=subnet, guid__in=batch, hca__isnull=False)
            for guid, pk, name in rows.values_list("guid", "hca__server", "hca__server__hostname"):
                owner[guid] = (pk, name)
        had, has = ({owner[guid] for guid in guids if guid in owner} for guids in (before, after))
        elsewhere = Membership.objects.filter(partition__tenant=tenant).exclude(partition__subnet=subnet)
        others = set(elsewhere.values_list("port__hca__server", flat=True)) - {None}
        new, most = sorted(name for _, name in has - had), tenant.most_servers
        total = len({pk for pk, _ in has} | others)
        if new and most is not None and total > most:
            yield Violation(
                rule="quota",
                severity="refuse",
                where=tenant.slug,
                sentence=_sentence(tenant, total - len(new), ", ".join(new[:3]) + (" …" if len(new) > 3 else "")),
            )


def _servers_in(table: PartitionTable, tenant: Tenant) -> set[str]:
    guids: dict[str | None, set[GUID]] = defaultdict(set)
    for partition, member in table.memberships():
        guids[partition.tenant].add(member.guid)
    return {str(guid) for guid in guids[tenant.slug]}


def _sentence(tenant: Tenant, has: int, who: str) -> str:
    return (
        f"{tenant} has {has} server{'' if has == 1 else 's'} and may have {tenant.most_servers}, so {who} cannot come "
        f"to it. Raise the number on the page of {tenant} first, or take another of its servers out."
    )
