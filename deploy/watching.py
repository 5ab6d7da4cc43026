"""The watch between rollouts: files and SMs at every look, tables part by part, and all of them when something moved.

It only reads, leaves the hosts to a rollout and to a look that a person waits for, and drops what it saw when a rollout
began meanwhile. What it finds are rows (`deploy/drifting.py`); whoever looks twice at the same moment changes nothing.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from deploy import drift_findings, drifting, evidence, files, putting_back, queries, reproof
from deploy.drift_findings import Seen
from deploy.drift_models import Drift, Watch
from deploy.lease import is_gone, new_holder
from deploy.look import HostView, Look, ManagerHosts
from deploy.models import RUNNING, Fence, Rollout
from deploy.scanning import Scan
from inventory.models import ManagerHost, Subnet
from remote.errors import RemoteError
from remote.manager_host import HostVerbs
from remote.watch_verbs import OpenSMOptions, SMCensus
from subnet.guid import GUID
from subnet.posture import ManagerPosture, checks

log = logging.getLogger(__name__)

LEASE: Final = timedelta(seconds=300)  # longer than the longest stretch between two words of a worker
SOON: Final = timedelta(seconds=10)  # the next look when one more will decide something
YIELDED: Final = timedelta(seconds=5)  # when a rollout runs
LOST: Final = timedelta(seconds=30)  # what the queue did not do by then, it is handed again
CENSUS_TIMEOUT_S: Final = 60


def watch(*, subnet: Subnet, hosts: Sequence[HostVerbs], clock: Callable[[], datetime] = timezone.now) -> None:
    """Look at `subnet` once if it is due, and settle the rows. `hosts` are all its manager hosts.

    Does nothing when it is not due or another worker looks; while a rollout runs it is put off.
    """
    row = take_up(subnet, now=clock())
    if row is None:
        return
    began = clock()
    next_at = clock() + YIELDED
    try:
        if not is_rolling_out(subnet):
            with ThreadPoolExecutor(max_workers=4 * len(hosts) + 1, thread_name_prefix="watch") as threads:
                next_at = _Round(subnet, row, hosts, clock=clock, threads=threads).run(began)
    finally:
        let_go(row, next_at=next_at)


def due(*, now: datetime) -> list[int]:
    """Ids of the subnets with manager hosts whose look is due, each handed out once in LOST; makes their rows."""
    for subnet in Subnet.objects.filter(watch=None, manager_hosts__isnull=False).distinct():
        Watch.objects.get_or_create(subnet=subnet, defaults={"next_at": now})
    waiting = Watch.objects.filter(next_at__lte=now).filter(Q(asked_at=None) | Q(asked_at__lte=now - LOST))
    return [
        row.subnet_id
        for row in waiting
        if Watch.objects.filter(pk=row.pk, asked_at=row.asked_at).update(asked_at=now) == 1
    ]


def take_up(subnet: Subnet, *, now: datetime) -> Watch | None:
    """Take the lease of the subnet's watch; None when it is not due or another worker has it."""
    held = Watch.objects.filter(subnet=subnet).values_list("claimed_by", flat=True).first() or ""
    free = Q(claimed_until=None) | Q(claimed_until__lte=now)
    if held and is_gone(held):
        free |= Q(claimed_by=held)
    holder = new_holder()
    taken = Watch.objects.filter(free, subnet=subnet, next_at__lte=now)
    if taken.update(claimed_by=holder, claimed_until=now + LEASE) != 1:
        return None
    return Watch.objects.get(subnet=subnet)


def let_go(row: Watch, *, next_at: datetime) -> None:
    """Give the lease back, if it is still ours, and name the next look."""
    Watch.objects.filter(pk=row.pk, claimed_by=row.claimed_by).update(
        claimed_by="", claimed_until=None, asked_at=None, next_at=next_at
    )


def is_rolling_out(subnet: Subnet) -> bool:
    """Whether a worker is on a rollout of the subnet, or should be. One query."""
    return Rollout.objects.filter(fence_holding(subnet), state__in=RUNNING).exists()


def fence_holding(subnet: Subnet) -> Q:
    """The rollout that holds the subnet."""
    return Q(pk__in=Fence.objects.filter(subnet=subnet, rollout__isnull=False).values("rollout"))


class _Round:
    """One look of the watch."""

    def __init__(
        self,
        subnet: Subnet,
        row: Watch,
        hosts: Sequence[HostVerbs],
        *,
        clock: Callable[[], datetime],
        threads: ThreadPoolExecutor,
    ) -> None:
        self.subnet, self.row, self.clock = subnet, row, clock
        self.fence = Fence.objects.filter(subnet=subnet).select_related("current", "rollout__revision").first()
        ports = ManagerHost.objects.filter(subnet=subnet).values_list("name", "port_guid")
        self.registered = {name: GUID(guid) for name, guid in ports}
        known = [host for host in hosts if host.name in self.registered]
        self.managers = ManagerHosts(known, registered=self.registered, threads=threads)

    def run(self, began: datetime) -> datetime:
        """Look, settle, scan; return when to look next."""
        regular = began + timedelta(seconds=settings.WATCH_INTERVAL_S)
        if not self.registered:
            return regular
        look = self.managers.look()
        options = self._options(look)
        census, census_failure = self._census(look)
        if self._is_overtaken():
            return self.clock() + YIELDED
        seen = self._seen(look, census, self._posture(look, options))
        settled = drifting.settle(subnet=self.subnet, seen=seen, now=self.clock())
        self._remember(look, census, failure=f"{drift_findings.failures(look)} {census_failure}".strip())
        reproof.notice_takeover(self.subnet, self.row, look, now=self.clock())
        for drift in (*settled.opened, *settled.changed):
            if drift.kind == Drift.Kind.FILE:
                want_full(self.row, f"the partition file on {drift.key} changed")
        if any(drift.kind == Drift.Kind.ROGUE_SM for drift in settled.closed):
            want_full(self.row, "a foreign subnet manager is gone")
        doubtful = settled.doubtful
        if self.fence is not None and not self._holds_unproven():
            scan = Scan(self.subnet, self.row, self.fence.current, look=look, clock=self.clock)
            doubtful |= scan.run(lambda: self._is_overtaken() or queries.pending_observation(self.subnet) is not None)
            if not self._is_overtaken():
                reproof.conclude(self.subnet, self.row, look, census, self._standing(), now=self.clock())
                putting_back.restore_alone(self.subnet, look=look, now=self.clock())
        return min(regular, self.clock() + SOON) if doubtful else max(regular, self.clock() + YIELDED)

    def _options(self, look: Look) -> dict[str, OpenSMOptions]:
        running = {view.name: view.host.options for view in look.views if view.identity and view.identity.process}
        answers = self.managers.ask(running)
        return {name: answer for name, answer in answers.items() if isinstance(answer, OpenSMOptions)}

    def _census(self, look: Look) -> tuple[SMCensus | None, str]:
        """Who runs an SM, as seen from the master's host, or from any other that answers."""
        order = [*look.masters, *(view for view in look.views if view not in look.masters)]
        failure = ""
        for view in order:
            if view.identity is None:
                continue
            try:
                return view.host.census(smps_per_s=settings.WATCH_SMPS_PER_S, timeout_s=CENSUS_TIMEOUT_S), ""
            except RemoteError as error:
                failure = str(error)
        return None, failure

    def _posture(self, look: Look, options: Mapping[str, OpenSMOptions]) -> tuple[ManagerPosture, ...]:
        return tuple(_posture_of(view, options.get(view.name)) for view in look.views)

    def _standing(self) -> files.Standing:
        assert self.fence is not None  # noqa: S101  asked only with a current revision
        return files.Standing.of(self.fence.current)

    def _seen(self, look: Look, census: SMCensus | None, posture: tuple[ManagerPosture, ...]) -> Seen:
        seen = Seen()
        drift_findings.of_hosts(seen, look)
        drift_findings.of_sms(seen, look, census, registered=self.registered, before=self.row.census)
        found = checks(posture)
        drift_findings.of_posture(seen, found)
        self.row.posture = [asdict(check) for check in found]
        if self.fence is not None:
            standing = self._standing()
            known = files.numbers_by_digest(self.subnet.pk)
            accepted = {standing.digest: standing.number}
            if self.fence.rollout is not None:
                accepted[self.fence.rollout.revision.digest] = self.fence.rollout.revision.number
            files.keep_read((view.file for view in look.views if view.file is not None), known=known)
            drift_findings.of_files(seen, look, standing=standing, accepted=accepted, known=known)
        return seen

    def _remember(self, look: Look, census: SMCensus | None, *, failure: str) -> None:
        """Keep what was seen on the watch's row, and notice a sweep that was not ours."""
        row, now = self.row, self.clock()
        known = files.numbers_by_digest(self.subnet.pk)
        versions = {view.name: view.identity.opensm_version for view in look.views if view.identity is not None}
        row.managers = [
            {
                **kept,
                "version": versions.get(kept["host"], ""),
                "priority": view.sm.priority if view.sm is not None else None,
                "missing": drift_findings.file_is_missing(view),
            }
            for kept, view in zip(evidence.manager_rows(look.views, known=known), look.views, strict=True)
        ]
        if census is not None:
            row.census = census_rows(census, registered=self.registered.values())
            if look.master is not None and census.list_mtime_ns:
                swept = row.list_mtime_ns and census.list_mtime_ns != row.list_mtime_ns
                if swept and not self._rolled_out_since(row.checked_at):
                    want_full(self.row, "the fabric was swept by somebody else than a rollout")
                row.list_mtime_ns = census.list_mtime_ns
        row.checked_at, row.failure = now, failure
        row.save(
            update_fields=["managers", "census", "posture", "list_mtime_ns", "checked_at", "failure", "full_wanted",
                           "scan_after", "round_began_at"]
        )  # fmt: skip

    def _rolled_out_since(self, at: datetime | None) -> bool:
        ended = Rollout.objects.filter(subnet=self.subnet)
        return at is None or ended.filter(Q(finished_at__gte=at) | Q(requested_at__gte=at)).exists()

    def _holds_unproven(self) -> bool:
        """Whether a rollout waits for its proof or for a person: its files stand, and it reads the tables itself."""
        return self.fence is not None and self.fence.rollout is not None

    def _is_overtaken(self) -> bool:
        """Whether a rollout began, ended or turned back since this look began."""
        now = Fence.objects.filter(subnet=self.subnet).first()
        if self.fence is None or now is None:
            return (self.fence is None) != (now is None)
        was = (self.fence.generation, self.fence.rollout_id, self.fence.current_id)
        return (now.generation, now.rollout_id, now.current_id) != was


def want_full(row: Watch, why: str) -> None:
    """Owe a reading of all tables, from the first port on."""
    if not row.full_wanted:
        row.full_wanted, row.scan_after, row.round_began_at = why, "", None
        row.save(update_fields=["full_wanted", "scan_after", "round_began_at"])


def census_rows(census: SMCensus, *, registered: Any) -> list[dict[str, Any]]:
    """One row an SM, as `Observation.census` has them."""
    return [
        {
            "guid": sm.guid,
            "lid": sm.lid,
            "state": sm.state or "silent",
            "priority": sm.priority,
            "registered": sm.guid in registered,
            "leaf": sm.leaf or None,
            "leaf_port": sm.leaf_port or None,
        }
        for sm in census.sms
    ]


def _posture_of(view: HostView, options: OpenSMOptions | None) -> ManagerPosture:
    return ManagerPosture(
        name=view.name,
        version=view.identity.opensm_version if view.identity is not None else "",
        options=None if options is None else {**options.in_file, **options.on_command_line},
        keys=None if options is None else options.keys,
        is_stale=options is not None and options.is_stale,
        priority=view.sm.priority if view.sm is not None else None,
    )
