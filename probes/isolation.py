"""Which checks of isolation there are to make: after rollouts that move ports between tenants, and on schedule.

Every check is a row, asked for in both directions. The rooms' workers make them: queue `observe` asks the SA, for it
alone reaches manager hosts; queue `probe` makes attempts between servers whose tenants consented.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from random import Random
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from audit import nudge
from audit.actions import Action
from audit.models import Event
from deploy.models import RUNNING, Fence, Rollout
from inventory.models import Port, Subnet
from partitions.mirror import batches
from probes.members import may_be_probed
from probes.models import IsolationCheck, ProbeHost
from probes.strangers import Pair, Tenancy, pairs_after, sampled
from probes.verdict import Isolation
from subnet.guid import GUID

FOLLOWED: Final = frozenset({Action.ROLLOUT_PROVEN, Action.ROLLOUT_DEGRADED, Action.ROLLOUT_RESTORED})
MOST_PAIRS: Final = 64  # of one rollout; a rollout of a whole hall is sampled
ATTEMPTS_AT_ONCE: Final = 2
TOO_LATE: Final = timedelta(hours=1)
State, Plane, Cause = IsolationCheck.State, IsolationCheck.Plane, IsolationCheck.Cause


def follow(event: Event) -> None:
    """Ask for checks around the ports that the rollout moved between tenants; the follower's function.

    At least once and possibly late: a rollout that was followed before is left alone.
    """
    rollout = Rollout.objects.select_related("revision", "parent", "subnet").filter(public_id=event.subject_key).first()
    if rollout is None or IsolationCheck.objects.filter(rollout=rollout).exists():
        return
    old, new = Tenancy.of(rollout.parent.partition_table()), Tenancy.of(rollout.revision.partition_table())
    if rollout.state == Rollout.State.RESTORED:
        old, new = new, old
    pairs = pairs_after(old, new, draw=_draw(), most=MOST_PAIRS)
    ask(rollout.subnet, pairs, tenancy=new, cause=Cause.ROLLOUT, rollout=rollout, now=timezone.now())


def ask(
    subnet: Subnet,
    pairs: Iterable[Pair],
    *,
    tenancy: Tenancy,
    cause: str,
    now: datetime,
    rollout: Rollout | None = None,
    asked_by: str = "",
) -> list[IsolationCheck]:
    """Queue checks of `pairs`, both directions: of the control plane always, of the data plane where it may be made.

    Ports that no server has, and pairs inside one server, are left out.
    """
    pairs = list(pairs)
    ports = ports_of(subnet, {guid for pair in pairs for guid in pair})
    probed = _probed_guids(tenancy, ports)
    rows = []
    for one, other in pairs:
        if one not in ports or other not in ports or _server(ports[one]) == _server(ports[other]):
            continue
        planes = [Plane.CONTROL]
        if all(guid in probed and tenancy.peer(guid, among=probed) for guid in (one, other)):
            planes.append(Plane.DATA)
        for plane in planes:
            for sender, target in ((one, other), (other, one)):
                rows.append(
                    IsolationCheck(
                        subnet=subnet, plane=plane, cause=cause, rollout=rollout, asked_by=asked_by, asked_at=now,
                        sender_id=_server(ports[sender]), target_id=_server(ports[target]),
                        sender_guid=str(sender), target_guid=str(target),
                        sender_tenant=_label(tenancy, sender), target_tenant=_label(tenancy, target),
                    )
                )  # fmt: skip
    IsolationCheck.objects.bulk_create(rows, batch_size=200)
    transaction.on_commit(lambda: nudge.task("probes.tasks.check_isolation", {}), robust=True)
    return rows


def tick(*, now: datetime) -> None:
    """Ask for what the schedule says, let go of what is lost or too late, and hand to the workers what waits."""
    lost = IsolationCheck.objects.filter(state=State.RUNNING, claimed_until__lt=now)
    lost.update(state=State.QUEUED, claimed_until=None)
    waiting = IsolationCheck.objects.filter(state=State.QUEUED)
    waiting.filter(asked_at__lt=now - TOO_LATE).update(
        state=State.DROPPED, finished_at=now, sentence="It could not be made within an hour: workers or hosts busy."
    )
    _ask_on_schedule(now)
    held = set(Fence.objects.filter(rollout__state__in=RUNNING).values_list("subnet", flat=True))
    free = waiting.exclude(subnet__in=held)  # while tables change an answer says nothing
    for subnet in free.filter(plane=Plane.CONTROL).order_by().values_list("subnet", flat=True).distinct():
        nudge.task("probes.tasks.ask_for_paths", {"subnet_id": subnet})
    going = IsolationCheck.objects.filter(state=State.RUNNING, plane=Plane.DATA).count()
    for check in free.filter(plane=Plane.DATA).order_by("asked_at", "pk")[: max(0, ATTEMPTS_AT_ONCE - going)]:
        nudge.task("probes.tasks.attempt", {"check_id": check.pk})


def forget(*, now: datetime, runs_kept_days: int, days_kept_days: int) -> int:
    """Remove what is old: what the schedule found isolated after the one time, all after the other; return how many.

    A check that opened an incident stays with it.
    """
    old = IsolationCheck.objects.filter(incidents=None).exclude(state__in=(State.QUEUED, State.RUNNING))
    dull = Q(cause=Cause.SCHEDULE, verdict__in=(Isolation.ISOLATED, ""))
    dull &= Q(asked_at__lt=now - timedelta(days=runs_kept_days))
    ids = list(
        old.filter(dull | Q(asked_at__lt=now - timedelta(days=days_kept_days))).values_list("pk", flat=True)[:5000]
    )
    for start in range(0, len(ids), 500):
        IsolationCheck.objects.filter(pk__in=ids[start : start + 500]).delete()
    return len(ids)


def tenancy_now(subnet: Subnet) -> tuple[Tenancy, int] | None:
    """The tenancy of the current revision and the fence's generation; None before the first revision."""
    fence = Fence.objects.select_related("current").filter(subnet=subnet).first()
    return None if fence is None else (Tenancy.of(fence.current.partition_table()), fence.generation)


def ports_of(subnet: Subnet, guids: Iterable[GUID]) -> dict[GUID, Port]:
    """The registered ports of servers with these GUIDs, with their HCA and server."""
    found: dict[GUID, Port] = {}
    for batch in batches(sorted(guids)):
        for port in Port.objects.filter(subnet=subnet, guid__in=batch, hca__isnull=False).select_related("hca__server"):
            found[GUID(str(port.guid))] = port
    return found


def sample(subnet: Subnet, *, most: int) -> tuple[list[Pair], Tenancy] | None:
    """Some pairs of different tenants as the current revision has them; None before the first revision."""
    known = tenancy_now(subnet)
    return None if known is None else (sampled(known[0], draw=_draw(), most=most), known[0])


def _ask_on_schedule(now: datetime) -> None:
    """A few sampled pairs of each subnet, once an interval."""
    since = now - timedelta(seconds=settings.PROBE_ISOLATION_INTERVAL_S)
    recently = IsolationCheck.objects.filter(cause=Cause.SCHEDULE, asked_at__gt=since).values("subnet")
    for subnet in (
        Subnet.objects.filter(fence__isnull=False, manager_hosts__isnull=False).exclude(pk__in=recently).distinct()
    ):
        with transaction.atomic():
            Subnet.objects.select_for_update(no_key=True).get(pk=subnet.pk)
            if IsolationCheck.objects.filter(cause=Cause.SCHEDULE, asked_at__gt=since, subnet=subnet).exists():
                continue
            drawn = sample(subnet, most=settings.PROBE_ISOLATION_PAIRS)
            if drawn is not None and drawn[0]:
                ask(subnet, drawn[0], tenancy=drawn[1], cause=Cause.SCHEDULE, now=now)


def _probed_guids(tenancy: Tenancy, ports: dict[GUID, Port]) -> set[GUID]:
    """The ports, and possible peers of them, whose servers may be probed now."""
    wanted = {
        member for guid in ports for pkey in tenancy.keys.get(guid, {}) for member in tenancy.members.get(pkey, ())
    }
    found: set[GUID] = set()
    if not wanted or not ProbeHost.objects.usable().exists():
        return found
    for batch in batches(sorted(wanted)):
        rows = Port.objects.filter(guid__in=batch, hca__server__probe_host__withdrawn_at=None)
        rows = rows.exclude(hca__server__probe_host=None).select_related("hca__server__probe_host")
        for port in rows:
            if port.hca is not None and not may_be_probed([port.hca.server.probe_host]):
                found.add(GUID(str(port.guid)))
    return found


def _server(port: Port) -> int:
    assert port.hca is not None  # noqa: S101  ports_of asks for it
    return port.hca.server_id


def _label(tenancy: Tenancy, guid: GUID) -> str:
    return ", ".join(sorted(tenancy.of_port(guid)))[:60]


def _draw() -> Random:
    return Random()  # noqa: S311  no secret: which pairs are looked at
