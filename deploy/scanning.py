"""The tables between rollouts: a paced scan that rolls over all ports, and goes through to the end when it must.

A difference counts when two readings in a row say the same. The age of the coverage is when the last complete round
began: every port was read since.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings

from deploy import drift_causes, drifting, whole_looks
from deploy.drift_findings import Finding, Seen
from deploy.drift_models import Drift, Watch
from deploy.drift_tables import FEW, PartJudgement, finding_of, judge_part, merged
from deploy.look import HostView, Look, told
from deploy.models import Revision
from inventory.models import Subnet
from inventory.operations import record_seen
from remote.errors import RemoteError, TablesMoved
from remote.watch_verbs import ScanPart
from subnet.errors import InvalidListing
from subnet.observed import ObservedFabric, PortReading, parse_reading

log = logging.getLogger(__name__)

BEGINNING: Final = "0x0000000000000000"
TIMEOUT_S: Final = 120
TRIES: Final = 3  # of a part that a sweep overtook
LEASE: Final = timedelta(seconds=300)


class Scan:
    """The scan's share of one look."""

    def __init__(
        self, subnet: Subnet, row: Watch, current: Revision, *, look: Look, clock: Callable[[], datetime]
    ) -> None:
        self.subnet, self.row, self.look, self.clock = subnet, row, look, clock
        self.current = current
        self.table = current.partition_table()

    def run(self, must_yield: Callable[[], bool]) -> bool:
        """Read one part, or all that is owed; return whether another look soon would decide something."""
        view = self._reader()
        if view is None:
            return False
        doubtful = False
        goes_on = True
        seen: list[PortReading] = []
        from_the_start = not self.row.scan_after
        while goes_on and not must_yield():
            try:
                part, fabric, judged = self._part(view)
            except (RemoteError, InvalidListing) as error:
                self._fail(told(view.name, error))
                return doubtful
            if must_yield():
                return doubtful
            doubtful |= self._settle(part, judged)
            seen += fabric.ports.values()
            goes_on = self._advance(part)
            if not goes_on:
                # Only a look from the first port to the last can say of one that it is not there any more.
                is_complete = from_the_start and not part.has_more
                now = self.clock()
                record_seen(subnet=self.subnet, readings=seen, at=now, is_complete=is_complete)
                if is_complete:
                    readings = {one.guid: one for one in seen}
                    whole_looks.tell(whole_looks.WholeLook(self.subnet, readings, now, is_discovery=False))
        return doubtful

    def _reader(self) -> HostView | None:
        """The host that reads: the master's, else one that answers; a list it kept still names the ports."""
        answering = [view for view in self.look.views if view.identity is not None]
        last = next((view for view in answering if view.registered == self.row.master), None)
        return self.look.master or last or next(iter(answering), None)

    def _part(self, view: HostView) -> tuple[ScanPart, ObservedFabric, PartJudgement]:
        after = self.row.scan_after or BEGINNING
        part, fabric, judged = self._read(view, after, settings.WATCH_PORTS)
        if judged.isolation and judged.armed < FEW and part.total > judged.armed:
            # The last few ports of a round say nothing of the others.
            _, _, wider = self._read(view, BEGINNING, max(settings.WATCH_PORTS, FEW))
            if not wider.isolation:
                judged = replace(judged, isolation="")
        if judged.wrong or judged.isolation:
            _, _, again = self._read(view, after, settings.WATCH_PORTS)
            judged = judged.confirmed_by(again)
        return part, fabric, judged

    def _read(self, view: HostView, after: str, most: int) -> tuple[ScanPart, ObservedFabric, PartJudgement]:
        for attempt in range(TRIES):
            try:
                part = view.host.scan(after=after, most=most, smps_per_s=settings.WATCH_SMPS_PER_S, timeout_s=TIMEOUT_S)
                fabric = parse_reading(part.data)
                return part, fabric, judge_part(self.table, fabric)
            except TablesMoved:
                if attempt + 1 == TRIES:
                    raise
        raise AssertionError("unreachable")

    def _settle(self, part: ScanPart, judged: PartJudgement) -> bool:
        """Make the rows about tables and isolation say what was read."""
        now = self.clock()
        rows = {row.kind: row for row in Drift.objects.filter(subnet=self.subnet, closed_at=None)}
        before = rows[Drift.Kind.TABLE].facts.get("ports", {}) if Drift.Kind.TABLE in rows else {}
        ports = merged(
            before, judged, after=self.row.scan_after or BEGINNING, last=part.last, has_more=part.has_more,
            at=now.isoformat(),
        )  # fmt: skip
        seen = Seen()
        if judged.armed:
            seen.judged.add(Drift.Kind.ISOLATION_LOST)
        seen.judged.add(Drift.Kind.TABLE)
        if judged.isolation:
            seen.findings.append(self._isolation(judged.isolation))
            seen.judged.discard(Drift.Kind.TABLE)  # it would only say the same, port by port
        else:
            found = finding_of(ports, cause=drift_causes.of_tables(self.look, wanted=self.current.digest))
            seen.findings += [found] if found is not None else []
        return drifting.settle(subnet=self.subnet, seen=seen, now=now).doubtful

    def _isolation(self, sentence: str) -> Finding:
        rogue = next((sm["guid"] for sm in self.row.census if sm["state"] == "MASTER" and not sm["registered"]), "")
        cause = drift_causes.of_isolation(
            self.look, wanted=self.current.digest, rogue=rogue, wanted_number=self.current.number
        )
        return Finding(Drift.Kind.ISOLATION_LOST, drifting.TABLES, (sentence,), cause, {"rogue": rogue})

    def _advance(self, part: ScanPart) -> bool:
        """Move on to the next part; return whether it is read in this look too."""
        row, now = self.row, self.clock()
        if row.round_began_at is None:
            row.round_began_at = now
        row.ports = part.total
        row.scan_after = part.last if part.has_more else ""
        goes_on = part.has_more and bool(row.full_wanted)
        if not part.has_more:
            row.covered_at, row.round_began_at = row.round_began_at, None
            if row.full_wanted:
                row.full_wanted, row.full_at = "", now
        Watch.objects.filter(pk=row.pk, claimed_by=row.claimed_by).update(
            scan_after=row.scan_after, round_began_at=row.round_began_at, covered_at=row.covered_at, ports=row.ports,
            full_wanted=row.full_wanted, full_at=row.full_at, claimed_until=now + LEASE,
        )  # fmt: skip
        return goes_on

    def _fail(self, sentence: str) -> None:
        self.row.failure = f"{self.row.failure} Tables were not read: {sentence}".strip()
        self.row.save(update_fields=["failure"])
        log.info("watch of %s: %s", self.subnet, self.row.failure)
