"""Who takes part in a scope: its hosts with their ports, and who is left out and why."""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from inventory.models import Port
from partitions.desired import keywords_of
from partitions.models import Membership, Partition
from probes.models import ProbeConsent, ProbeHost, ProbeScope, ProbeSetMember
from probes.terms import PortChoice
from subnet.member import membership_by_keyword


@dataclass(frozen=True, slots=True)
class Rail:
    """One port of a host in a scope."""

    choice: PortChoice
    is_ethernet: bool
    is_limited: bool  # holds the P_Key as a limited member


@dataclass(frozen=True, slots=True)
class ScopeMember:
    """A host of a scope and its ports in the order of device and number: rail 0, 1, …"""

    host: ProbeHost
    rails: tuple[Rail, ...]

    def rail(self, number: int) -> Rail:
        """The port of that rail; a host with fewer ports uses its last one."""
        return self.rails[min(number, len(self.rails) - 1)]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A server of a scope that is not probed; the sentence says why and how to change it."""

    hostname: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Roll:
    """Everybody in a scope, by name."""

    members: tuple[ScopeMember, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def by_host(self) -> Mapping[int, ScopeMember]:
        """The members by row id of their host."""
        return {member.host.pk: member for member in self.members}

    def limited(self, rail: int) -> frozenset[int]:
        """The hosts whose port of that rail is a limited member: two of them cannot talk."""
        return frozenset(member.host.pk for member in self.members if member.rail(rail).is_limited)


def roll_of(scope: ProbeScope) -> Roll:
    """Who takes part in `scope` now. Four queries, whatever the number of servers."""
    rails, hosts, names = _of_probe_set(scope) if scope.partition_id is None else _of_partition(scope)
    refused = _without_consent(list(rails))
    members, left_out = [], []
    for server in sorted(rails, key=lambda key: natural(names[key])):
        host = hosts.get(server)
        if host is None:
            left_out.append(LeftOut(names[server], "It is no probe host: install the on-host program and add it."))
        elif host.withdrawn_at is not None:
            left_out.append(LeftOut(names[server], "It was withdrawn from probes."))
        elif server in refused:
            left_out.append(LeftOut(names[server], f"{refused[server]} has not consented to probes on its servers."))
        else:
            members.append(ScopeMember(host, tuple(rails[server])))
    return Roll(tuple(members), tuple(left_out))


def may_be_probed(hosts: Collection[ProbeHost]) -> str:
    """The sentence that says why one of `hosts` may not be probed any more, or nothing. Asked before every run."""
    for host in hosts:
        if host.withdrawn_at is not None:
            return f"{host} was withdrawn from probes."
    refused = _without_consent([host.server_id for host in hosts])
    return "".join(f"{tenant} has not consented to probes on its servers." for tenant in list(refused.values())[:1])


def natural(text: str) -> list[tuple[int, int | str]]:
    """A key that sorts mlx5_2 before mlx5_10."""
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"([0-9]+)", text) if part]


type _Found = tuple[dict[int, list[Rail]], dict[int, ProbeHost], dict[int, str]]


def _of_partition(scope: ProbeScope) -> _Found:
    """Of a partition: by server, its member ports, its probe host, its name. A port's own line wins over keywords."""
    rows = (
        Membership.objects.filter(partition=scope.partition_id, port__hca__isnull=False)
        .select_related("port__hca__server__probe_host")
        .order_by("port__guid")
    )
    rails: dict[int, list[Rail]] = defaultdict(list)
    hosts: dict[int, ProbeHost] = {}
    names: dict[int, str] = {}
    ports = {row.port: row.kind for row in rows}
    for port, kind in (_by_keyword(scope.partition) | ports).items():
        hca = port.hca
        if hca is None:
            continue
        server = hca.server
        rails[server.pk].append(Rail(port_choice(port), is_ethernet=False, is_limited=kind == "limited"))
        names[server.pk] = server.hostname
        if hasattr(server, "probe_host"):
            hosts[server.pk] = server.probe_host
    for mine in rails.values():
        mine.sort(key=lambda rail: (natural(rail.choice.device), rail.choice.port))
    return dict(rails), hosts, names


def _by_keyword(partition: Partition | None) -> dict[Port, str]:
    """The ports that a keyword such as ALL_CAS makes members of a partition, with their kind; mostly none."""
    kind = membership_by_keyword(keywords_of(partition), "CA", is_self=False) if partition else None
    if partition is None or kind is None:
        return {}
    ports = Port.objects.filter(
        subnet=partition.subnet_id, hca__isnull=False, link_layer=Port.LinkLayer.INFINIBAND, missing_since=None
    )
    return dict.fromkeys(ports.select_related("hca__server__probe_host").order_by("guid"), kind.value)


def _of_probe_set(scope: ProbeScope) -> _Found:
    """Of a probe set: by server, the one port that was named, its probe host, its name."""
    rows = ProbeSetMember.objects.filter(probe_set=scope.probe_set_id).select_related("host__server")
    servers = {row.host.server_id: row for row in rows}
    registered: dict[tuple[int, str, int], Port] = {}
    for port in Port.objects.filter(hca__server__in=servers).select_related("hca").order_by("pk"):
        if port.hca is not None:
            registered[port.hca.server_id, port.hca.device, port.number] = port
    rails: dict[int, list[Rail]] = {}
    for server, row in servers.items():
        known = registered.get((server, row.device, row.port or 1)) if row.device else None
        if known is None:
            choice = PortChoice(device=row.device, port=row.port, interface=row.interface)
            # Nobody registered this port, so nothing says that it has a P_Key to be found by.
            rails[server] = [Rail(choice, is_ethernet=True, is_limited=False)]
        else:
            choice = port_choice(known, interface=row.interface)
            is_ethernet = known.link_layer == Port.LinkLayer.ETHERNET
            rails[server] = [Rail(choice, is_ethernet=is_ethernet, is_limited=False)]
    return (
        rails,
        {server: row.host for server, row in servers.items()},
        {server: row.host.server.hostname for server, row in servers.items()},
    )


def port_choice(port: Port, *, interface: str = "") -> PortChoice:
    """A registered port as an order names it; reads `port.hca`, so fetch that with the row."""
    hca = port.hca
    return PortChoice(
        device="" if hca is None else hca.device,
        port=port.number,
        node_guid="" if hca is None or hca.node_guid is None else str(hca.node_guid),
        port_guid=str(port.guid) if port.link_layer == Port.LinkLayer.INFINIBAND else "",
        interface=interface,
    )


def _without_consent(servers: list[int]) -> dict[int, str]:
    """Servers of a tenant that did not consent, with its name. A server may be in partitions of the provider too."""
    rows = (
        Membership.objects.filter(port__hca__server__in=servers, partition__tenant__isnull=False)
        .exclude(partition__tenant__in=ProbeConsent.objects.filter(is_given=True).values("tenant"))
        .values_list("port__hca__server", "partition__tenant__name")
        .distinct()
    )
    return dict(rows)
