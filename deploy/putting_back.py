"""Put back: a new rollout of the revision that is current already, because files or fabric are not as it says.

Whatever lies on the hosts is replaced (each keeps the file before as `.previous`, and the watch has kept its bytes), so
such a rollout accepts any file, or none. The tables before are read by the worker just before it places: they say which
ports have to change, and every other one is judged by the revision alone.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.utils import timezone

from audit import nudge
from audit.actions import Action
from audit.record import record
from audit.values import SYSTEM, Actor
from deploy import drifting, evidence, files, going_without, observe, operations, queries, table_history, tables
from deploy.drift_models import Drift, Watch
from deploy.errors import DeployError, NothingToDo, StaleObservation, SubnetBusy
from deploy.leave import require_leave
from deploy.look import Look, ManagerHosts
from deploy.models import Fence, HostOutcome, Observation, Rollout, RolloutStep
from deploy.proof import Expectation, Unseen
from deploy.story import Story
from inventory.models import ManagerHost, Subnet
from remote.errors import FileMissing
from subnet.guid import GUID
from subnet.observed import PortReading
from subnet.readback import expected
from subnet.table import PartitionTable

RUN: Final = "deploy.tasks.run_rollout"
LOOK: Final = "put-back"  # why the observation was taken
AT_MOST_EVERY: Final = timedelta(hours=1)  # of what FabricUI puts back by itself


def put_back(*, subnet: Subnet, actor: Actor, reason: str = "", without: Collection[str] = ()) -> Rollout:
    """Queue a rollout of the current revision's bytes to every manager host; it ends PROVEN, or in a named state.

    A lost isolation does not refuse it, for it is what mends that. Asked again while it runs, it is the same rollout.
    `without` names standbys that it may go without when they cannot be staged, and `reason` says why: their files stay
    as they are, which a takeover already threatens; such a rollout is DEGRADED until they are back. Raises NotWritable,
    SubnetFrozen, FabricAlarm while a rogue SM is at work, SubnetBusy, StaleObservation when no table was ever read,
    NothingToDo without a revision of FabricUI's own, ReasonNeeded.
    """
    now = timezone.now()
    may_lack = going_without.terms(subnet=subnet, hosts=without, actor=actor, reason=reason)
    with transaction.atomic():
        subnet = Subnet.objects.get(pk=subnet.pk)
        fence = Fence.objects.select_for_update(of=("self",)).select_related("current").filter(subnet=subnet).first()
        if fence is None:
            raise NothingToDo(f"Subnet {subnet} has no revision yet, so there is nothing to put back.")
        if fence.rollout is not None and is_put_back(fence.rollout):
            return fence.rollout
        require_leave(subnet, mends=True)
        if fence.rollout is not None:
            raise SubnetBusy(
                f"The rollout of {fence.rollout.revision} is {fence.rollout.get_state_display()} and holds subnet "
                f"{subnet}. Open its page; put back once it has ended."
            )
        if files.Standing.of(fence.current).is_adopted:
            raise NothingToDo(
                f"{fence.current} of subnet {subnet} stands for the hand-written file that was adopted. Place it in "
                "FabricUI's words on the adoption page, or adopt what lies there now."
            )
        before = queries.latest_observation(subnet)
        if before is None:
            raise StaleObservation("No look has read the tables of this subnet yet. Take one on the managers page.")
        rollout = Rollout.objects.create(
            subnet=subnet, revision=fence.current, parent=fence.current, before=before,
            generation=fence.generation + 1, started_by_key=actor.key, started_by_name=actor.name, reason=reason,
            requested_at=now, without=may_lack,
        )  # fmt: skip
        held = Fence.objects.filter(pk=fence.pk, rollout=None, current=fence.current, generation=fence.generation)
        if held.update(rollout=rollout, generation=fence.generation + 1) != 1:
            raise SubnetBusy(f"Another rollout of subnet {subnet} began at the same moment. Wait until it has ended.")
        hosts = ManagerHost.objects.filter(subnet=subnet)
        HostOutcome.objects.bulk_create([HostOutcome(rollout=rollout, host=host) for host in hosts])
        text = f"Put back by {actor.name}: {fence.current} is current, and is placed again."
        RolloutStep.objects.create(rollout=rollout, at=now, state=rollout.state, text=text)
        record(
            action=Action.ROLLOUT_START,
            actor=actor,
            subject=operations.subject_of(rollout),
            after={
                "revision": fence.current.number,
                "state": rollout.state,
                "digest": fence.current.digest,
                "put_back": True,
                **({} if may_lack is None else {"without": may_lack["hosts"]}),
            },
            reason=reason,
        )
        transaction.on_commit(lambda: nudge.task(RUN, {"rollout_id": rollout.pk}), robust=True)
    return rollout


def restore_alone(subnet: Subnet, *, look: Look, now: datetime) -> Rollout | None:
    """Put back without a person where that is enabled: isolation is lost, and the registered master's file is why.

    At most once an hour. Returns the rollout, or None when nothing may be done.
    """
    master = look.master
    fence = Fence.objects.filter(subnet=subnet).select_related("current").first()
    if fence is None or master is None or master.digest == fence.current.digest:
        return None
    if not (master.file is not None or any(isinstance(failure, FileMissing) for failure in master.failures)):
        return None  # what lies there is not known
    kinds = {drift.kind for drift in drifting.alarms(subnet.pk)}
    if kinds != {Drift.Kind.ISOLATION_LOST}:
        return None
    with transaction.atomic():
        watch = Watch.objects.select_for_update().get(subnet=subnet)
        if not watch.restores_alone or (watch.restored_at is not None and now - watch.restored_at < AT_MOST_EVERY):
            return None
        try:
            with transaction.atomic():
                Watch.objects.filter(pk=watch.pk).update(restored_at=now)
                return put_back(
                    subnet=subnet, actor=SYSTEM, reason="Isolation is lost, and mending that alone is enabled here."
                )
        except DeployError:
            return None  # frozen, not in mode write, or busy: the alarm stands for a person


# --- what the rollout asks -----------------------------------------------------------------------------------------


def is_put_back(rollout: Rollout) -> bool:
    """Whether a rollout places what is current already."""
    return rollout.revision_id == rollout.parent_id


def accepted(rollout: Rollout, look: Look, digests: dict[str, int]) -> dict[str, int]:
    """The digests that a host's file may have before placing: any, when that is what is put back."""
    if not is_put_back(rollout):
        return digests
    return {view.digest: 0 for view in look.views if view.file is not None} | digests


def forgiving(rollout: Rollout, look: Look) -> Look:
    """The look without the complaint that a file is missing, when one is put back there."""
    if not is_put_back(rollout):
        return look
    return Look(
        tuple(
            replace(view, failures=tuple(one for one in view.failures if not isinstance(one, FileMissing)))
            for view in look.views
        )
    )


def look_before(story: Story, managers: ManagerHosts) -> str:
    """Read all tables as they are now, and make them the rollout's *before*; why it cannot be done, or "".

    Nothing is read for an ordinary rollout: its plan stands on a look of its own.
    """
    rollout, look = story.rollout, managers.seen
    if not is_put_back(rollout) or look is None:
        return ""
    at = story.clock()
    try:
        data, fabric = observe.read_fabric(look)
    except Unseen as unseen:
        return f"{unseen} The tables have to be read before anything is put back."
    known = files.numbers_by_digest(rollout.subnet_id)
    registered = frozenset(GUID(guid) for guid in managers.registered.values())
    with transaction.atomic():
        files.keep_read((view.file for view in look.views if view.file is not None), known=known)
        before = Observation.objects.create(
            subnet_id=rollout.subnet_id,
            state=Observation.State.DONE,
            why=LOOK,
            requested_at=at,
            read_at=at,
            finished_at=story.clock(),
            tables=tables.store(data, ports=len(fabric.end_ports)),
            managers=evidence.manager_rows(look.views, known=known),
            census=evidence.census_rows(fabric, registered=registered),
        )
        table_history.keep(before, fabric=fabric, processes=observe.processes(look))
        story.keep(before=before)
    return ""


def widened(expectation: Expectation, *, by_table_alone: bool) -> Expectation:
    """The expectation when the fabric may have been other than the parent said before: what differed has to change.

    `by_table_alone`: nothing but those ports is compared with what it was before; every other one is judged by the
    table, whenever the wrong file was read.
    """
    before, wanted = expectation.before, expectation.wanted
    masters = {sm.guid for sm in before.masters}
    differing = {
        guid
        for guid, port in before.end_ports.items()
        if port.is_read and _unlike(wanted, port, is_self=guid in masters)
    }
    affected = expectation.affected | differing
    if not by_table_alone:
        return replace(expectation, affected=affected)
    ports = {guid: port for guid, port in before.ports.items() if guid in affected}
    return replace(expectation, affected=affected, before=replace(before, ports=ports))


def _unlike(wanted: PartitionTable, port: PortReading, *, is_self: bool) -> bool:
    return frozenset(port.pkeys.values()) != expected(wanted, port, is_self=is_self)
