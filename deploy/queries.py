"""What other rooms ask about revisions, observations and rollouts. Reads only."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from deploy import table_history, tables
from deploy.lease import is_gone
from deploy.models import PENDING, RUNNING, WAITING, Fence, Observation, Revision, Rollout
from deploy.qualification_models import RequestState, WorkerRequest
from inventory.models import Subnet
from subnet.guid import GUID
from subnet.index import PortHistory
from subnet.observed import ObservedFabric

LOST_IN_THE_QUEUE = timedelta(seconds=10)  # after this long, an unclaimed row is handed to the queue again
QUALIFYING_TAKES_AT_MOST = timedelta(seconds=1800)  # dozens of sweeps on a large fabric
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
    """The newest look that read the tables to the end. One query."""
    return (
        Observation.objects.filter(subnet=subnet, state=Observation.State.DONE, tables__isnull=False)
        .select_related("tables")
        .order_by("-read_at", "-id")
        .first()
    )


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

    A proof's own reading counts although it began before the rollout ended. One query.
    """
    placed = (
        Rollout.objects.filter(subnet=subnet, finished_at__isnull=False)
        .exclude(state__in=(Rollout.State.REFUSED, Rollout.State.CANCELLED))
        .select_related("after")
        .order_by("-finished_at")
        .first()
    )
    if placed is None:
        return None
    if placed.state in PROVING and placed.after is not None:
        return placed.after.read_at
    return placed.released_at or placed.finished_at


def rollouts_to_resume(*, now: datetime) -> list[int]:
    """Ids of rollouts that a worker should take up: lost in the queue, their worker gone, or due to be looked at."""
    unfinished = Rollout.objects.filter(state__in=RUNNING | WAITING, subnet__fence__rollout_id__isnull=False)
    free = Q(claimed_until__isnull=True) & (
        Q(next_try_at__lte=now) | Q(next_try_at__isnull=True, requested_at__lte=now - LOST_IN_THE_QUEUE)
    )
    ids = list(unfinished.filter(free | Q(claimed_until__lte=now)).values_list("pk", flat=True))
    held = unfinished.filter(claimed_until__gt=now).values_list("pk", "claimed_by")
    return sorted({*ids, *(pk for pk, holder in held if is_gone(holder))})


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
