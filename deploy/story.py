"""The rows of a rollout while a worker runs it. Every transition is one conditional update, its steps, its effects
on the fence, and its audit event, in one transaction; whoever does not hold the lease any more changes nothing.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Self

from django.db import DatabaseError, transaction
from django.db.models import F, Q

from audit.actions import Action
from audit.record import record
from audit.spool import record_or_spool
from audit.values import SYSTEM, Subject
from deploy import lease, table_history, tables
from deploy.errors import ClaimLost
from deploy.lease import READ_TIMEOUT_S as READ_TIMEOUT_S
from deploy.models import OVER, RUNNING, WAITING, Fence, HostOutcome, Observation, Rollout, RolloutStep
from subnet.observed import ObservedFabric

log = logging.getLogger(__name__)

State = Rollout.State
GIVE_BACK_TRIES: Final = 3  # SQLite waits its busy timeout each time


@dataclass(frozen=True, slots=True)
class Evidence:
    """A reading of the fabric that a transition leaves behind, with what stood on the manager hosts."""

    tables: bytes = field(repr=False)
    fabric: ObservedFabric = field(repr=False)
    read_at: datetime
    managers: list[dict[str, Any]]
    census: list[dict[str, Any]]


class Story:
    """One worker's hold on one rollout, and the only writer of its rows as long as it lasts."""

    def __init__(self, rollout: Rollout, *, holder: str, clock: Callable[[], datetime]) -> None:
        self.rollout = rollout
        self.holder = holder
        self.clock = clock
        self._steps: list[RolloutStep] = []

    @classmethod
    def take_up(cls, rollout: Rollout, *, clock: Callable[[], datetime]) -> Self | None:
        """Take the lease of `rollout`; None when another worker has it, it is not due, or nothing is left to do."""
        now = clock()
        free = lease.ended(now)
        held = Rollout.objects.filter(pk=rollout.pk).values_list("claimed_by", flat=True).first()
        if held and lease.is_gone(held):
            free |= Q(claimed_by=held)
        holder = lease.new_holder()
        taken = Rollout.objects.filter(
            free, lease.due(now), pk=rollout.pk, state__in=RUNNING | WAITING, subnet__fence__rollout_id=rollout.pk
        ).update(claimed_by=holder, **_until(now))
        if taken != 1:
            return None
        fresh = Rollout.objects.select_related("revision", "parent", "subnet", "before", "before__tables").get(
            pk=rollout.pk
        )
        return cls(fresh, holder=holder, clock=clock)

    @property
    def state(self) -> State:
        """The state that is stored, as far as this worker knows."""
        return State(self.rollout.state)

    def tell(self, text: str, *, host: str = "") -> None:
        """Add a line to the story; it is written with the next transition."""
        self._steps.append(
            RolloutStep(rollout=self.rollout, at=self.clock(), state=self.rollout.state, host=host, text=text)
        )

    def advance(
        self,
        to: State,
        text: str,
        *,
        outcomes: Mapping[str, Mapping[str, Any]] | None = None,
        evidence: Evidence | None = None,
        **fields: Any,
    ) -> None:
        """Move the rollout into state `to`, or raise ClaimLost and change nothing.

        `outcomes` are columns of HostOutcome by host name, `fields` columns of Rollout. Entering RESTORING takes a
        new fencing generation; the end of a rollout lets go of the fence, and PROVEN makes the revision current.
        """
        now = self.clock()
        was = self.state
        with transaction.atomic():
            changes: dict[str, Any] = {
                "state": to,
                "next_try_at": None,
                "tries": 0,
                **self._lease_for(to, now),
                **fields,
            }
            if to in WAITING:
                changes["next_try_at"] = now + lease.pause(0)
            if to in OVER or to == State.STUCK:
                changes["finished_at"] = now
            if to == State.PROVEN and self.rollout.confirm_within_s is not None:
                changes["confirm_by"] = now + timedelta(seconds=self.rollout.confirm_within_s)
            if evidence is not None:
                changes["after"] = self._keep(evidence, now=now)
            if to == State.RESTORING:
                changes["generation"] = self._next_generation()
            self._change(changes)
            if to in OVER:
                self._let_go(to)
            self._write_steps(to, text, now=now)
            self._write_outcomes(outcomes or {})
            self._record(to, was=was, changes=changes)
        self._become(changes)
        log.info("rollout %s of revision %s: %s", self.rollout.public_id, self.rollout.revision.number, to)

    def put_off(self, cause: str, *, outcomes: Mapping[str, Mapping[str, Any]] | None = None, **fields: Any) -> None:
        """Stay in the same state, give the lease back, and be looked at again a little later.

        This is no transition, so it leaves no event; the cause is told once as long as it does not change.
        """
        now = self.clock()
        tries = self.rollout.tries + 1
        changes = {"cause": cause, "tries": tries, "next_try_at": now + lease.pause(tries), **NO_LEASE, **fields}
        with transaction.atomic():
            self._change(changes)
            if cause != self.rollout.cause or self._steps:
                self._write_steps(self.state, cause, now=now)
            self._write_outcomes(outcomes or {})
        self._become(changes)

    def keep(self, **fields: Any) -> None:
        """Store `fields` without a transition, and prolong the lease. What was noted still waits for the next one."""
        changes = {**self._lease_for(self.state, self.clock(), keep=True), **fields}
        self._change(changes)
        self._become(changes)

    def give_back(self) -> None:
        """Let the next worker go on soon: this one fails, and its lease would hold the rollout for minutes.

        The database may be what fails; then the lease ends by itself. Raises nothing.
        """
        tries = self.rollout.tries + 1
        for _ in range(GIVE_BACK_TRIES):
            try:
                with transaction.atomic():
                    now = self.clock()
                    mine = Rollout.objects.filter(pk=self.rollout.pk, claimed_by=self.holder)
                    mine.update(tries=tries, next_try_at=now + lease.pause(tries), **NO_LEASE)
                return
            except DatabaseError as error:
                log.warning("rollout %s: the lease could not be given back: %s", self.rollout.public_id, error)

    def new_generation(self) -> int:
        """Take a new fencing generation, so that nothing older can be placed any more."""
        with transaction.atomic():
            changes = {"generation": self._next_generation()}
            self._change(changes)
        self._become(changes)
        return changes["generation"]

    def _change(self, changes: Mapping[str, Any]) -> None:
        """Update the row if it still is in our state and ours; raise ClaimLost otherwise."""
        mine = Rollout.objects.filter(pk=self.rollout.pk, state=self.rollout.state, claimed_by=self.holder)
        if mine.update(**changes) != 1:
            raise ClaimLost(f"The rollout of {self.rollout.revision} was moved on by somebody else.")

    def _become(self, changes: Mapping[str, Any]) -> None:
        for name, value in changes.items():
            setattr(self.rollout, name, value)

    def _lease_for(self, state: State, now: datetime, *, keep: bool = False) -> dict[str, Any]:
        return _until(now) if keep or state in RUNNING else dict(NO_LEASE)

    def _next_generation(self) -> int:
        fence = Fence.objects.filter(rollout_id=self.rollout.pk)
        if fence.update(generation=F("generation") + 1) != 1:
            raise ClaimLost(f"The rollout of {self.rollout.revision} does not hold subnet {self.rollout.subnet}.")
        return fence.get().generation

    def _let_go(self, to: State) -> None:
        changes: dict[str, Any] = {"rollout": None}
        if to == State.PROVEN:
            changes["current"] = self.rollout.revision
        held = Fence.objects.filter(rollout_id=self.rollout.pk, current_id=self.rollout.parent_id)
        if held.update(**changes) != 1:
            raise ClaimLost(f"The rollout of {self.rollout.revision} does not hold subnet {self.rollout.subnet}.")

    def _keep(self, evidence: Evidence, *, now: datetime) -> Observation:
        stored = tables.store(evidence.tables, ports=len(evidence.fabric.end_ports))
        tables.remember(stored.digest, evidence.fabric)  # they are what the next rollout compares with
        observation = Observation.objects.create(
            subnet_id=self.rollout.subnet_id,
            state=Observation.State.DONE,
            why="proof",
            requested_at=evidence.read_at,
            read_at=evidence.read_at,
            finished_at=now,
            tables=stored,
            managers=evidence.managers,
            census=evidence.census,
        )
        mark = self.rollout.mark or {}
        processes = {mark["host"]: (mark["pid"], mark["started"])} if mark else {}
        table_history.keep(observation, fabric=evidence.fabric, processes=processes)
        return observation

    def _write_steps(self, state: State, text: str, *, now: datetime) -> None:
        last = RolloutStep(rollout=self.rollout, at=now, state=state, text=text)
        RolloutStep.objects.bulk_create([*self._steps, last])
        self._steps = []

    def _write_outcomes(self, outcomes: Mapping[str, Mapping[str, Any]]) -> None:
        for host, columns in outcomes.items():
            HostOutcome.objects.filter(rollout=self.rollout, host__name=host).update(**columns)

    def _record(self, to: State, *, was: State, changes: Mapping[str, Any]) -> None:
        rollout = self.rollout
        after: dict[str, Any] = {
            "revision": rollout.revision.number,
            "state": to.value,
            "generation": changes.get("generation", rollout.generation),
        }
        if changes.get("cause"):
            after["cause"] = changes["cause"]
        if "read_back" in changes:
            after["read_back"] = changes["read_back"]["counts"] if changes["read_back"] else None
        # A restore to the last proven files is the one thing that goes on without the trail; it is spooled then.
        write = record_or_spool if State.RESTORING in (was, to) else record
        write(
            action=Action.of_rollout(to.value),
            actor=SYSTEM,
            subject=Subject(
                kind="rollout", key=rollout.public_id, label=f"revision {rollout.revision.number} of {rollout.subnet}"
            ),
            before={"state": was.value},
            after=after,
            revision_key=rollout.revision.public_id,
        )


NO_LEASE: Final[Mapping[str, Any]] = {"claimed_by": "", "claimed_until": None, "claimed_until_up": None}


def _until(now: datetime) -> dict[str, Any]:
    """A lease from now on, by both clocks."""
    length = lease.length()
    return {"claimed_until": now + length, "claimed_until_up": lease.uptime_s() + length.total_seconds()}
