"""register_report: bring the inventory up to what a server says, as far as that is the server's to say.

Gather (four queries), judge (pure, `inventory/reconcile.py`), hear both witnesses, write. Nothing is ever removed or
moved between servers. What became of the server and its ports is kept as history. Reports that have no server and no
GUID in common share a transaction where they come at the same time, each with an event of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.utils import timezone

from audit.record import record_all
from audit.request_id import current_address, current_request_id
from inventory import history
from inventory.inserting import insert, update
from inventory.models import HCA, Port, Server
from inventory.operations import hearing
from inventory.operations.gathering import gather
from inventory.operations.receipts import Receipt
from inventory.operations.reported import KEPT, Case
from inventory.races import settle
from inventory.reconcile import judge
from inventory.report import Report
from inventory.together import Steps, Wish, all_or_each


@dataclass(frozen=True, slots=True)
class Asked:
    """One report to be registered, and the request that brought it."""

    server_id: int
    report: Report
    request_id: str = field(default_factory=current_request_id)
    address: str = field(default_factory=current_address)

    def names(self) -> frozenset[object]:
        """What it touches: its server, and every GUID that it names."""
        guids = (guid for port in self.report.ports for guid in (port.guid, port.node_guid) if guid is not None)
        return frozenset((self.server_id, *guids))


def register_report(*, server: Server, report: Report) -> Receipt:
    """Register what `report` says of `server`; the receipt names an outcome per port.

    A GUID that is another server's, a manager host's or another subnet's is a conflict for an operator. A report like
    the last one writes `reported_at` and nothing else. Two servers that report one GUID at the same moment: one gets
    it, the other a conflict. A host name other than the enrolled one is not taken over: names stand in
    partitions.conf, and a tenant who is root could choose any. Costs the same number of queries for any inventory.
    """
    return settle(lambda: _register([Asked(server.pk, report)], timezone.now()))[0]


def register_with_others(*, server: Server, report: Report) -> Steps[Receipt]:
    """As `register_report`, in one transaction with what else wants to be registered at the same time."""
    asked = Asked(server.pk, report)
    receipt: Receipt = yield Wish(_register_all, asked, asked.names())
    return receipt


def _register_all(asked: Sequence[Asked]) -> Sequence[Receipt | Exception]:
    return all_or_each(lambda some: _register(some, timezone.now()), asked)


def _register(asked: Sequence[Asked], at: datetime) -> list[Receipt]:
    """Register reports that have no server and no GUID in common; statements are made for all of them at once."""
    known_of = gather([(one.server_id, one.report) for one in asked])
    cases = [
        Case(one.report, known, judge(one.report, known), at, one.request_id, one.address)
        for one, known in zip(asked, known_of, strict=True)
    ]
    for case in cases:
        case.settle_hcas()
    # In order of GUID, so that two transactions that name the same ports wait for each other instead of both.
    new_hcas = sorted((hca for case in cases for hca in case.new_hcas), key=lambda hca: hca.node_guid or "")
    insert(HCA, new_hcas, with_keys=True)
    for case in cases:
        case.settle_ports()
    changed = [case for case in cases if case.is_changed]
    for case in changed:
        case.server.reported_at = at
    confirmed = hearing.hear_both([(case.server, case.own_ports()) for case in changed], at)
    new_ports = [port for case in cases for port in case.new_ports]
    new_ports.sort(key=lambda port: port.guid)
    insert(Port, new_ports)
    for case in changed:
        case.tell_confirmed(confirmed)
    receipts = [case.receipt() for case in cases]
    alike = [case.server.pk for case in cases if not case.is_changed]
    if alike:
        Server.objects.filter(pk__in=alike).update(reported_at=at)
    drafts = [draft for case in changed for draft in case.keep()]
    update(Server, [case.server for case in changed], columns=KEPT)
    history.keep(entry for case in changed for entry in case.entries)
    record_all(drafts)
    return receipts
