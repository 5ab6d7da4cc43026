"""Roll out a selection: draw the plan once more, make sure it is the one that was looked at, and hand it to deploy."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.utils import timezone

from audit.values import Subject
from deploy import operations as deploy
from deploy.errors import NothingToDo
from deploy.models import Observation, Rollout
from deploy.queries import latest_observation, tables_were_true_since
from inventory.models import Server, Subnet
from partitions import mirror, refusals
from partitions.desired import wanted_table
from partitions.doer import Doer, as_actor, as_person
from partitions.errors import MoveRefused, StalePlan
from partitions.models import StagedChange, StagedChangeQuerySet
from partitions.plans import DrawnPlan, draw_up_plan
from partitions.selection import Selection
from partitions.staleness import is_fresh, line_from, require_fresh, what_changed
from partitions.subjects import place_subject
from people.models import User
from subnet.partitions_conf import table_digest
from subnet.rebase import Conflict, rebase

MOST_TOLD: Final = 200  # servers by name in the event of a revision; its table has them all


@transaction.atomic
def roll_out(
    *,
    subnet: Subnet,
    selection: Selection,
    actor: Doer,
    plan_digest: str,
    observation: Observation,
    reason: str = "",
    looked_at: datetime | None = None,
    confirm_within: timedelta | None = None,
    without: Collection[str] = (),
) -> Rollout:
    """Propose the selection as the next revision and start its rollout, if the plan is still the one looked at.

    `plan_digest` and `observation` are those of the plan page, drawn at `looked_at`. A plan whose ports no newer
    revision touches is rebased on it. Raises StalePlan, MoveRefused, UnsafePlan (a big plan without a reason),
    NothingToDo, and what `deploy.operations` raises; then nothing has happened.
    """
    person = as_person(actor)
    now = timezone.now()
    require_fresh(observation, subnet, now)
    mirror.catch_up(subnet)
    _hold(selection.of(subnet=subnet, user=person))
    drawn = draw_up_plan(subnet=subnet, selection=selection, user=person, observation=observation)
    if drawn.digest != plan_digest:
        rebased = _rebase(drawn, person, plan_digest, now)
        if rebased is None or rebased.observation is None:
            raise StalePlan(what_changed(drawn, plan_digest, looked_at))
        drawn, observation = rebased, rebased.observation
    for violation in drawn.refusals:
        raise MoveRefused(violation.sentence, rule=violation.rule)
    _refuse_idle(drawn)
    drawn.plan.raise_if_unsafe(reason)
    who = as_actor(actor)
    revision = deploy.propose(
        subnet=subnet, table=drawn.table, parent=drawn.parent, actor=who, reason=reason, staged=makings(drawn)
    )
    return deploy.start(
        revision=revision,
        observation=observation,
        actor=who,
        reason=reason,
        confirm_within=confirm_within,
        without=without,
    )


def makings(drawn: DrawnPlan) -> list[dict[str, object]]:
    """Who wanted what of the revision, for the trail: the rows go once they have come true.

    One a server or port: {"subject": "server:<public id>", "name", "way", "ports", "by", "at", "reason"}. After
    MOST_TOLD the rest is only counted.
    """
    by_place: dict[Subject, list[StagedChange]] = defaultdict(list)
    for change in drawn.changes:
        by_place[place_subject(change.port)].append(change)
    places = sorted(by_place.items(), key=lambda item: item[0].label)
    said: list[dict[str, object]] = [
        {
            "subject": f"{subject.kind}:{subject.key}",
            "name": subject.label,
            "way": refusals.way(rows),
            "ports": len({row.port_id for row in rows}),
            "by": str(max(rows, key=lambda row: row.at).by),
            "at": max(row.at for row in rows),
            "reason": max(rows, key=lambda row: row.at).reason,
        }
        for subject, rows in places[:MOST_TOLD]
    ]
    if drawn.default is not None:
        default = drawn.default
        told = {"by": str(default.by), "at": default.at, "reason": default.reason}
        said.append({"name": "Default", "way": "another rule"} | told)
    return said + ([{"more": len(places) - MOST_TOLD}] if len(places) > MOST_TOLD else [])


def _hold(staged: StagedChangeQuerySet) -> None:
    """Hold the selection's servers and rows: nobody stages or discards on them until the rollout stands."""
    servers = Server.objects.filter(pk__in=staged.values("port__hca__server"))
    list(servers.select_for_update().order_by("pk").values_list("pk", flat=True))
    list(staged.select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True))


def _rebase(drawn: DrawnPlan, person: User, looked_at: str, now: datetime) -> DrawnPlan | None:
    """The same plan on the current revision, if it is the same: same changes, same ports, same tables of theirs.

    Then only other ports have changed since, and what the person looked at is what goes out. It stands on the
    latest look, because the one looked at is older than the newer revision's proof. Raises StalePlan when both touch
    the same.
    """
    line = line_from(drawn, looked_at)
    latest, since = latest_observation(drawn.subnet), tables_were_true_since(drawn.subnet)
    if len(line) < 2 or drawn.differs_in(looked_at) & {"changes"}:
        return None
    base = line[0].partition_table()
    wanted = wanted_table(
        subnet=drawn.subnet, current=base, changes=drawn.changes, default=drawn.default, replaced=drawn.replaced
    )
    rebased = rebase(base, drawn.current, wanted)
    if isinstance(rebased, Conflict):
        raise StalePlan(f"{what_changed(drawn, looked_at, None)} {rebased.sentence}")
    if latest is None or latest.read_at is None or not is_fresh(latest, now):
        return None
    if since is not None and latest.read_at < since:
        return None
    again = draw_up_plan(subnet=drawn.subnet, selection=drawn.selection, user=person, observation=latest)
    is_same = not again.differs_in(looked_at) & {"changes", "ports"} and table_digest(rebased) == table_digest(
        again.table
    )
    return again if is_same else None


def _refuse_idle(drawn: DrawnPlan) -> None:
    """Names alone are nothing to roll out, and what waits for a server to be clean goes out when it is."""
    if not drawn.is_idle:
        return
    if drawn.waiting:
        first = drawn.waiting[0]
        more = len({waiting.server.pk for waiting in drawn.waiting}) - 1
        owner = first.change.partition.tenant or "the provider"
        raise MoveRefused(
            f"{first.server}{f' and {more} more' if more else ''} must be marked clean before "
            f"{first.change.partition.name} of {owner} may take it: it was in a partition of "
            "another tenant.",
            rule="waits_for_clean",
        )
    raise NothingToDo(f"{str(drawn.parent).capitalize()} already says exactly this: there is nothing to roll out.")
