"""Closing Default on the rows: stage it for canary servers, then for everybody, with its impact told beforehand.

What is staged goes out like any other change: the plan page, a reason, a rollout, a proof.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from django.db import transaction

from deploy import queries
from inventory.models import Port, Server, Subnet
from partitions.adoption import adopted_revision
from partitions.default_rule import discard_default, stage_default
from partitions.desired import default_of, sm_ports
from partitions.doer import Doer
from partitions.errors import MoveRefused, NoRevision
from partitions.models import StagedDefault
from subnet.closing import Impact, closed, impact, with_canaries
from subnet.default import DefaultPartition
from subnet.guid import GUID
from subnet.pkey import Membership
from subnet.table import PartitionTable

__all__ = ["Closing", "closing_of", "discard_default", "stage_canaries", "stage_closed"]


@dataclass(frozen=True)
class Closing:
    """How far Default is closed, what is staged, and what that, or closing it altogether, would do.

    `staged_impact` is None while nothing is staged; both impacts are None as long as no tables were read.
    """

    current: DefaultPartition
    staged: StagedDefault | None
    canaries: tuple[Server, ...]  # limited by exception while everybody else is full
    stay_full: tuple[Server, ...]  # full by exception
    full_without_server: tuple[GUID, ...]
    staged_impact: Impact | None
    whole_impact: Impact | None

    @property
    def step(self) -> str:
        """`open`, `canary` (open, with limited servers) or `closed`."""
        if not self.current.is_open:
            return "closed"
        return "canary" if self.canaries else "open"


def closing_of(subnet: Subnet) -> Closing:
    """What the current revision and the staged change say of Default. Raises NoRevision."""
    table = _current(subnet)
    staged = StagedDefault.objects.filter(subnet=subnet).select_related("by").first()
    observation = queries.latest_observation(subnet)
    fabric = None if observation is None else queries.observed_fabric(observation)
    named = {member.guid: member.membership for member in table.default.members}
    servers = _servers_of(subnet, named)
    ports = sm_ports(subnet)
    staged_impact = whole = None
    if fabric is not None:
        whole = impact(table, replace(table, sm_ports=ports, default=closed(table.default, ())), fabric)
        if staged is not None:
            wanted = replace(table, sm_ports=ports, default=default_of(staged, table.default))
            staged_impact = impact(table, wanted, fabric)
    limited = {server for guid, server in servers.items() if named[guid] == Membership.LIMITED}
    full = {server for guid, server in servers.items() if named[guid] == Membership.FULL}
    return Closing(
        current=table.default,
        staged=staged,
        canaries=_by_hostname(limited),
        stay_full=_by_hostname(full),
        full_without_server=tuple(
            guid for guid, how in named.items() if how == Membership.FULL and guid not in servers
        ),
        staged_impact=staged_impact,
        whole_impact=whole,
    )


@transaction.atomic
def stage_canaries(
    *, subnet: Subnet, servers: Collection[Server], actor: Doer, reason: str = ""
) -> StagedDefault | None:
    """Want the InfiniBand ports of `servers`, and of no other server, to be limited in Default while it is open.

    Raises MoveRefused, NoRevision, InvalidTable for a manager host's port.
    """
    table = _current(subnet)
    if not table.default.is_open:
        raise MoveRefused("Default is closed already: every HCA port is limited there unless excepted.", rule="closed")
    wanted = with_canaries(table.default, _ports_of(servers))
    return stage_default(subnet=subnet, keywords=wanted.keywords, members=wanted.members, actor=actor, reason=reason)


@transaction.atomic
def stage_closed(
    *, subnet: Subnet, stay_full: Collection[Server], actor: Doer, reason: str = ""
) -> StagedDefault | None:
    """Want everybody limited in Default but the SM ports, `stay_full`, and what is full by GUID already.

    Raises MoveRefused, NoRevision.
    """
    table = _current(subnet)
    wanted = closed(table.default, _ports_of(stay_full) if stay_full else ())
    return stage_default(subnet=subnet, keywords=wanted.keywords, members=wanted.members, actor=actor, reason=reason)


def _current(subnet: Subnet) -> PartitionTable:
    revision = queries.current_revision(subnet)
    if revision is None:
        raise NoRevision(f"Subnet {subnet} has no first revision yet. Adopt what stands on its manager hosts first.")
    if adopted_revision(subnet) is not None:
        raise MoveRefused(
            "The adopted file has to be placed as it is, and proven, before Default may change.", rule="adoption"
        )
    return revision.partition_table()


def _ports_of(servers: Collection[Server]) -> tuple[GUID, ...]:
    """The InfiniBand ports of the servers; raise MoveRefused for none."""
    ports = Port.objects.filter(hca__server__in=servers, link_layer=Port.LinkLayer.INFINIBAND)
    guids = tuple(GUID(guid) for guid in ports.order_by("guid").values_list("guid", flat=True))
    if not guids:
        raise MoveRefused("Choose at least one server with an InfiniBand port.", rule="no_ports")
    return guids


def _servers_of(subnet: Subnet, guids: Iterable[GUID]) -> dict[GUID, Server]:
    rows = Port.objects.filter(subnet=subnet, hca__isnull=False, guid__in=list(guids)).select_related("hca__server")
    return {GUID(port.guid): port.hca.server for port in rows if port.hca is not None}


def _by_hostname(servers: Iterable[Server]) -> tuple[Server, ...]:
    return tuple(sorted(servers, key=lambda server: server.hostname))
