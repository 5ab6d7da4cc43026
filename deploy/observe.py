"""One look at the managers and the whole fabric while no rollout runs: what a plan is drawn up on.

The reader discovers the fabric by itself here, so that a port OpenSM does not know is seen too. It never reaches past
reading, and it leaves the hosts to a rollout that comes first.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import SYSTEM, Subject
from deploy import evidence, files, queries, table_history, tables, whole_looks
from deploy.look import Look, ManagerHosts, told
from deploy.models import RUNNING, Fence, Observation
from deploy.proof import Unseen
from deploy.readiness import no_master
from deploy.story import READ_TIMEOUT_S
from inventory.models import ManagerHost
from inventory.operations import record_seen
from remote.errors import RemoteError
from remote.manager_host import HostVerbs
from subnet.errors import InvalidListing
from subnet.guid import GUID
from subnet.observed import ObservedFabric, parse_reading

State = Observation.State


def observe(
    *, observation: Observation, hosts: Sequence[HostVerbs], clock: Callable[[], datetime] = timezone.now
) -> None:
    """Take the look that `observation` asks for; it ends DONE, or FAILED with a sentence.

    Does nothing while a rollout of the subnet runs (the request stays), or when another worker reads already. A host
    that does not answer is a row with its error; only a fabric that could not be read is a failure.
    """
    if _is_rolling_out(observation):
        return
    now = clock()
    taken = Observation.objects.filter(pk=observation.pk, state=State.REQUESTED)
    left = Observation.objects.filter(
        pk=observation.pk, state=State.READING, read_at__lte=now - queries.READING_TAKES_AT_MOST
    )
    if (taken | left).update(state=State.READING, read_at=now) != 1:
        return
    observation.refresh_from_db()
    generation = _generation(observation)
    registered = {
        name: GUID(guid)
        for name, guid in ManagerHost.objects.filter(subnet=observation.subnet_id).values_list("name", "port_guid")
    }
    look = Look(views=())
    try:
        with ThreadPoolExecutor(max_workers=3 * len(hosts) + 1) as threads:
            look = ManagerHosts(hosts, registered=registered, threads=threads).look()
        data, fabric = read_fabric(look)
    except Unseen as unseen:
        _fail(observation, str(unseen), look=look, now=clock())
        return
    if _generation(observation) != generation:
        _fail(observation, "A rollout began while the tables were read. Take a new look.", look=look, now=clock())
        return
    _keep(observation, data=data, fabric=fabric, look=look, registered=registered, now=clock())


def read_fabric(look: Look) -> tuple[bytes, ObservedFabric]:
    """The tables of the whole fabric, read on the master's host. Raises Unseen."""
    if not look.views:
        raise Unseen("The subnet has no manager host. Enrol the machines that run OpenSM.")
    # Without a registered master (a rogue SM has taken over, say) any host that answers can still read the tables.
    asked = look.master or next((view for view in look.views if view.identity is not None), None)
    if asked is None:
        raise Unseen(no_master(look))
    try:
        data = asked.host.read_tables(
            topology="discovery", smps_per_s=settings.READ_SMPS_PER_S, timeout_s=READ_TIMEOUT_S
        )
        return data, parse_reading(data)
    except (RemoteError, InvalidListing) as error:
        raise Unseen(told(asked.name, error)) from error


def _keep(
    observation: Observation,
    *,
    data: bytes,
    fabric: ObservedFabric,
    look: Look,
    registered: dict[str, GUID],
    now: datetime,
) -> None:
    at = observation.read_at or now
    with transaction.atomic():
        stored = tables.store(data, ports=len(fabric.end_ports))
        kept = Observation.objects.filter(pk=observation.pk, state=State.READING, read_at=observation.read_at).update(
            state=State.DONE,
            finished_at=now,
            tables=stored,
            managers=_managers(observation, look),
            census=evidence.census_rows(fabric, registered=set(registered.values())),
        )
        observation.refresh_from_db()
        if kept:
            table_history.keep(observation, fabric=fabric, processes=processes(look))
    tables.remember(stored.digest, fabric)
    if kept:
        # Found by our own discovery, so a port that is not among them is not there.
        record_seen(subnet=observation.subnet, readings=fabric.ports.values(), at=at, is_complete=True)
        whole_looks.tell(whole_looks.WholeLook(observation.subnet, fabric.ports, at, is_discovery=True))


def processes(look: Look) -> dict[str, tuple[int, ...]]:
    """Host → PID and start of its OpenSM, empty where none runs; without the hosts that did not say."""
    running = {view.name: view.identity.process for view in look.views if view.identity is not None}
    return {name: (process.pid, process.started) if process is not None else () for name, process in running.items()}


def _fail(observation: Observation, sentence: str, *, look: Look, now: datetime) -> None:
    unfinished = Observation.objects.filter(pk=observation.pk, state__in=(State.REQUESTED, State.READING))
    with transaction.atomic():
        failed = unfinished.update(
            state=State.FAILED, finished_at=now, failure=sentence, managers=_managers(observation, look)
        )
        if failed:
            subnet = observation.subnet
            record(
                action=Action.OBSERVATION_FAILED,
                actor=SYSTEM,
                subject=Subject(kind="subnet", key=subnet.public_id, label=subnet.name),
                after={"failure": sentence, "why": observation.why},
            )
    observation.refresh_from_db()


def _managers(observation: Observation, look: Look) -> list[dict[str, Any]]:
    """The managers' rows; a file that is no revision is kept as it was read, so that it can be shown or adopted."""
    known = files.numbers_by_digest(observation.subnet_id)
    files.keep_read((view.file for view in look.views if view.file is not None), known=known)
    return evidence.manager_rows(look.views, known=known)


def _is_rolling_out(observation: Observation) -> bool:
    rollout = queries.running_rollout(observation.subnet)
    return rollout is not None and rollout.state in RUNNING


def _generation(observation: Observation) -> int:
    """The fence's generation: it moves with every rollout that begins or turns back."""
    return Fence.objects.filter(subnet=observation.subnet_id).values_list("generation", flat=True).first() or 0
