"""What other rooms ask about revisions, observations and rollouts. Reads only."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db.models import Case, Q, QuerySet, When
from django.utils import timezone

from deploy import lease, table_history, tables
from deploy.lease import LOST_IN_THE_QUEUE as LOST_IN_THE_QUEUE
from deploy.models import PENDING, RUNNING, WAITING, Fence, Observation, Revision, Rollout
from deploy.qualification_models import RequestState, WorkerRequest
from inventory.models import Subnet
from subnet.guid import GUID
from subnet.index import PortHistory
from subnet.observed import ObservedFabric

QUALIFYING_TAKES_AT_MOST = timedelta(seconds=1800)  # dozens of sweeps on a large fabric
CLOCKS_DIFFER_BY = timedelta(seconds=60)  # what is further in the future than this was told by a clock that ran ahead
READING_TAKES_AT_MOST = timedelta(seconds=300)  # after this long, the worker that was reading is gone


def current_revision(subnet: Subnet) -> Revision | None:
    """The last revision that was proven (or taken over as the first one). One query."""
    fence = Fence.objects.filter(subnet=subnet).select_related("current").first()
    return fence.current if fence is not None else None


def running_rollout(subnet: Subnet) -> Rollout | None:
    """The rollout that holds the subnet: running, waiting to be proven, or stuck until a person lets go. One query."""
    fence = (
        Fence.objects.filter(subnet=subnet)
        .select_related("rollout", "rollout__revision", "rollout__parent", "rollout__subnet")
        .first()
    )
    return fence.rollout if fence is not None else None


def latest_observation(subnet: Subnet) -> Observation | None:
    """The newest look that read the tables to the end. One query.

    One that says it was read in the future was made while the clock ran ahead; it is not the newest for ever.
    """
    done = Observation.objects.filter(subnet=subnet, state=Observation.State.DONE, tables__isnull=False)
    from_the_future = Case(When(read_at__gt=timezone.now() + CLOCKS_DIFFER_BY, then=1), default=0)
    return done.select_related("tables").order_by(from_the_future, "-read_at", "-id").first()


def newest_request(subnet: Subnet) -> Observation | None:
    """The newest look whatever became of it: pages show with it what is going on, or why it failed. One query."""
    return Observation.objects.filter(subnet=subnet).order_by("-id").first()


def pending_observation(subnet: Subnet) -> Observation | None:
    """The look that is asked for or under way, if there is one. One query."""
    return Observation.objects.filter(subnet=subnet, state__in=PENDING).order_by("id").first()


def observed_fabric(observation: Observation) -> ObservedFabric:
    """What an observation read from the fabric. Parses once a process and content."""
    return tables.fabric(observation)


def port_histories(subnet: Subnet, *, until: Observation | None = None) -> Mapping[GUID, PortHistory]:
    """Which tables each port held under the present master's OpenSM process, up to an observation (the newest).

    Four queries or a few more; each port's is told when it is asked for.
    """
    return table_history.histories(subnet, until=until).ports


def history(subnet: Subnet) -> QuerySet[Rollout]:
    """All rollouts of a subnet, the newest first."""
    return (
        Rollout.objects.filter(subnet=subnet)
        .select_related("revision", "parent", "after", "subnet")
        .prefetch_related("outcomes__host")
        .order_by("-id")
    )


def tables_were_true_since(subnet: Subnet) -> datetime | None:
    """From when on a reading shows what the last rollout left behind; None while nothing was ever placed.

    A proof's own reading counts although it began before the rollout ended. When that moment lies in the future the
    clock ran ahead then: the first reading made since counts, by the order of the rows. One query, two then.
    """
    placed = (
        Rollout.objects.filter(subnet=subnet, finished_at__isnull=False)
        .exclude(state__in=(Rollout.State.REFUSED, Rollout.State.CANCELLED))
        .select_related("after")
        .order_by("-pk")  # one at a time: the order of the rows is the order in which they ended
        .first()
    )
    if placed is None:
        return None
    is_proof = placed.state in PROVING and placed.after is not None
    since = placed.after.read_at if is_proof and placed.after is not None else placed.released_at or placed.finished_at
    now = timezone.now()
    if since is None or since <= now + CLOCKS_DIFFER_BY:
        return since
    later = Observation.objects.filter(
        subnet=subnet, pk__gt=placed.after_id or placed.before_id, tables__isnull=False, read_at__lte=now
    )
    return later.order_by("pk").values_list("read_at", flat=True).first() or now


def rollouts_to_resume(*, now: datetime) -> list[int]:
    """Ids of rollouts that a worker should take up: lost in the queue, their worker gone, or due to be looked at."""
    unfinished = Rollout.objects.filter(state__in=RUNNING | WAITING, subnet__fence__rollout_id__isnull=False)
    # A message is on its way for a while; a request from the future was made before the clock was set back.
    lost = Q(requested_at__lte=now - LOST_IN_THE_QUEUE) | Q(requested_at__gt=now)
    idle = Q(claimed_until__isnull=True) & lease.due(now) & (Q(next_try_at__isnull=False) | lost)
    left = Q(claimed_until__isnull=False) & lease.ended(now)
    ids = set(unfinished.filter(idle | left).values_list("pk", flat=True))
    held = unfinished.filter(claimed_until__isnull=False).exclude(pk__in=ids).values_list("pk", "claimed_by")
    return sorted({*ids, *(pk for pk, holder in held if lease.is_gone(holder))})


def observations_to_resume(*, now: datetime) -> list[int]:
    """Ids of observations that a worker should take up: lost in the queue, put off, or their worker gone."""
    lost = Q(state=Observation.State.REQUESTED, requested_at__lte=now - LOST_IN_THE_QUEUE)
    left = Q(state=Observation.State.READING, read_at__lte=now - READING_TAKES_AT_MOST)
    return list(Observation.objects.filter(lost | left).order_by("id").values_list("pk", flat=True))


def requests_to_resume(model: type[WorkerRequest], *, now: datetime) -> list[int]:
    """Ids of requests of this kind that a worker should take up, as for observations. One query."""
    lost = Q(state=RequestState.REQUESTED, requested_at__lte=now - LOST_IN_THE_QUEUE)
    left = Q(state=RequestState.READING, began_at__lte=now - QUALIFYING_TAKES_AT_MOST)
    rows = model._default_manager.filter(lost | left).order_by("id")
    return list(rows.values_list("pk", flat=True))


PROVING = (Rollout.State.PROVEN, Rollout.State.RESTORED)
