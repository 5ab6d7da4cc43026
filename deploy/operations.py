"""Revisions, observations and rollouts: the only door through which another room changes anything here.

Each function writes its audit event in the same transaction. Nothing here reaches a machine: it leaves rows, and
wakes the worker on commit.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import Actor, Subject
from deploy import deadlines, files, going_without, queries, tables
from deploy.decisions import accept, cancel, check_again, confirm, release_stuck
from deploy.errors import (
    AdoptionUnfinished,
    NothingToDo,
    NotWritable,
    PolicyRefused,
    StaleObservation,
    StaleRevision,
    SubnetBusy,
)
from deploy.leave import require_leave
from deploy.models import Fence, HostOutcome, Observation, Revision, Rollout, RolloutStep
from deploy.trail import OBSERVE, RUN, subject_of, wake
from inventory.models import ManagerHost, Subnet
from subnet import policy_reading
from subnet.guid import GUID
from subnet.partitions_conf import NEWEST, NO_PARENT, Header, Layout, digest, render, table_digest
from subnet.policy import Limits, check
from subnet.table import PartitionTable

log = logging.getLogger(__name__)

__all__ = [
    "accept",
    "cancel",
    "check_again",
    "confirm",
    "propose",
    "record_adopted_revision",
    "record_first_revision",
    "release_stuck",
    "request_observation",
    "start",
    "subject_of",
]

type Makings = Sequence[Mapping[str, object]]
# What a hand-written file may leave as it is: placing it in our words changes no port, and the next plan mends it.
TOLERATED_IN_ADOPTION: Final = frozenset({"sm_port_missing"})


@transaction.atomic
def record_first_revision(*, subnet: Subnet, table: PartitionTable, actor: Actor) -> Revision:
    """Make revision 1 of `subnet`, current at once: it is what the manager hosts hold when FabricUI takes over.

    The bytes are `render(table, Header(subnet.name, 1, 64 zeros))`; each host's file must equal them before anything
    else can be rolled out. Raises StaleRevision when there is a revision already, PolicyRefused.
    """
    if Fence.objects.filter(subnet=subnet).exists():
        raise StaleRevision(f"Subnet {subnet} has its first revision already. Propose the next one instead.")
    _refuse_by_policy(subnet, table, standing=table)
    # It says what stands on the hosts already, and the lab writes the first layout.
    revision = _new_revision(subnet=subnet, table=table, parent=None, actor=actor, reason="", layout=Layout.BY_PKEY)
    Fence.objects.create(subnet=subnet, current=revision)
    _record_revision(revision, actor=actor)
    return revision


@transaction.atomic
def record_adopted_revision(
    *, subnet: Subnet, table: PartitionTable, found: Mapping[str, bytes], actor: Actor, reason: str = ""
) -> Revision:
    """Make `table` current because the hand-written files `found` (manager host → bytes) already say it.

    The revision's own bytes are placed by the next rollout, which may change nothing else; until that is proven the
    found bytes are what stands on the hosts, and what a restore puts back. The caller has shown that both give every
    port the same table. May be repeated as long as nothing was proven, when somebody edited the files meanwhile.
    Raises StaleRevision when a revision of our own is current, SubnetBusy, PolicyRefused, AdoptionRefused.
    """
    Subnet.objects.select_for_update(no_key=True).get(pk=subnet.pk)
    fence = Fence.objects.select_for_update().filter(subnet=subnet).select_related("current").first()
    if fence is not None and not files.Standing.of(fence.current).is_adopted:
        raise StaleRevision(f"{fence.current} of subnet {subnet} is current already: there is nothing to adopt.")
    if fence is not None and fence.rollout is not None:
        raise SubnetBusy(_who_holds(subnet, fence.rollout))
    _refuse_by_policy(subnet, table, standing=table, tolerated=TOLERATED_IN_ADOPTION)
    parent = None if fence is None else fence.current
    revision = _new_revision(subnet=subnet, table=table, parent=parent, actor=actor, reason=reason)
    adopted = files.keep_adopted(revision, found)
    if fence is None:
        Fence.objects.create(subnet=subnet, current=revision)
    elif Fence.objects.filter(pk=fence.pk, current=parent, rollout=None).update(current=revision) != 1:
        raise SubnetBusy(f"Somebody else worked on subnet {subnet} at the same moment. Adopt again.")
    found_digests = {file.host.name: file.digest for file in adopted}
    _record_revision(revision, actor=actor, action=Action.REVISION_ADOPT, found=found_digests)
    return revision


def request_observation(*, subnet: Subnet, why: str, actor: Actor | None = None) -> Observation:
    """Have the managers and the fabric looked at soon; while such a look is pending, return that one.

    `why` is one word: plan, scan, check. With an `actor` the request is a person's and stands in the trail.
    """
    with transaction.atomic():
        # Of two requests one waits here and finds the other's.
        Subnet.objects.select_for_update(no_key=True).get(pk=subnet.pk)
        pending = queries.pending_observation(subnet)
        if pending is not None:
            return pending
        observation = Observation.objects.create(subnet=subnet, why=why, requested_at=timezone.now())
        if actor is not None:
            subject = Subject(kind="subnet", key=subnet.public_id, label=subnet.name)
            record(action=Action.OBSERVATION_REQUEST, actor=actor, subject=subject, after={"why": why})
        wake(OBSERVE, observation_id=observation.pk)
    return observation


def propose(
    *, subnet: Subnet, table: PartitionTable, parent: Revision, actor: Actor, reason: str = "", staged: Makings = ()
) -> Revision:
    """Store `table` as the next revision after `parent`, rendered and checked; nothing is placed yet.

    The same table proposed again on the same parent is the same revision, so that a double click makes one. `staged`
    tells the trail who wanted what. An adopted table must first be placed as it is: only then is the same table
    something to roll out, because the bytes on the hosts differ. Raises NotWritable in mode OBSERVE, NothingToDo,
    PolicyRefused, AdoptionUnfinished, and StaleRevision unless `parent` is current.
    """
    subnet.refresh_from_db()
    if subnet.mode == Subnet.Mode.OBSERVE:
        raise NotWritable(
            f"Subnet {subnet} is in mode observe: FabricUI only looks. Set the mode to propose or write first."
        )
    is_adopted = files.Standing.of(parent).is_adopted
    _refuse_by_policy(
        subnet,
        table,
        standing=parent.partition_table(),
        tolerated=TOLERATED_IN_ADOPTION if is_adopted else frozenset(),
    )
    try:
        with transaction.atomic():
            fence = Fence.objects.select_for_update().get(subnet=subnet)
            if fence.current_id != parent.pk:
                raise StaleRevision(
                    f"The plan stands on {parent}, but by now {fence.current} is current. Draw up the plan again."
                )
            if is_adopted and table_digest(table) != parent.table_digest:
                raise AdoptionUnfinished(
                    f"Subnet {subnet} still runs on the hand-written file that was adopted as {parent}. Roll that out "
                    "as it is first; it changes no port. Then plan this change again."
                )
            if not is_adopted and _changes_nothing(table, parent):
                raise NothingToDo(f"{parent} already says exactly this: there is nothing to roll out.")
            twin = _proposed_before(subnet=subnet, table=table, parent=parent)
            if twin is not None:
                return twin
            revision = _new_revision(subnet=subnet, table=table, parent=parent, actor=actor, reason=reason)
            made_of: dict[str, Any] = {"staged": staged} if staged else {}
            _record_revision(revision, actor=actor, **made_of)
    except IntegrityError as error:
        raise StaleRevision("Somebody else proposed a revision at the same moment. Draw up the plan again.") from error
    return revision


def start(
    *,
    revision: Revision,
    observation: Observation,
    actor: Actor,
    reason: str = "",
    confirm_within: timedelta | None = None,
    without: Collection[str] = (),
    undoes: Rollout | None = None,
) -> Rollout:
    """Queue the rollout of `revision`; the tables of `observation` are what the read-back compares with.

    Whoever holds the fence of the subnet runs, so there is one rollout at a time; starting the revision that already
    runs returns its rollout. With `confirm_within` the parent's table goes out again unless a person confirms within
    that time after the proof (`deploy/confirmation.py`); `undoes` is the rollout that this one takes back so.
    `without` names standbys that it may go without when they cannot be staged: `reason` says why, and it never takes
    a key from a port that gains none of the same owner. Raises NotWritable, SubnetFrozen, SubnetBusy, StaleRevision,
    StaleObservation, NotReversible, DeadlineOutOfRange, ReasonNeeded, StandbyNeeded.
    """
    now = timezone.now()
    may_lack = going_without.terms(subnet=revision.subnet, hosts=without, actor=actor, reason=reason)
    if may_lack is not None:
        going_without.require_harmless(revision, without)
    if confirm_within is not None:
        deadlines.require_reversible(revision, confirm_within)
    with transaction.atomic():
        subnet = Subnet.objects.get(pk=revision.subnet_id)
        fence = Fence.objects.select_for_update().get(subnet=subnet)
        if fence.rollout is not None and fence.rollout.revision_id == revision.pk:
            return fence.rollout
        _refuse_start(subnet, fence, revision, undoes=undoes)
        _refuse_observation(subnet, observation, now=now)
        rollout = Rollout.objects.create(
            subnet=subnet,
            revision=revision,
            parent=fence.current,
            before=observation,
            generation=fence.generation + 1,
            started_by_key=actor.key,
            started_by_name=actor.name,
            reason=reason,
            requested_at=now,
            confirm_within_s=None if confirm_within is None else int(confirm_within.total_seconds()),
            undoes=undoes,
            without=may_lack,
        )
        held = Fence.objects.filter(
            pk=fence.pk, rollout=None, current_id=revision.parent_id, generation=fence.generation
        ).update(rollout=rollout, generation=fence.generation + 1)
        if held != 1:
            raise SubnetBusy(f"Another rollout of subnet {subnet} began at the same moment. Wait until it has ended.")
        hosts = ManagerHost.objects.filter(subnet=subnet)
        HostOutcome.objects.bulk_create([HostOutcome(rollout=rollout, host=host) for host in hosts])
        RolloutStep.objects.create(rollout=rollout, at=now, state=rollout.state, text=f"Queued by {actor.name}.")
        record(
            action=Action.ROLLOUT_START,
            actor=actor,
            subject=subject_of(rollout),
            after={
                "revision": revision.number,
                "state": rollout.state,
                "digest": revision.digest,
                **({} if rollout.confirm_within_s is None else {"confirm_within_s": rollout.confirm_within_s}),
                **({} if undoes is None else {"undoes": undoes.public_id}),
                **({} if may_lack is None else {"without": may_lack["hosts"]}),
            },
            reason=reason,
            revision_key=revision.public_id,
        )
        wake(RUN, rollout_id=rollout.pk)
    # With the request that asked for it: the lines of the worker name both.
    log.info(
        "rollout %s of revision %s: %s",
        rollout.public_id,
        revision.number,
        rollout.state,
        extra={"rollout": rollout.public_id},
    )
    return rollout


def _refuse_by_policy(
    subnet: Subnet, table: PartitionTable, *, standing: PartitionTable, tolerated: Collection[str] = frozenset()
) -> None:
    registered = [GUID(guid) for guid in ManagerHost.objects.filter(subnet=subnet).values_list("port_guid", flat=True)]
    newest = queries.latest_observation(subnet)
    ports = tables.fabric(newest).ports if newest is not None else {}
    capacity = {guid: port.capacity for guid, port in ports.items()}
    violations = check(table, Limits(capacity), sm_ports_registered=registered, standing=standing)
    refusing = [
        violation for violation in violations if violation.severity == "refuse" and violation.rule not in tolerated
    ]
    if refusing:
        raise PolicyRefused(refusing)


def _refuse_start(subnet: Subnet, fence: Fence, revision: Revision, *, undoes: Rollout | None) -> None:
    require_leave(subnet)
    if fence.rollout is not None:
        raise SubnetBusy(_who_holds(subnet, fence.rollout))
    if revision.parent_id != fence.current_id:
        raise StaleRevision(
            f"{str(revision).capitalize()} stands on {revision.parent}, but {fence.current} is current. "
            "Draw up the plan again."
        )
    unconfirmed = deadlines.unconfirmed(fence.current)
    if unconfirmed is not None and unconfirmed != undoes:
        raise SubnetBusy(
            f"The rollout of {fence.current} waits to be confirmed until {unconfirmed.confirm_by:%Y-%m-%d %H:%M:%S} "
            "UTC, or it is taken back. Confirm it first."
        )


def _who_holds(subnet: Subnet, rollout: Rollout) -> str:
    stuck = rollout.state == Rollout.State.STUCK
    then = "It needs a person: open its page and do what it says." if stuck else "Wait until it has ended."
    return f"The rollout of {rollout.revision} is {rollout.get_state_display()} and holds subnet {subnet}. {then}"


def _refuse_observation(subnet: Subnet, observation: Observation, *, now: datetime) -> None:
    if observation.subnet_id != subnet.pk or observation.tables_id is None or observation.read_at is None:
        raise StaleObservation(
            "The look at the fabric that this plan stands on read no tables. Open the plan again; it takes a new look."
        )
    since = queries.tables_were_true_since(subnet)
    if since is not None and observation.read_at < since:
        raise StaleObservation(
            "The tables behind this plan were read before the last rollout ended. Open the plan again."
        )
    age_s = (now - observation.read_at).total_seconds()
    if age_s < -queries.CLOCKS_DIFFER_BY.total_seconds():
        raise StaleObservation(
            f"The tables behind this plan were read {-age_s:.0f} s in the future: a clock was set back. Open the plan "
            "again; it takes a new look."
        )
    if age_s > settings.OBSERVATION_FRESH_S:
        raise StaleObservation(
            f"The tables behind this plan are {age_s:.0f} s old; at most {settings.OBSERVATION_FRESH_S} s are allowed, "
            "because ports come and go. Open the plan again; it takes a new look."
        )


def _changes_nothing(table: PartitionTable, parent: Revision) -> bool:
    if table_digest(table) != parent.table_digest:
        return False
    # Comments (labels, the header) reach no port; a flag or a name would.
    data = bytes(parent.data)
    return _without_comments(render(table, Header.of(data))) == _without_comments(data)


def _without_comments(data: bytes) -> list[bytes]:
    return [line for line in data.split(b"\n") if not line.startswith(b"#")]


def _proposed_before(*, subnet: Subnet, table: PartitionTable, parent: Revision) -> Revision | None:
    twins = Revision.objects.filter(subnet=subnet, parent=parent, table_digest=table_digest(table))
    for twin in twins.order_by("-number"):
        data = bytes(twin.data)
        if data == render(table, Header.of(data)):
            return twin
    return None


def _new_revision(
    *,
    subnet: Subnet,
    table: PartitionTable,
    parent: Revision | None,
    actor: Actor,
    reason: str,
    layout: Layout = NEWEST,
) -> Revision:
    newest = Revision.objects.filter(subnet=subnet).aggregate(number=Max("number"))["number"] or 0
    parent_digest = NO_PARENT if parent is None else parent.digest
    data = render(table, Header(subnet=subnet.name, revision=newest + 1, parent=parent_digest, layout=layout))
    if refused := tuple(policy_reading.of_file(data)):
        raise PolicyRefused(refused)
    return Revision.objects.create(
        subnet=subnet,
        number=newest + 1,
        parent=parent,
        table=table.to_json(),
        data=data,
        digest=digest(data),
        table_digest=table_digest(table),
        author_key=actor.key,
        author_name=actor.name,
        reason=reason,
        created_at=timezone.now(),
    )


def _record_revision(
    revision: Revision, *, actor: Actor, action: Action = Action.REVISION_PROPOSE, **told: object
) -> None:
    """Write the event of a new revision; `told` is what else it says: digests of adopted files, staged changes."""
    record(
        action=action,
        actor=actor,
        subject=Subject(
            kind="revision", key=revision.public_id, label=f"revision {revision.number} of {revision.subnet}"
        ),
        after={
            "revision": revision.number,
            "parent": revision.parent.number if revision.parent else None,
            "digest": revision.digest,
            "table_digest": revision.table_digest,
            **told,
        },
        reason=revision.reason,
    )
