"""gather: what the inventory holds about some reports, in a number of queries that does not depend on how many."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from django.db.models import Q

from inventory.models import HCA, ManagerHost, Port, Server
from inventory.reconcile import Known
from inventory.report import Report
from subnet.guid import GUID


def gather(reports: Sequence[tuple[int, Report]]) -> list[Known]:
    """For each report of a server (its primary key, locked until the commit) what is known of both. Five queries.

    Another one when a report names an HCA or a port of somebody else. The servers' last reports are not read: a row
    is some 10 KB without need.
    """
    rows = Server.objects.select_related("subnet").defer("report").select_for_update(of=("self",)).order_by("pk")
    servers = {server.pk: server for server in rows.filter(pk__in=[pk for pk, _ in reports])}
    guids = {
        port.guid for _, report in reports for port in report.ports if port.guid is not None and port.is_infiniband
    }
    nodes = {port.node_guid for _, report in reports for port in report.ports if port.node_guid is not None}
    hcas = {hca.pk: hca for hca in HCA.objects.filter(Q(server__in=servers) | Q(node_guid__among=nodes)).order_by("pk")}
    # Two queries, each with an index of its own; the second asks nothing of servers that have no HCA yet.
    ports = list(Port.objects.filter(guid__among=guids))
    if hcas:
        ports += Port.objects.filter(hca__in=hcas).exclude(guid__among=guids)
    _put_together(ports, hcas, servers)
    # All of them: there are two or three, and to name hundreds of GUIDs costs more than to read those.
    managers = {GUID(guid): name for guid, name in ManagerHost.objects.values_list("port_guid", "name")}
    by_guid = {port.guid: port for port in ports}
    by_hca: Mapping[int | None, list[Port]] = defaultdict(list)
    for port in ports:
        by_hca[port.hca_id].append(port)
    return [_known(servers[pk], report, list(hcas.values()), by_guid, by_hca, managers) for pk, report in reports]


def _put_together(ports: Sequence[Port], hcas: dict[int, HCA], servers: Mapping[int, Server]) -> None:
    """Give each port its HCA and each HCA its server, from the rows at hand where they are there."""
    missing = {port.hca_id for port in ports if port.hca_id is not None} - hcas.keys()
    others = {hca.pk: hca for hca in HCA.objects.filter(pk__in=missing)} if missing else {}
    strangers = {hca.server_id for hca in (*hcas.values(), *others.values())} - servers.keys()
    found = Server.objects.defer("report").in_bulk(strangers) if strangers else {}
    for hca in (*hcas.values(), *others.values()):
        hca.server = servers.get(hca.server_id) or found[hca.server_id]
    for port in ports:
        if port.hca_id is not None:
            port.hca = hcas.get(port.hca_id) or others[port.hca_id]


def _known(
    server: Server,
    report: Report,
    hcas: Sequence[HCA],
    by_guid: Mapping[GUID, Port],
    by_hca: Mapping[int | None, list[Port]],
    managers: Mapping[GUID, str],
) -> Known:
    nodes = {port.node_guid for port in report.ports}
    named = [
        hca for hca in hcas if hca.server_id == server.pk or (hca.node_guid is not None and hca.node_guid in nodes)
    ]
    guids = [port.guid for port in report.ports if port.guid is not None and port.is_infiniband]
    ports = {guid: by_guid[guid] for guid in guids if guid in by_guid}
    ports |= {port.guid: port for hca in named for port in by_hca[hca.pk]}
    return Known(
        server=server,
        ports=ports,
        own_hcas=[hca for hca in named if hca.server_id == server.pk],
        others_hcas={hca.node_guid: hca for hca in named if hca.server_id != server.pk and hca.node_guid is not None},
        manager_ports={guid: managers[guid] for guid in guids if guid in managers},
    )
