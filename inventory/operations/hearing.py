"""What a report means beside its own rows: history, both witnesses, the conflicts it opens. For `reports.py`."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings

from inventory import evidence, history, ownership
from inventory.history import Kind, Witness
from inventory.models import HCA, HistoryEntry, Port, PortConflict, Server
from inventory.operations.conflicts import REJECTED
from inventory.reconcile import Judgement, Known
from inventory.report import Report
from inventory.testimony import COLUMNS, heard, hosts_named, keep_home, write_down
from subnet.guid import GUID

_BATCH = 100


def open_conflict(judgement: Judgement, known: Known, report: Report) -> Port | None:
    """Open a conflict with both sides' evidence; None when it is open already or the same claim was rejected.

    A claim whose port nobody has yet (its HCA is another server's) gets a row for the port: a place for the decision.
    """
    reported, port = judgement.reported, judgement.port
    if port is None:
        assert reported.guid is not None  # noqa: S101  judge() calls nothing else a conflict
        port = Port.objects.create(subnet=known.server.subnet, guid=reported.guid, number=reported.number)
    if PortConflict.objects.filter(port=port, claimed_by=known.server, decision=REJECTED).exists():
        return None
    claim = dict(reported.raw)
    stands = evidence.evidence(port=port, claimant=known.server, report=report.raw, claim=claim)
    _, is_new = PortConflict.objects.get_or_create(
        port=port, claimed_by=known.server, closed_at=None, defaults={"claim": claim, "evidence": stands}
    )
    return port if is_new else None


def hear_both(heard_of: Sequence[tuple[Server, Sequence[Port]]], at: datetime) -> dict[str, dict[str, Any]]:
    """Compare what servers say now with what the fabric last showed; give what that confirmed, by port GUID.

    Call it with all ports of each server, as they are to stand. Where the site takes the passive proof, ports on which
    both agree are confirmed by it. Rows that are not in the database yet get their columns and are not saved. None to
    four queries, whatever changed and however many servers.
    """
    everything = [port for _, ports in heard_of for port in ports]
    pasted: dict[tuple[int, GUID], GUID] = {}
    unseen = [p.guid for server, ports in heard_of if server.subnet.looked_at for p in ports if p.seen_at is None]
    if unseen:
        nodes = Port.objects.filter(seen_node_guid__among=unseen)
        for node, guid, subnet_id in nodes.values_list("seen_node_guid", "guid", "subnet_id"):
            if node is not None:
                pasted[subnet_id, GUID(node)] = GUID(guid)
    disputed: set[int] = set()
    if any(port.seen_at is not None and port.confirmed_at is None for port in everything):
        known = [port.pk for port in everything if not port._state.adding]
        disputed = set(PortConflict.objects.filter(closed_at=None, port__in=known).values_list("port_id", flat=True))
    named: dict[int, Mapping[str, str]] = {}
    for subnet in {server.subnet for server, _ in heard_of}:
        told = {p.seen_description for server, ports in heard_of if server.subnet_id == subnet.pk for p in ports}
        named[subnet.pk] = hosts_named(subnet, told)
    confirmed: dict[str, dict[str, Any]] = {}
    rows = []
    for server, ports in heard_of:
        for port in ports:
            said = heard(
                port,
                server=server,
                subnet=server.subnet,
                looked_at=server.subnet.looked_at,
                names=named[server.subnet_id].get(port.seen_description, ""),
                port_of_node=pasted.get((server.subnet_id, port.guid)),
            )
            is_news = write_down(port, said)
            is_proven = said is not None and said.is_proof and settings.REGISTRATION_TRUST != ownership.PERSON
            is_member = port.link_layer == Port.LinkLayer.INFINIBAND and port.pk not in disputed
            if is_proven and is_member and port.confirmed_at is None:
                port.confirmed_at, port.confirmed_how = at, ownership.WITNESSED
                is_news = True
                confirmed[str(port.guid)] = {"confirmed_at": at, "confirmed_how": ownership.WITNESSED}
            if (is_news | keep_home(port)) and not port._state.adding:
                rows.append(port)
    if rows:
        columns = ["confirmed_at", "confirmed_how", "home_leaf_guid", "home_leaf_port", *COLUMNS]
        Port.objects.bulk_update(rows, columns, batch_size=_BATCH)
    return confirmed


def port_entries(port: Port, values: Mapping[str, Any], server: Server, at: datetime) -> Iterable[HistoryEntry]:
    """History of what a report says anew (`values`, by column) of a port that was this server's already."""
    if port.hca is None or port.hca.server_id != server.pk:
        return
    if port.state and values["state"] and port.state != values["state"]:
        yield _entry(Kind.LINK, port, server, at, before=port.state, after=values["state"])
    if port.missing_since is not None:
        yield _entry(Kind.MISSING, port, server, at, before="missing", after="reported again")


def missing_entry(port: Port, server: Server, at: datetime) -> HistoryEntry:
    """History of a port that its server reports no more."""
    return _entry(Kind.MISSING, port, server, at, before="reported", after="missing")


def hca_entries(hca: HCA, news: Mapping[str, Any], server: Server, at: datetime) -> Iterable[HistoryEntry]:
    """History of an HCA that has another device name or firmware; call it before `news` are written into the row."""
    for name, kind in (("device", Kind.DEVICE), ("firmware", Kind.FIRMWARE)):
        if name in news and getattr(hca, name):
            yield history.entry(
                kind,
                Witness.SERVER,
                what=hca.node_guid or hca.device,
                before=getattr(hca, name),
                after=news[name],
                at=at,
                server=server,
            )


def boot_entries(server: Server, before: str, after: str, at: datetime) -> Iterable[HistoryEntry]:
    """History of a reboot: another boot id than before. The first one is none."""
    if before and after and before != after:
        yield history.entry(Kind.REBOOT, Witness.SERVER, what=server, before=before, after=after, at=at, server=server)


def _entry(kind: Kind, port: Port, server: Server, at: datetime, *, before: str, after: str) -> HistoryEntry:
    return history.entry(
        kind, Witness.SERVER, what=port.guid, before=before, after=after, at=at, server=server, port=port
    )
