"""What the board must know beside the rows: files, tables and probes of a subnet, and whether anything has changed.

One query for all of the subnet's own facts, together with what the head of every page wants; one for the probes; and
only while a port is wrong or owed, one to know whose it is.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Count, F, IntegerField, Max, OuterRef, Q, Subquery, Value
from django.http import HttpRequest

from audit.models import ChainHead
from console.four_lamps import Fabric, Glow, HostFile, Lit, Tried
from console.frame import asked_subnets, remember_subnet
from deploy.last_proven import PROVING, newest, proves
from deploy.models import Drift, Fence, Rollout, Watch
from inventory.models import Port, Subnet
from partitions.models import MirroredRevision, StagingAction
from probes.models import IsolationCheck, ProbePair, ProbeRun
from probes.terms import Kind
from probes.verdict import Isolation

CHECKS_LAST: Final = timedelta(days=7)
FRESH_S: Final = 30  # what changes without an event, such as a link, is shown after so long at the latest
_PROOF: Final = ("state", "finished_at", "revision_id", "parent_id", "read_back")


def board_subnet(request: HttpRequest) -> Subnet | None:
    """The subnet of this request with all that is asked of it here. One query, and the frame asks none then.

    Neither table nor bytes of the current revision come with it: on a large subnet they are megabytes.
    """
    proof = Rollout.objects.filter(subnet=OuterRef("pk"), state__in=PROVING).order_by("-pk")
    wrong = Drift.objects.filter(subnet=OuterRef("pk"), kind=Drift.Kind.TABLE, closed_at=None, opened_at__isnull=False)
    lost = Drift.objects.filter(subnet=OuterRef("pk"), kind=Drift.Kind.ISOLATION_LOST, closed_at=None)
    run = ProbeRun.objects.filter(finished_at__isnull=False).order_by("-finished_at")
    check = IsolationCheck.objects.filter(subnet=OuterRef("pk"), state=IsolationCheck.State.DONE).order_by("-asked_at")
    mine = StagingAction.objects.filter(subnet=OuterRef("pk"), by=request.user.pk).order_by("-pk")
    asked = asked_subnets().select_related("watch", "mirrored")
    subnet = (
        asked.defer("fence__current__table", "fence__current__data")
        .annotate(
            trail=Subquery(ChainHead.objects.values("number")[:1]),
            wrong=Subquery(wrong.values("facts")[:1]),
            isolation_seen=Subquery(lost.values("first_seen_at")[:1]),
            isolation_told=Subquery(lost.values("opened_at")[:1]),
            newest_run=Subquery(run.values("pk")[:1]),
            newest_check=Subquery(check.values("finished_at")[:1]),
            undoable=Subquery(mine.values("title")[:1]),
            **{f"proof_{name}": Subquery(proof.values(name)[:1]) for name in _PROOF},
        )
        .order_by("pk")
        .first()
    )
    remember_subnet(request, subnet)
    return subnet


def is_settling(subnet: Subnet) -> bool:
    """Whether the rows still show an older revision than the current one; of a subnet from here. No query."""
    fence = _fence(subnet)
    try:
        return fence is not None and subnet.mirrored.revision_id != fence.current_id
    except MirroredRevision.DoesNotExist:
        return True


def fingerprint(subnet: Subnet, *, who: object, address: str, now: datetime) -> str:
    """A text that is another one whenever the board would look otherwise. No query.

    Nearly everything on the board changes with an event of the trail. What does not (probes, files and tables as the
    watch reads them) is named here, and a link that goes down shows with the next turn of the clock.
    """
    fence, watch = _fence(subnet), _watch(subnet)
    rollout = fence.rollout if fence is not None else None
    parts: tuple[object, ...] = (
        subnet.pk, subnet.trail, who, address, int(now.timestamp()) // FRESH_S,  # type: ignore[attr-defined]
        None if fence is None else fence.current_id, None if rollout is None else (rollout.pk, rollout.state),
        is_settling(subnet), None if watch is None else (watch.managers, watch.covered_at),
        subnet.isolation_seen, subnet.isolation_told,  # type: ignore[attr-defined]
        subnet.wrong, subnet.newest_run, subnet.newest_check, subnet.proof_finished_at, subnet.undoable,  # type: ignore[attr-defined]
    )  # fmt: skip
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def fabric(subnet: Subnet, *, now: datetime) -> Fabric:
    """Everything that the lamps say of `subnet`, which comes from `board_subnet`. One query, or two."""
    read: Any = subnet
    wrong = set((read.wrong or {}).get("ports", {}))
    owed = set((read.proof_read_back or {}).get("owed", ())) - wrong
    servers = _servers_of(subnet, wrong | owed)
    files, files_at = _files(subnet)
    return Fabric(
        files=files,
        files_at=files_at,
        proven_at=_proven_at(subnet),
        isolation=_isolation(subnet),
        wrong=frozenset(servers[guid] for guid in wrong if guid in servers),
        owed=frozenset(servers[guid] for guid in owed if guid in servers),
        wrong_ports=frozenset(wrong),
        owed_ports=frozenset(owed),
        tests=_tests(subnet, since=max(read.proof_finished_at or now - CHECKS_LAST, now - CHECKS_LAST)),
    )


def _files(subnet: Subnet) -> tuple[tuple[HostFile, ...], datetime | None]:
    """What the watch read last, or the newest proof saw, whichever is newer."""
    read: Any = subnet
    fence, watch = _fence(subnet), _watch(subnet)
    looked_at = watch.checked_at if watch is not None and watch.managers else None
    proof_at = read.proof_finished_at if _proves_current(subnet) else None
    if looked_at is None or (proof_at is not None and proof_at > looked_at):
        if proof_at is None:
            return (), None
        # A proof needs the file on every host; a degraded one is owed by one of them.
        is_whole = read.proof_state != Rollout.State.DEGRADED
        return (HostFile("the first", True), HostFile("one host", True if is_whole else None)), proof_at
    assert watch is not None and fence is not None  # noqa: S101, PT018  looked at by the watch of a current revision
    number, digest = fence.current.number, fence.current.digest
    rows = [
        HostFile(row["host"], None if row.get("error") or not row.get("digest") else _is(row, number, digest))
        for row in watch.managers
    ]
    return tuple(rows), looked_at


def _is(row: dict[str, Any], number: int, digest: str) -> bool:
    return row["digest"] == digest or row.get("revision") == number


def _proven_at(subnet: Subnet) -> datetime | None:
    """When the whole fabric was last known to hold the current revision, but for what `wrong` and `isolation` say."""
    read: Any = subnet
    watch, fence = _watch(subnet), _fence(subnet)
    if fence is None:
        return None
    return newest(
        proof_at=read.proof_finished_at,
        is_of_current=_proves_current(subnet),
        became_current_at=fence.current.created_at,
        covered_at=watch.covered_at if watch is not None else None,
    )


def _proves_current(subnet: Subnet) -> bool:
    read: Any = subnet
    fence = _fence(subnet)
    if fence is None or read.proof_state is None:
        return False
    proven = proves(read.proof_state, revision_id=read.proof_revision_id, parent_id=read.proof_parent_id)
    return bool(proven == fence.current_id)


def _isolation(subnet: Subnet) -> Lit | None:
    """What an open “isolation lost” says of every port: the watch judges no single table while it is."""
    read: Any = subnet
    if read.isolation_seen is None:
        return None
    if read.isolation_told is None:
        return Lit(Glow.NONE, "isolation is in doubt and read again")
    return Lit(Glow.BAD, "isolation lost")


def _servers_of(subnet: Subnet, guids: Collection[str]) -> dict[str, int]:
    """Port GUID → row id of its server. No query when nothing is asked."""
    if not guids:
        return {}
    rows = Port.objects.filter(subnet=subnet, hca__isnull=False).values_list("guid", "hca__server_id")
    return {str(guid): server for guid, server in rows if str(guid) in guids}


def _tests(subnet: Subnet, *, since: datetime) -> dict[tuple[int, int | None], Tried]:
    """How probes went, by server and partition; checks of isolation by server. One query."""
    pairs = (
        ProbePair.objects.filter(scope__subnet=subnet, scope__partition__isnull=False, kind=Kind.RDMA)
        .annotate(server=F("sender__server_id"), partition=F("scope__partition_id"), how=Value("PAIR"))
        .values_list("server", "partition", "how")
        .annotate(
            bad=Count("pk", filter=Q(verdict="BAD")),
            warn=Count("pk", filter=Q(verdict="WARN", newest_at__gte=since)),
            good=Count("pk", filter=Q(verdict__in=("GOOD", "NONE"), outcome="OK", newest_at__gte=since)),
        )
    )
    still = Q(incidents__isnull=False, incidents__acknowledged_at=None, incidents__recovered_at=None)
    checks = (
        IsolationCheck.objects.filter(still | Q(asked_at__gte=since), subnet=subnet, state=IsolationCheck.State.DONE)
        .annotate(server=F("sender_id"), partition=Value(None, IntegerField()), how=F("plane"))
        .values_list("server", "partition", "how")
        .annotate(
            bad=Count("pk", filter=still),
            warn=Value(0, IntegerField()) * Max(Value(1)),
            good=Count("pk", filter=Q(verdict=Isolation.ISOLATED)),
        )
    )
    found: dict[tuple[int, int | None], Tried] = defaultdict(Tried)
    for server, partition, how, bad, warn, good in pairs.union(checks, all=True):
        so_far = found[server, partition]
        is_control = how == IsolationCheck.Plane.CONTROL
        found[server, partition] = Tried(
            bad=so_far.bad + bad,
            warn=so_far.warn + warn,
            good=so_far.good + (0 if is_control else good),
            control=so_far.control + (good if is_control else 0),
        )
    return dict(found)


def _fence(subnet: Subnet) -> Fence | None:
    try:
        fence: Fence = subnet.fence
    except Fence.DoesNotExist:
        return None
    return fence


def _watch(subnet: Subnet) -> Watch | None:
    try:
        watch: Watch = subnet.watch
    except Watch.DoesNotExist:
        return None
    return watch


def lamps_of(request: HttpRequest, subnet_id: int, *, now: datetime) -> Fabric:
    """What the lamps say on a page beside the board: two queries, or three. The frame asks for no subnet then.

    Nothing is known of a subnet that the pages are not about.
    """
    subnet = board_subnet(request)
    return fabric(subnet, now=now) if subnet is not None and subnet.pk == subnet_id else Fabric()
