"""Turns: a tenant's moves among its own partitions roll out by themselves, one batch after the other.

Nothing here decides what is safe to place: that are the plan and the rollout, as for an operator. What is decided is
when, and that nothing but the tenant's own staged changes goes along. A turn is a row that a tick looks at; it never
blocks another tenant's, and nothing is lost when a worker dies (ADR 45).
"""

import logging
from datetime import UTC, datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import SYSTEM, Subject
from deploy import operations as deploy
from deploy import queries
from deploy.errors import DeployError, FabricAlarm, NotWritable, SubnetBusy, SubnetFrozen
from deploy.leave import require_leave
from deploy.models import OVER, Observation, Rollout
from inventory.models import Subnet
from partitions import mirror
from partitions import operations as partitions
from partitions.errors import PartitionsError, StalePlan
from partitions.models import Partition, Replacement, StagedChange
from partitions.operations import DrawnPlan
from partitions.selection import Selection
from partitions.staleness import is_fresh
from people.models import Tenant, TenantRole, User
from portal.models import Turn
from portal.words import Why
from subnet.errors import SubnetError, UnsafePlan
from subnet.observed import PortReading
from subnet.pkey import FULL_BIT

log = logging.getLogger(__name__)

GATHER: Final = timedelta(seconds=10)  # moves that follow each other go out together
GATHER_MOST: Final = timedelta(seconds=60)
SOON, LATER, RARELY = timedelta(seconds=2), timedelta(seconds=5), timedelta(seconds=30)
CLAIM: Final = timedelta(seconds=60)  # after so long the worker that took a turn up is gone
HOUR: Final = timedelta(hours=1)
EVER: Final = datetime.min.replace(tzinfo=UTC)


class _Wait(Exception):
    """The turn waits: for what, until when it is looked at again, and when that is over if it is known."""

    def __init__(self, why: Why, again: datetime, *, until: datetime | None = None, told: str = "") -> None:
        super().__init__(why)
        self.why, self.again, self.until, self.told = why, again, until, told


class _End(Exception):
    """The turn ends without a rollout."""

    def __init__(self, state: Turn.State, why: Why, told: str = "") -> None:
        super().__init__(why)
        self.state, self.why, self.told = state, why, told


# --- asked for, in the transaction of the staging ------------------------------------------------------------------
def hold(*, tenant: Tenant, subnet: Subnet) -> None:
    """Hold the open turn, if there is one, until the transaction ends: turns come before servers, and those before the
    head of the trail, in every transaction that takes more than one of them.
    """
    held = Turn.objects.select_for_update(of=("self",)).filter(tenant=tenant, subnet=subnet, next_try_at__isnull=False)
    list(held.values_list("pk"))


def ask(*, tenant: Tenant, subnet: Subnet, person: User, now: datetime | None = None) -> Turn | None:
    """See that what `person` has just staged goes out by itself, if that is the tenant's policy; give the open turn.

    Belongs at the end of the transaction that stages. Several moves within GATHER go out as one batch.
    """
    at = now or timezone.now()
    if Tenant.objects.values_list("moves", flat=True).get(pk=tenant.pk) != Tenant.Moves.ALONE:
        return None
    turn = Turn.objects.filter(tenant=tenant, subnet=subnet, next_try_at__isnull=False).first()
    if turn is not None and turn.state == Turn.State.WAITING:
        again = min(at + GATHER, max(turn.asked_at + GATHER_MOST, at))
        Turn.objects.filter(pk=turn.pk).update(next_try_at=again)
        return turn
    if turn is not None:
        return turn  # it rolls out what was staged before; `follow_up` asks again for the rest
    turn = Turn.objects.create(
        tenant=tenant, subnet=subnet, asked_by=person, asked_at=at, next_try_at=at + GATHER, why=Why.GATHERS
    )
    _record(turn, Action.TURN_ASK, after={"by": str(person)})
    return turn


def staged_by(tenant: Tenant, subnet: Subnet) -> list[StagedChange]:
    """What the tenant's people have staged for themselves."""
    found = Selection.own_of(tenant).of(subnet=subnet, user=User()).whole()
    return list(found.order_by("pk"))


# --- taken further by the tick ------------------------------------------------------------------------------------
def tick(*, now: datetime) -> None:
    """Take every turn that is due one step further, the oldest first."""
    for pk in Turn.objects.filter(next_try_at__lte=now).order_by("asked_at", "pk").values_list("pk", flat=True):
        try:
            advance(turn_id=pk, now=now)
        except Exception:  # one tenant's turn must not stop the others'
            log.exception("turn %s could not be taken further", pk)


def advance(*, turn_id: int, now: datetime) -> None:
    """Take one turn further: look at what became of its rollout, or start it if everything is as it must be."""
    turn = Turn.objects.select_related("tenant", "subnet", "asked_by", "rollout__revision").get(pk=turn_id)
    if turn.next_try_at is None or turn.next_try_at > now:
        return
    claim = now + CLAIM
    if _as_taken(turn).update(next_try_at=claim) != 1:
        return  # another worker has it
    turn.next_try_at = claim
    if turn.state == Turn.State.ROLLING_OUT:
        _look_after(turn, now)
        return
    try:
        drawn = _fit(turn, now)
        _start(turn, drawn, now)
    except _Wait as wait:
        _put_off(turn, wait)
    except _End as end:
        _end(turn, end.state, end.why, now, told=end.told)


def _fit(turn: Turn, now: datetime) -> DrawnPlan:
    """The plan of the turn, if it may go out now. Raises _Wait or _End."""
    mirror.catch_up(turn.subnet)
    changes = staged_by(turn.tenant, turn.subnet)
    if not changes:
        raise _End(Turn.State.GONE, Why.NOTHING)
    if turn.tenant.moves != Tenant.Moves.ALONE:
        raise _End(Turn.State.OPERATOR, Why.POLICY)
    _require_people(turn, changes)
    _require_turn_of_the_hour(turn, now)
    _require_apart(turn.subnet, now)
    _require_leave(turn.subnet, now)
    _require_alone(turn, changes, now)
    observation = _look(turn.subnet, now)
    drawn = partitions.draw_up_plan(
        subnet=turn.subnet, selection=Selection.own_of(turn.tenant), user=turn.asked_by, observation=observation
    )
    _require_safe(turn, drawn, changes)
    return drawn


def _require_people(turn: Turn, changes: list[StagedChange]) -> None:
    """Whoever staged must still be allowed to."""
    acting = (TenantRole.Role.MEMBER, TenantRole.Role.ADMIN)
    allowed = set(
        TenantRole.objects.in_force()
        .filter(tenant=turn.tenant, role__in=acting, user__is_active=True)
        .values_list("user", flat=True)
    )
    if not {change.by_id for change in changes} | {turn.asked_by_id} <= allowed:
        raise _End(Turn.State.OPERATOR, Why.PEOPLE)


def _require_turn_of_the_hour(turn: Turn, now: datetime) -> None:
    """The tenant's rollouts of the last hour are fewer than its quota."""
    most = turn.tenant.most_rollouts_per_hour
    if most == 0:
        raise _End(Turn.State.OPERATOR, Why.POLICY)
    began = Turn.objects.filter(tenant=turn.tenant, started_at__gt=now - HOUR).order_by("-started_at")
    recent = [at for at in began.values_list("started_at", flat=True)[:most] if at is not None]
    if len(recent) == most:
        until = recent[-1] + HOUR
        raise _Wait(Why.QUOTA, min(until, now + RARELY), until=until)


def rests_until(subnet: Subnet) -> datetime | None:
    """Until when no tenant's turn begins: after each revision the fabric rests for APART_S and twice its last sweep."""
    last = (
        Rollout.objects.filter(subnet=subnet, finished_at__isnull=False)
        .exclude(state__in=(Rollout.State.REFUSED, Rollout.State.CANCELLED))
        .order_by("-pk")
        .first()
    )
    if last is None or last.finished_at is None:
        return None
    sweep_s = float(((last.read_back or {}).get("seconds") or {}).get("barrier") or 0)
    return last.finished_at + timedelta(seconds=max(settings.TENANT_ROLLOUTS_APART_S, 2 * sweep_s))


def _require_apart(subnet: Subnet, now: datetime) -> None:
    if queries.running_rollout(subnet) is not None:
        raise _Wait(Why.BUSY, now + LATER)
    until = rests_until(subnet)
    if until is not None and now < until:
        raise _Wait(Why.RESTS, until, until=until)


def _require_leave(subnet: Subnet, now: datetime) -> None:
    try:
        require_leave(Subnet.objects.get(pk=subnet.pk))
    except SubnetFrozen as error:
        raise _Wait(Why.FROZEN, now + RARELY, told=str(error)) from error
    except NotWritable as error:
        raise _Wait(Why.READ_ONLY, now + RARELY, told=str(error)) from error
    except FabricAlarm as error:
        raise _Wait(Why.ALARM, now + RARELY, told=str(error)) from error


def _require_alone(turn: Turn, changes: list[StagedChange], now: datetime) -> None:
    """No port that it touches, nor another of the same server, has anybody else's pending change."""
    servers = {change.port.hca.server_id for change in changes if change.port.hca is not None}
    touched = Q(port__in={change.port_id for change in changes}) | Q(port__hca__server__in=servers)
    ours = {change.pk for change in changes}
    others = [row for row in StagedChange.objects.filter(touched).whole() if row.pk not in ours]
    if others:
        raise _Wait(Why.PENDING, now + RARELY, told=f"{others[0].by} has staged {others[0].port} as well.")
    if Replacement.objects.pending().filter(touched).exists():
        raise _Wait(Why.PENDING, now + RARELY, told="An HCA of one of its servers was replaced; roll that out first.")


def _look(subnet: Subnet, now: datetime) -> Observation:
    """A look at the fabric that a rollout may stand on; one is asked for when there is none."""
    latest, since = queries.latest_observation(subnet), queries.tables_were_true_since(subnet) or EVER
    if latest is not None and latest.read_at is not None and is_fresh(latest, now) and since <= latest.read_at:
        return latest
    newest = queries.newest_request(subnet)
    if newest is not None and newest.state == Observation.State.FAILED and newest.requested_at > now - RARELY:
        raise _Wait(Why.LOOKS, newest.requested_at + RARELY, told=newest.failure)
    deploy.request_observation(subnet=subnet, why="plan")
    raise _Wait(Why.LOOKS, now + SOON)


def _require_safe(turn: Turn, drawn: DrawnPlan, changes: list[StagedChange]) -> None:
    """The plan changes the tenant's own ports and nothing else, and asks nobody anything. Raises _End."""
    if drawn.is_idle:
        raise _End(Turn.State.GONE, Why.NOTHING)
    assert drawn.observation is not None  # noqa: S101  it was drawn on a look
    seen = queries.observed_fabric(drawn.observation).ports
    silent = sorted(str(guid) for guid in drawn.plan.affected if not _is_up(seen.get(guid)))
    if silent:  # nobody could prove it, and the rollout would hold the fabric for everybody
        raise _End(Turn.State.OPERATOR, Why.SILENT, told=f"No link, or no answer, at {', '.join(silent[:3])}.")
    told = [violation.sentence for violation in drawn.refusals]
    told += list(drawn.plan.unsafe)
    told += [effect.sentence for effect in drawn.plan.effects]
    own_ports = {str(change.port.guid) for change in changes}
    if not {str(guid) for guid in drawn.plan.affected} <= own_ports or {row.pk for row in drawn.changes} != {
        row.pk for row in changes
    }:
        told.append("The plan does not touch exactly the ports that the tenant staged.")
    own_keys = set(Partition.objects.filter(subnet=turn.subnet, tenant=turn.tenant).values_list("pkey", flat=True))
    for port in drawn.plan.ports:
        for hazard in port.prediction.hazards if port.prediction is not None else ():
            # An index that passes from one partition of the tenant to another keeps everything in the tenant's hands.
            is_reuse = hazard.kind.startswith("freed_index_reused")
            if not (is_reuse and {key & ~FULL_BIT for key in hazard.keys} <= own_keys):
                told.append(hazard.sentence)
    if told:
        raise _End(Turn.State.OPERATOR, Why.UNSAFE, told=" ".join(told))


def _is_up(reading: PortReading | None) -> bool:
    return reading is not None and reading.is_read and reading.state in ("ARMED", "ACTIVE")


def _start(turn: Turn, drawn: DrawnPlan, now: datetime) -> None:
    """Start the rollout of exactly this plan, and note it on the turn in the same transaction."""
    assert drawn.observation is not None  # noqa: S101  it was drawn on a look
    try:
        with transaction.atomic():
            hold(tenant=turn.tenant, subnet=turn.subnet)
            _require_alone(turn, staged_by(turn.tenant, turn.subnet), now)  # somebody may have staged since the plan
            rollout = partitions.roll_out(
                subnet=turn.subnet,
                selection=drawn.selection,
                actor=turn.asked_by,
                plan_digest=drawn.digest,
                observation=drawn.observation,
            )
            fields = {"state": Turn.State.ROLLING_OUT, "rollout": rollout, "started_at": now, "next_try_at": now + SOON}
            if _as_taken(turn).update(**fields, why="", until=None, told="") != 1:
                raise StalePlan("Somebody else has taken this turn further.")
            turn.rollout = rollout
            _record(turn, Action.TURN_BEGIN, after={"rollout": rollout.public_id, "ports": len(drawn.plan.affected)})
    except UnsafePlan as error:
        raise _End(Turn.State.OPERATOR, Why.UNSAFE, told=str(error)) from error
    except SubnetBusy as error:
        raise _Wait(Why.BUSY, now + LATER, told=str(error)) from error
    except (PartitionsError, DeployError, SubnetError) as error:
        raise _Wait(Why.AGAIN, now + LATER, told=str(error)) from error


def _look_after(turn: Turn, now: datetime) -> None:
    assert turn.rollout is not None  # noqa: S101  the state says so
    state = Rollout.State(turn.rollout.state)
    if state not in OVER and not (state == Rollout.State.STUCK and turn.rollout.released_at is not None):
        why = Why.PERSON if state == Rollout.State.STUCK else Why.NONE
        _put_off(turn, _Wait(why, now + SOON))
        return
    is_proven = state == Rollout.State.PROVEN
    mirror.catch_up(turn.subnet)  # so that what has come true is staged no more
    _end(
        turn, Turn.State.PROVEN if is_proven else Turn.State.FAILED, Why.NONE if is_proven else Why.FAILED, now,
        told=turn.rollout.cause,
    )  # fmt: skip


def _as_taken(turn: Turn) -> "QuerySet[Turn]":
    """The row, as long as it is as this worker has read or claimed it: a later worker, or a move that was staged
    meanwhile, has made it another one, and what this worker found of it is old.
    """
    return Turn.objects.filter(pk=turn.pk, state=turn.state, next_try_at=turn.next_try_at)


def _put_off(turn: Turn, wait: _Wait) -> None:
    _as_taken(turn).update(next_try_at=wait.again, why=wait.why, until=wait.until, told=wait.told)


@transaction.atomic
def _end(turn: Turn, state: Turn.State, why: Why, now: datetime, *, told: str = "") -> None:
    fields = {"state": state, "why": why, "until": None, "told": told, "ended_at": now, "next_try_at": None}
    if not _as_taken(turn).select_for_update().exists():
        return
    Turn.objects.filter(pk=turn.pk).update(**fields)
    # What was staged while it rolled out is the next batch.
    rest = staged_by(turn.tenant, turn.subnet) if state == Turn.State.PROVEN else []
    if rest:
        ask(tenant=turn.tenant, subnet=turn.subnet, person=rest[-1].by, now=now)
    _record(turn, Action.TURN_END, after={"state": state.value, "why": why.value})


def _record(turn: Turn, action: Action, *, after: dict[str, object]) -> None:
    record(
        action=action,
        actor=SYSTEM,
        subject=Subject(kind="turn", key=turn.public_id, label=f"the moves of {turn.tenant}"),
        after=after,
        tenant_key=turn.tenant.public_id,
        rollout_key=turn.rollout.public_id if turn.rollout is not None else "",
    )
