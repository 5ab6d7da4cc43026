"""register_report: bring the inventory up to what a server says, as far as that is the server's to say.

Gather (four queries), judge (pure, `inventory/reconcile.py`), write, hear both witnesses. Nothing is ever removed or
moved between servers. What became of the server and its ports is kept as history.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from inventory import history, ownership
from inventory.models import HCA, HistoryEntry, ManagerHost, Port, Server
from inventory.operations import hearing
from inventory.races import settle
from inventory.reconcile import Judgement, Known, Outcome, fields_of, judge
from inventory.report import Report
from inventory.subjects import port_subject, server_actor, server_subject
from subnet.guid import GUID


@dataclass(frozen=True, slots=True)
class PortOutcome:
    """What became of one reported port."""

    device: str
    number: int
    guid: GUID | None
    outcome: Outcome
    sentence: str
    is_confirmed: bool

    def to_json(self) -> dict[str, Any]:
        """The outcome as the agent gets it."""
        return {
            "device": self.device,
            "port": self.number,
            "port_guid": None if self.guid is None else str(self.guid),
            "outcome": self.outcome.value,
            "sentence": self.sentence or None,
            "confirmed": self.is_confirmed,
        }


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a report: an outcome per port, and the known ports of the server it did not mention."""

    server: Server
    outcomes: tuple[PortOutcome, ...]
    not_reported: tuple[GUID, ...]
    is_changed: bool  # whether anything but `reported_at` was written
    sentence: str

    def to_json(self) -> dict[str, Any]:
        """The receipt as the agent gets it."""
        return {
            "server": self.server.public_id,
            "hostname": self.server.hostname,
            "changed": self.is_changed,
            "ports": [outcome.to_json() for outcome in self.outcomes],
            "not_reported": [str(guid) for guid in self.not_reported],
            "sentence": self.sentence or None,
        }


@dataclass(slots=True)
class _Changes:
    """What one report changes, for the event: before and after by port GUID, and the conflicts it opened."""

    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    conflicts: list[tuple[Port, Judgement]] = field(default_factory=list)
    touched_hcas: set[int] = field(default_factory=set)  # id() of each HCA of which anything was news
    touched: set[GUID] = field(default_factory=set)  # ports of which anything, their HCA included, was news
    entries: list[HistoryEntry] = field(default_factory=list)


def register_report(*, server: Server, report: Report) -> Receipt:
    """Register what `report` says of `server`; the receipt names an outcome per port.

    A GUID that is another server's, a manager host's or another subnet's is a conflict for an operator. A report like
    the last one writes `reported_at` and nothing else. Two servers that report one GUID at the same moment: one gets
    it, the other a conflict. A host name other than the enrolled one is not taken over: names stand in
    partitions.conf, and a tenant who is root could choose any. Costs the same number of queries for any inventory.
    """
    return settle(lambda: _register(server.pk, report, timezone.now()))


def _register(server_id: int, report: Report, at: datetime) -> Receipt:
    # The last report itself is not read: a server's row is some 10 KB without need.
    servers = Server.objects.select_related("subnet").defer("report").select_for_update(of=("self",))
    server = servers.get(pk=server_id)
    known = _gather(server, report)
    judgements = judge(report, known)
    changes = _Changes()
    # In order of GUID, so that two reports that name the same ports wait for each other instead of both.
    in_order = sorted(judgements, key=lambda one: (one.reported.node_guid or "", one.reported.guid or ""))
    hcas = _write_hcas(in_order, known, changes, at)
    written = (_write(judgement, hcas, known, changes, at, report) for judgement in in_order)
    Port.objects.bulk_create([port for port in written if port is not None])
    not_reported = _mark_missing(judgements, known, changes, at)
    is_changed = bool(changes.after) or bool(changes.conflicts) or server.report_digest != report.digest
    if is_changed:
        server.reported_at = at
        for guid, told in hearing.hear_both(server, at).items():
            changes.after[guid] = changes.after.get(guid, {}) | _plain(told)
    outcomes = tuple(_outcome(judgement, changes) for judgement in judgements)
    sentence = report.note
    if report.hostname != server.hostname:
        sentence = f"The server reports as {report.hostname}; here it stays {server.hostname}, as enrolled. {sentence}"
    receipt = Receipt(server, outcomes, not_reported, is_changed, sentence.strip())
    if not is_changed:
        Server.objects.filter(pk=server.pk).update(reported_at=at)
        return receipt
    is_first, old_boot_id = not server.report_digest, server.boot_id
    server.boot_id, server.reported_at = report.boot_id, at
    server.report, server.report_digest = dict(report.raw), report.digest
    server.save(update_fields=["boot_id", "reported_at", "report", "report_digest"])
    changes.entries += hearing.boot_entries(server, old_boot_id, report.boot_id, at)
    history.keep(changes.entries)
    _record(receipt, changes, is_first=is_first, boot_ids=(old_boot_id, report.boot_id))
    return receipt


def _gather(server: Server, report: Report) -> Known:
    guids = {port.guid for port in report.ports if port.guid is not None and port.is_infiniband}
    nodes = {port.node_guid for port in report.ports if port.node_guid is not None}
    named = HCA.objects.select_related("server").defer("server__report")
    hcas = list(named.filter(Q(server=server) | Q(node_guid__in=nodes)).order_by("pk"))
    ports: dict[GUID, Port] = {}
    # Two queries, each with an index of its own; the second asks nothing of a server that has no HCA yet.
    for condition in (Q(guid__in=guids), Q(hca__in=[hca.pk for hca in hcas])):
        rows = Port.objects.select_related("hca__server").defer("hca__server__report")
        ports |= {port.guid: port for port in rows.filter(condition)}
    managers = ManagerHost.objects.filter(port_guid__in=guids).values_list("port_guid", "name")
    return Known(
        server=server,
        ports=ports,
        own_hcas=[hca for hca in hcas if hca.server_id == server.pk],
        others_hcas={hca.node_guid: hca for hca in hcas if hca.server_id != server.pk},
        manager_ports={GUID(guid): name for guid, name in managers},
    )


def _write_hcas(judgements: list[Judgement], known: Known, changes: _Changes, at: datetime) -> dict[int, HCA]:
    """The server's HCA behind each port that is its own, by the judgement's id(); created or renamed as reported."""
    hcas: dict[int, HCA] = {}
    new: list[HCA] = []
    for judgement in judgements:
        if judgement.outcome not in {Outcome.NEW, Outcome.CHANGED}:
            continue
        reported = judgement.reported
        hca = known.own_hca(reported)
        said: dict[str, Any] = {"device": reported.device, "system_image_guid": reported.system_image_guid}
        for name in ("firmware", "board_id"):
            if text := str(reported.raw.get(name) or "").strip():
                said[name] = text[:64]
        if reported.node_guid is not None:
            said["node_guid"] = reported.node_guid
        if hca is None:
            hca = HCA(server=known.server, **said)
            known.own_hcas.append(hca)
            new.append(hca)
            changes.after[f"hca {reported.node_guid or reported.device}"] = _plain(said)
            changes.touched_hcas.add(id(hca))
        else:
            _change_hca(hca, said, known, changes, at)
        hcas[id(judgement)] = hca
    HCA.objects.bulk_create(new)
    return hcas


def _change_hca(hca: HCA, said: dict[str, Any], known: Known, changes: _Changes, at: datetime) -> None:
    news = {name: value for name, value in said.items() if getattr(hca, name) != value}
    if not news:
        return
    changes.touched_hcas.add(id(hca))
    key = f"hca {hca.node_guid or hca.device}"
    changes.before[key] = _plain({name: getattr(hca, name) for name in news})
    changes.after[key] = _plain(news)
    if hca.pk is not None:
        changes.entries += hearing.hca_entries(hca, news, known.server, at)
    for name, value in news.items():
        setattr(hca, name, value)
    if hca.pk is not None:  # else it is about to be created with what it has now
        hca.save(update_fields=list(news))


def _write(
    judgement: Judgement, hcas: dict[int, HCA], known: Known, changes: _Changes, at: datetime, report: Report
) -> Port | None:
    """Write what one judgement asks for, and nothing where the rows say so already; give the row to create, if any."""
    reported, port = judgement.reported, judgement.port
    match judgement.outcome:
        case Outcome.CONFLICT:
            opened = hearing.open_conflict(judgement, known, report)
            if opened is not None:
                changes.conflicts.append((opened, judgement))
        case Outcome.ETHERNET if port is not None:
            _change(port, {"link_layer": Port.LinkLayer.ETHERNET, "missing_since": None}, changes)
        case Outcome.NO_GUID | Outcome.NO_LINK_LAYER | Outcome.DUPLICATE if port is not None:
            _change(port, {"missing_since": None}, changes)
        case Outcome.NEW | Outcome.CHANGED:
            assert reported.guid is not None  # noqa: S101  judge() gives NEW and CHANGED to no other
            hca = hcas[id(judgement)]
            values = fields_of(reported) | {"hca": hca}
            is_elsewhere = reported.subnet_prefix not in {None, known.server.subnet.prefix}
            is_new = judgement.outcome is Outcome.NEW
            is_trusted = is_new and settings.REGISTRATION_TRUST == "enrolled" and not is_elsewhere
            if is_trusted and (port is None or port.confirmed_at is None):
                values |= {"confirmed_at": at, "confirmed_how": ownership.ENROLLED}
            key = str(reported.guid)
            if port is not None:
                changes.entries += hearing.port_entries(port, values, known.server, at)
                _change(port, values, changes)
            else:
                changes.after[key] = {name: value for name, value in _plain(values).items() if value not in (None, "")}
            if key in changes.after or id(hca) in changes.touched_hcas:
                changes.touched.add(reported.guid)
            if port is None:
                return Port(subnet=known.server.subnet, guid=reported.guid, **values)
    return None


def _change(port: Port, values: dict[str, Any], changes: _Changes) -> None:
    """Set those of `values` that are news, and remember both sides."""
    news = {name: value for name, value in values.items() if getattr(port, name) != value}
    if not news:
        return
    changes.before[str(port.guid)] = _plain({name: getattr(port, name) for name in news})
    changes.after[str(port.guid)] = _plain(news)
    for name, value in news.items():
        setattr(port, name, value)
    port.save(update_fields=list(news))


def _mark_missing(judgements: tuple[Judgement, ...], known: Known, changes: _Changes, at: datetime) -> tuple[GUID, ...]:
    """Note since when each of the server's ports has not been reported; nothing else about it changes."""
    present = {judgement.port.pk for judgement in judgements if judgement.port is not None}
    missing = [
        port
        for port in known.ports.values()
        if port.hca is not None and port.hca.server_id == known.server.pk and port.pk not in present
    ]
    for port in missing:
        if port.missing_since is None:
            _change(port, {"missing_since": at}, changes)
            changes.entries.append(hearing.missing_entry(port, known.server, at))
    return tuple(sorted(port.guid for port in missing))


def _outcome(judgement: Judgement, changes: _Changes) -> PortOutcome:
    reported, port, outcome = judgement.reported, judgement.port, judgement.outcome
    if outcome is Outcome.CHANGED and reported.guid not in changes.touched:
        outcome = Outcome.UNCHANGED
    confirmed = "confirmed_at" in changes.after.get(str(reported.guid), {})
    if outcome in {Outcome.CHANGED, Outcome.UNCHANGED, Outcome.NEW} and port is not None:
        confirmed = confirmed or ownership.is_trusted(port)
    return PortOutcome(
        device=reported.device,
        number=reported.number,
        guid=reported.guid,
        outcome=outcome,
        sentence=judgement.sentence,
        is_confirmed=confirmed,
    )


def _record(receipt: Receipt, changes: _Changes, *, is_first: bool, boot_ids: tuple[str, str]) -> None:
    """One event for the report, one for each conflict it opened."""
    server = receipt.server
    actor = server_actor(server)
    before, after = dict(changes.before), dict(changes.after)
    if boot_ids[0] != boot_ids[1]:
        before["boot_id"], after["boot_id"] = boot_ids
    after["report"] = server.report_digest
    if changes.conflicts:
        after["conflicts"] = [str(port.guid) for port, _ in changes.conflicts]
    record(
        action=Action.SERVER_REGISTER if is_first else Action.SERVER_REPORT_CHANGED,
        actor=actor,
        subject=server_subject(server),
        before=before or None,
        after=after,
    )
    for port, judgement in changes.conflicts:
        owner = port.server
        record(
            action=Action.PORT_CONFLICT,
            actor=actor,
            subject=port_subject(port, label=f"{port.guid} of {owner}" if owner else ""),
            before={"server": None if owner is None else owner.public_id},
            after={"claimed_by": server.public_id, "sentence": judgement.sentence},
        )


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """`values` as an event can hold them: rows by their name, times as text."""
    plain: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, HCA):
            plain[name] = str(value.node_guid or value.device)
        elif isinstance(value, datetime):
            plain[name] = value.isoformat()
        else:
            plain[name] = value if value is None or isinstance(value, (int, float)) else str(value)
    return plain
