"""Case: one report on its way through the transaction that registers it. For `reports.py`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.db import IntegrityError

from audit.actions import Action
from audit.record import Draft
from inventory import ownership
from inventory.models import HCA, HistoryEntry, Port, Server
from inventory.operations import hearing
from inventory.operations.receipts import PortOutcome, Receipt
from inventory.reconcile import Judgement, Known, Outcome, fields_of
from inventory.report import Report
from inventory.subjects import port_subject, server_actor, server_subject
from subnet.guid import GUID

KEPT: Final = ("boot_id", "reported_at", "report", "report_digest")  # columns of a Server; `keep` leaves them to save


@dataclass(slots=True)
class Case:
    """A report, what the inventory holds about it, and what becomes of both.

    Call `settle_hcas`, save `new_hcas`, call `settle_ports`, save `new_ports`, then ask for the receipt, `keep`, and
    save the columns KEPT.
    """

    report: Report
    known: Known
    judgements: tuple[Judgement, ...]
    at: datetime
    request_id: str
    address: str
    # For the event: both sides by port GUID, and the conflicts that were opened.
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    conflicts: list[tuple[Port, Judgement]] = field(default_factory=list)
    entries: list[HistoryEntry] = field(default_factory=list)
    new_hcas: list[HCA] = field(default_factory=list)
    new_ports: list[Port] = field(default_factory=list)
    not_reported: tuple[GUID, ...] = ()  # known ports of the server that the report leaves out
    is_changed: bool = False  # whether anything but `reported_at` is to be written
    _hcas: dict[int, HCA] = field(default_factory=dict)  # behind each port that is its own, by the judgement's id()
    _touched_hcas: set[int] = field(default_factory=set)  # id() of each HCA of which anything was news
    _touched: set[GUID] = field(default_factory=set)  # ports of which anything, their HCA included, was news

    @property
    def server(self) -> Server:
        """The server that reports."""
        return self.known.server

    def own_ports(self) -> list[Port]:
        """The server's ports as they are to stand afterwards, saved or not."""
        known = self.known.ports.values()
        return [port for port in known if port.hca and port.hca.server_id == self.server.pk] + self.new_ports

    def settle_hcas(self) -> None:
        """Find the HCA behind each port that is the server's own: known ones get the news, missing ones are made."""
        for judgement in sorted(self.judgements, key=lambda one: one.reported.node_guid or ""):
            if judgement.outcome not in {Outcome.NEW, Outcome.CHANGED}:
                continue
            reported = judgement.reported
            hca = self.known.own_hca(reported)
            said: dict[str, Any] = {"device": reported.device, "system_image_guid": reported.system_image_guid}
            for name in ("firmware", "board_id"):
                if text := str(reported.raw.get(name) or "").strip():
                    said[name] = text[:64]
            if reported.node_guid is not None:
                said["node_guid"] = reported.node_guid
            if hca is None:
                hca = HCA(server=self.server, **said)
                self.known.own_hcas.append(hca)
                self.new_hcas.append(hca)
                self.after[f"hca {reported.node_guid or reported.device}"] = _plain(said)
                self._touched_hcas.add(id(hca))
            else:
                self._change_hca(hca, said)
            self._hcas[id(judgement)] = hca

    def _change_hca(self, hca: HCA, said: Mapping[str, Any]) -> None:
        news = {name: value for name, value in said.items() if getattr(hca, name) != value}
        if not news:
            return
        self._touched_hcas.add(id(hca))
        key = f"hca {hca.node_guid or hca.device}"
        self.before[key] = _plain({name: getattr(hca, name) for name in news})
        self.after[key] = _plain(news)
        if hca.pk is not None:
            self.entries += hearing.hca_entries(hca, news, self.server, self.at)
        for name, value in news.items():
            setattr(hca, name, value)
        if hca.pk is not None:  # else it is about to be created with what it has now
            hca.save(update_fields=list(news))

    def settle_ports(self) -> None:
        """Save what is news of known ports, make new ones, note the missing ones, open conflicts."""
        for judgement in sorted(self.judgements, key=lambda one: one.reported.guid or ""):
            self._settle(judgement)
        self._mark_missing()
        self.is_changed = bool(self.after or self.conflicts) or self.server.report_digest != self.report.digest

    def _settle(self, judgement: Judgement) -> None:
        port = judgement.port
        match judgement.outcome:
            case Outcome.CONFLICT:
                opened = hearing.open_conflict(judgement, self.known, self.report)
                if opened is not None:
                    self.conflicts.append((opened, judgement))
            case Outcome.ETHERNET if port is not None:
                self._change(port, {"link_layer": Port.LinkLayer.ETHERNET, "missing_since": None})
            case Outcome.NO_GUID | Outcome.NO_LINK_LAYER | Outcome.DUPLICATE if port is not None:
                self._change(port, {"missing_since": None})
            case Outcome.NEW | Outcome.CHANGED:
                self._settle_own(judgement)

    def _settle_own(self, judgement: Judgement) -> None:
        reported, port = judgement.reported, judgement.port
        assert reported.guid is not None  # noqa: S101  judge() gives NEW and CHANGED to no other
        hca = self._hcas[id(judgement)]
        values = fields_of(reported) | {"hca": hca}
        is_elsewhere = reported.subnet_prefix not in {None, self.server.subnet.prefix}
        is_new = judgement.outcome is Outcome.NEW
        is_trusted = is_new and settings.REGISTRATION_TRUST == "enrolled" and not is_elsewhere
        if is_trusted and (port is None or port.confirmed_at is None):
            values |= {"confirmed_at": self.at, "confirmed_how": ownership.ENROLLED}
        key = str(reported.guid)
        if port is not None:
            self.entries += hearing.port_entries(port, values, self.server, self.at)
            self._change(port, values, is_nobodys=is_new)
        else:
            self.after[key] = {name: value for name, value in _plain(values).items() if value not in (None, "")}
            self.new_ports.append(Port(subnet=self.server.subnet, guid=reported.guid, **values))
        if key in self.after or id(hca) in self._touched_hcas:
            self._touched.add(reported.guid)

    def _change(self, port: Port, values: Mapping[str, Any], *, is_nobodys: bool = False) -> None:
        """Set those of `values` that are news, and remember both sides.

        A port that was nobody's is taken only if it still is: another process may have taken it since we looked.
        """
        news = {name: value for name, value in values.items() if getattr(port, name) != value}
        if not news:
            return
        self.before[str(port.guid)] = _plain({name: getattr(port, name) for name in news})
        self.after[str(port.guid)] = _plain(news)
        for name, value in news.items():
            setattr(port, name, value)
        if not is_nobodys:
            port.save(update_fields=list(news))
        elif Port.objects.filter(pk=port.pk, hca=None).update(**news) != 1:
            raise IntegrityError(f"Port {port.guid} has become another server's. Look again.")

    def _mark_missing(self) -> None:
        """Note since when each of the server's ports has not been reported; nothing else about it changes."""
        present = {judgement.port.pk for judgement in self.judgements if judgement.port is not None}
        new = {id(port) for port in self.new_ports}
        missing = [port for port in self.own_ports() if port.pk not in present and id(port) not in new]
        for port in missing:
            if port.missing_since is None:
                self._change(port, {"missing_since": self.at})
                self.entries.append(hearing.missing_entry(port, self.server, self.at))
        self.not_reported = tuple(sorted(port.guid for port in missing))

    def tell_confirmed(self, confirmed: Mapping[str, Mapping[str, Any]]) -> None:
        """Add to the event what both witnesses confirmed, of those in `confirmed` (by GUID) that are the server's."""
        for port in self.own_ports() if confirmed else ():
            told = confirmed.get(str(port.guid))
            if told is not None:
                self.after[str(port.guid)] = self.after.get(str(port.guid), {}) | _plain(told)

    def receipt(self) -> Receipt:
        """What the agent is told."""
        outcomes = tuple(self._outcome(judgement) for judgement in self.judgements)
        server, sentence = self.server, self.report.note
        if self.report.hostname != server.hostname:
            named = self.report.hostname
            sentence = f"The server reports as {named}; here it stays {server.hostname}, as enrolled. {sentence}"
        return Receipt(server, outcomes, self.not_reported, self.is_changed, sentence.strip())

    def _outcome(self, judgement: Judgement) -> PortOutcome:
        reported, port, outcome = judgement.reported, judgement.port, judgement.outcome
        if outcome is Outcome.CHANGED and reported.guid not in self._touched:
            outcome = Outcome.UNCHANGED
        confirmed = "confirmed_at" in self.after.get(str(reported.guid), {})
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

    def keep(self) -> Iterable[Draft]:
        """Keep the report itself, in the KEPT columns; give one event for it, and one for each conflict it opened."""
        server, report = self.server, self.report
        is_first, old_boot_id = not server.report_digest, server.boot_id
        server.boot_id, server.reported_at = report.boot_id, self.at
        server.report, server.report_digest = dict(report.raw), report.digest
        self.entries += hearing.boot_entries(server, old_boot_id, report.boot_id, self.at)
        before, after = dict(self.before), dict(self.after)
        if old_boot_id != report.boot_id:
            before["boot_id"], after["boot_id"] = old_boot_id, report.boot_id
        after["report"] = report.digest
        if self.conflicts:
            after["conflicts"] = [str(port.guid) for port, _ in self.conflicts]
        yield Draft(
            action=Action.SERVER_REGISTER if is_first else Action.SERVER_REPORT_CHANGED,
            actor=server_actor(server),
            subject=server_subject(server),
            before=before or None,
            after=after,
            request_id=self.request_id,
            address=self.address,
        )
        for port, judgement in self.conflicts:
            owner = port.server
            yield Draft(
                action=Action.PORT_CONFLICT,
                actor=server_actor(server),
                subject=port_subject(port, label=f"{port.guid} of {owner}" if owner else ""),
                before={"server": None if owner is None else owner.public_id},
                after={"claimed_by": server.public_id, "sentence": judgement.sentence},
                request_id=self.request_id,
                address=self.address,
            )


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
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
