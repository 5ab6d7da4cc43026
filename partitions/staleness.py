"""Staleness: whether a plan that somebody looked at may still go out, and if not, who changed what and when."""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from audit.actions import Action
from audit.models import Event
from deploy.models import Observation, Revision, Rollout
from inventory.models import Server, Subnet
from partitions.errors import StalePlan
from partitions.models import Partition
from partitions.plans import DrawnPlan
from partitions.refusals import held, moment

MOST_TOLD = 3  # sentences of one kind; the page is for a person in a hurry
FARTHEST_BACK = 50  # revisions between what was looked at and what is current

STAGING = (
    Action.MEMBER_STAGE,
    Action.MEMBER_DISCARD,
    Action.PARTITION_EMPTY,
    Action.SERVER_CLEAN,
    Action.HCA_REPLACE,
    Action.HCA_REPLACE_UNDO,
    Action.DEFAULT_STAGE,
    Action.DEFAULT_DISCARD,
)
RULES = (Action.PARTITION_RENAME, Action.MANAGER_HOST_ENROL, Action.MANAGER_HOST_CHANGE)


def require_fresh(observation: Observation, subnet: Subnet, now: datetime) -> None:
    """Raise StalePlan: the index prediction and the *before* tables are only as good as the look they come from."""
    if observation.subnet_id != subnet.pk:
        raise StalePlan(
            f"The look at the fabric that this plan rests on is not of subnet {subnet}. Open the plan again."
        )
    if observation.state != Observation.State.DONE or observation.read_at is None:
        why = f": {observation.failure}" if observation.failure else "."
        raise StalePlan(f"The look at the fabric that this plan rests on has not been finished{why} Look again.")
    if not is_fresh(observation, now):
        raise StalePlan(
            f"The look at the fabric that this plan rests on is from {moment(observation.read_at)}, more than "
            f"{settings.OBSERVATION_FRESH_S} seconds ago. Open the plan again to look once more."
        )


def is_fresh(observation: Observation, now: datetime) -> bool:
    """Whether it was read lately enough for a rollout to stand on it."""
    oldest = now - timedelta(seconds=settings.OBSERVATION_FRESH_S)
    return observation.read_at is not None and observation.read_at >= oldest


def line_from(drawn: DrawnPlan, looked_at: str) -> tuple[Revision, ...]:
    """The revision that the plan with digest `looked_at` was drawn on, and those that became current since, in order.

    Empty when the plan stands on no revision that leads to the current one.
    """
    line: list[Revision] = []
    revision: Revision | None = drawn.parent
    while revision is not None and len(line) <= FARTHEST_BACK:
        line.append(revision)
        if drawn.stands_on(looked_at, revision):
            return tuple(reversed(line))
        revision = revision.parent
    return ()


def what_changed(drawn: DrawnPlan, looked_at: str, since: datetime | None) -> str:
    """Say since when and by whom the plan is another one than the person looked at; `since` is when that was."""
    differs = drawn.differs_in(looked_at)
    told: list[str] = []
    if "parent" in differs:
        told += _revisions(drawn, looked_at)
    if "changes" in differs:
        told.append(_changes(drawn))
        told += _events(drawn.subnet, STAGING, since)
    if "observation" in differs:
        told.append("it rests on another look at the fabric")
    if not told or differs & {"table", "ports"}:
        told += _events(drawn.subnet, RULES, since)
    if not told:
        told.append("the partitions or the manager hosts have changed")
    return f"Since you looked at this plan, {'; '.join(told)}. Nothing was rolled out. Look at the new plan."


def _revisions(drawn: DrawnPlan, looked_at: str) -> Iterable[str]:
    newer = line_from(drawn, looked_at)[1:]
    if not newer:
        yield f"{drawn.parent} by {drawn.parent.author_name} has become current"
        return
    affected = {str(guid) for guid in drawn.plan.affected}
    affected |= {str(change.port.guid) for change in drawn.changes}
    proven = dict(
        Rollout.objects.filter(revision__in=newer, state=Rollout.State.PROVEN).values_list("revision", "finished_at")
    )
    if len(newer) > MOST_TOLD:
        yield f"{len(newer) - MOST_TOLD} other revisions have become current"
    for revision in newer[-MOST_TOLD:]:
        at = proven.get(revision.pk) or revision.created_at
        told = f"{revision} by {revision.author_name} has become current at {moment(at)}"
        before = set() if revision.parent is None else held(revision.parent, affected)
        touched = sorted({guid for _, guid, _ in before ^ held(revision, affected)})
        if touched:
            told += f", and it changes port {touched[0]} of this plan"
        yield told


def _changes(drawn: DrawnPlan) -> str:
    selected = [*drawn.changes, *(waiting.change for waiting in drawn.waiting)]
    if not selected:
        return "none of the staged changes is left"
    newest = max(selected, key=lambda change: change.at)
    servers = {change.port.hca.server_id for change in selected if change.port.hca is not None}
    return (
        f"the staged changes are others: now {len(selected)} of {len(servers)} servers, the newest "
        f"by {newest.by} at {moment(newest.at)}"
    )


def _events(subnet: Subnet, actions: Collection[Action], since: datetime | None) -> Iterable[str]:
    """Who did what about this subnet since then, the newest first."""
    if since is None:
        return
    words = {action.value: action.words for action in actions}
    about = (
        Q(subject_kind="server", subject_key__in=Server.objects.filter(subnet=subnet).values("public_id"))
        | Q(subject_kind="partition", subject_key__in=Partition.objects.filter(subnet=subnet).values("public_id"))
        | Q(subject_kind="subnet", subject_key=subnet.public_id)
        | Q(subject_kind="manager-host", subject_key__in=subnet.manager_hosts.values("public_id"))
    )
    events = Event.objects.filter(about, action__in=words, at__gt=since).order_by("-number")
    for event in events[:MOST_TOLD]:
        # in parts, as pages translate the deed alone
        yield f"{event.actor_name} · {words[event.action]} · {event.subject_label} · {moment(event.at)}"
