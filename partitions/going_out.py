"""Roll out a selection: draw the plan once more, make sure it is the one that was looked at, and hand it to deploy."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from deploy import operations as deploy
from deploy.models import Observation, Rollout
from inventory.models import Server, Subnet
from partitions import mirror
from partitions.doer import Doer, as_actor, as_person
from partitions.errors import MoveRefused, StalePlan
from partitions.models import StagedChange, StagedChangeQuerySet
from partitions.plans import DrawnPlan, draw_up_plan
from partitions.refusals import moment, way
from partitions.selection import Selection
from people.models import User


@transaction.atomic
def roll_out(
    *, subnet: Subnet, selection: Selection, actor: Doer, plan_digest: str, observation: Observation, reason: str = ""
) -> Rollout:
    """Propose the selection as the next revision and start its rollout, if the plan is still the one looked at.

    `plan_digest` and `observation` are those of the plan page. Raises StalePlan, MoveRefused, UnsafePlan (a big plan
    without a reason), and what `deploy.operations` raises; then nothing has happened.
    """
    person = as_person(actor)
    _require_fresh(observation, subnet, timezone.now())
    mirror.catch_up(subnet)
    _hold(selection.of(subnet=subnet, user=person))
    drawn = draw_up_plan(subnet=subnet, selection=selection, user=person, observation=observation)
    if drawn.digest != plan_digest:
        raise StalePlan(_what_changed(drawn, plan_digest))
    _refuse_halves(drawn, person)
    for violation in drawn.refusals:
        raise MoveRefused(violation.sentence, rule=violation.rule)
    drawn.plan.raise_if_unsafe(reason)
    who = as_actor(actor)
    revision = deploy.propose(subnet=subnet, table=drawn.table, parent=drawn.parent, actor=who, reason=reason)
    return deploy.start(revision=revision, observation=observation, actor=who, reason=reason)


def _require_fresh(observation: Observation, subnet: Subnet, now: datetime) -> None:
    """The plan's index prediction and the *before* tables are only as good as the look they come from."""
    if observation.subnet_id != subnet.pk:
        raise StalePlan(
            f"The look at the fabric that this plan rests on is not of subnet {subnet}. Open the plan again."
        )
    if observation.state != Observation.State.DONE or observation.read_at is None:
        why = f": {observation.failure}" if observation.failure else "."
        raise StalePlan(f"The look at the fabric that this plan rests on has not been finished{why} Look again.")
    oldest = now - timedelta(seconds=settings.OBSERVATION_FRESH_S)
    if observation.read_at < oldest:
        raise StalePlan(
            f"The look at the fabric that this plan rests on is from {moment(observation.read_at)}, more than "
            f"{settings.OBSERVATION_FRESH_S} seconds ago. Open the plan again to look once more."
        )


def _hold(staged: StagedChangeQuerySet) -> None:
    """Hold the selection's servers and rows: nobody stages or discards on them until the rollout stands."""
    servers = Server.objects.filter(pk__in=staged.values("port__hca__server"))
    list(servers.select_for_update().order_by("pk").values_list("pk", flat=True))
    list(staged.select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True))


def _what_changed(drawn: DrawnPlan, looked_at: str) -> str:
    """Say since when and by whom the plan is another one than the person looked at."""
    differs = drawn.differs_in(looked_at)
    told: list[str] = []
    if "parent" in differs:
        told.append(f"{drawn.parent} by {drawn.parent.author_name} has become current")
    if "changes" in differs:
        if drawn.changes:
            newest = max(drawn.changes, key=lambda change: change.at)
            told.append(
                f"the staged changes are others: now {len(drawn.changes)} of {len(drawn.servers)} servers, the newest "
                f"by {newest.by} at {moment(newest.at)}"
            )
        else:
            told.append("none of the staged changes is left")
    if "observation" in differs:
        told.append("it rests on another look at the fabric")
    if not told:
        told.append("the partitions or the manager hosts have changed")
    return f"Since you looked at this plan, {'; '.join(told)}. Nothing was rolled out. Look at the new plan."


def _refuse_halves(drawn: DrawnPlan, person: User) -> None:
    """A port goes out with all that is staged on it or not at all: half a move would leave it nowhere."""
    taken = drawn.selection.of(subnet=drawn.subnet, user=person)
    left = StagedChange.objects.filter(port__in=taken.values("port")).exclude(pk__in=taken.values("pk"))
    change = left.whole().order_by("-at").first()
    if change is not None:
        server = change.port.hca.server if change.port.hca is not None else change.port
        raise MoveRefused(
            f"{change.by} has also staged {server} {way([change])} at {moment(change.at)}, and that is not in this "
            f"selection. Roll out all changes, or wait until {change.by} has rolled out or discarded it.",
            rule="not_selected",
        )
