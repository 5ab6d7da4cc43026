"""Cleaning: an operator's word that nothing of its former tenant is left on a server, so that another may take it.

The word alone is not enough: the fabric must have been proven to give the server none of that tenant's keys. What
the server says of itself counts for nothing, because its tenant was root on it.
"""

from collections.abc import Iterable, Mapping, Set
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import Actor
from deploy import files
from deploy.models import Observation, Revision, Rollout
from deploy.queries import current_revision, latest_observation, observed_fabric, tables_were_true_since
from inventory.models import Port, Server
from inventory.subjects import server_subject
from partitions import mirror, refusals
from partitions.doer import Doer, as_actor, as_person
from partitions.errors import MoveRefused
from partitions.models import Cleaning, Partition
from partitions.standing import Standing
from people.models import User
from people.permissions import is_operator
from subnet.guid import GUID
from subnet.pkey import FULL_BIT, PKey


def mark_clean(*, server: Server, actor: Doer, reason: str) -> tuple[Cleaning, ...]:
    """Let any tenant take `server` from now on; `reason` says how it was made clean. One row for each port.

    Only for operators, and only once it is proven that no port of it holds a tenant's key: it is in nobody's partition
    in the current revision, no rollout touches it, the latest reading shows no such key on it, and a reading after
    every attempt to give it one, and after every proof that a person accepted without its ports, has seen them. Raises
    MoveRefused.
    """
    person = as_person(actor)
    if not is_operator(person):
        raise MoveRefused("Only an operator may say that a server is clean.", rule="not_yours")
    if not reason.strip():
        raise MoveRefused(
            f"Say how {server} was made clean (erased, firmware checked, rebooted …), so that the next person can read "
            "it in the trail.",
            rule="reason_needed",
        )
    return clean(server=server, by=person, actor=as_actor(actor), reason=reason)


@transaction.atomic
def clean(*, server: Server, by: User | None, actor: Actor, reason: str) -> tuple[Cleaning, ...]:
    """Write that `server` is clean, by a person (`by`) or by what the fabric showed; both need the same proof.

    Raises MoveRefused.
    """
    mirror.catch_up(server.subnet)
    standing = Standing.of(server)
    ports = list(Port.objects.filter(hca__server=server).select_related("former_tenant").order_by("guid"))
    bound = [port for port in ports if port.former_tenant is not None]
    _refuse_members(standing)
    if not bound:
        raise MoveRefused(f"{server} was in no tenant's partition: any tenant may take it.", rule="not_bound")
    refusals.refuse_rolling_out(server.subnet, {port.guid: server.hostname for port in ports})
    current = current_revision(server.subnet)
    assert current is not None  # noqa: S101  a port that was in a partition was so by a revision
    _refuse_unproven(server, bound, current)
    at = timezone.now()
    rows = Cleaning.objects.bulk_create(
        Cleaning(port=port, tenant=port.former_tenant, revision=current, by=by, at=at, reason=reason) for port in bound
    )
    Port.objects.filter(pk__in=[port.pk for port in bound]).update(former_tenant=None)
    tenants = {port.former_tenant for port in bound if port.former_tenant is not None}
    record(
        action=Action.SERVER_CLEAN,
        actor=actor,
        subject=server_subject(server),
        before={"former_tenants": sorted(tenant.name for tenant in tenants)},
        after={"ports": len(bound), "revision": current.number},
        reason=reason,
        tenant_key=tenants.pop().public_id if len(tenants) == 1 else "",
    )
    return tuple(rows)


def _refuse_members(standing: Standing) -> None:
    members = [partition for partition in standing.partitions_now() if partition.tenant is not None]
    if members:
        raise MoveRefused(
            f"{standing.server} is still in {members[0].name}, a partition of {members[0].tenant}. Take it out, roll "
            "that out, and mark it clean once that is proven.",
            rule="still_member",
        )


def _refuse_unproven(server: Server, bound: Iterable[Port], current: Revision) -> None:
    """Neither may the latest reading show a tenant's key, nor an attempt to give one be without a proof after it."""
    observation, since = latest_observation(server.subnet), tables_were_true_since(server.subnet)
    if observation is not None and since is not None and (observation.read_at is None or observation.read_at < since):
        observation = None  # older than what was placed last
    if observation is not None:
        _refuse_drift(observation, current)
    seen = {} if observation is None else observed_fabric(observation).ports
    owned = set(Partition.objects.filter(subnet=server.subnet, tenant__isnull=False).values_list("pkey", flat=True))
    ports = list(bound)
    guids = {GUID(port.guid) for port in ports}
    stuck, restored, excused = _stuck(current), _restored(server, guids), _excused(server, guids)
    for port in ports:
        reading = seen.get(GUID(port.guid))
        held = [] if reading is None else sorted(owned & {entry & ~FULL_BIT for entry in reading.pkeys.values()})
        if held:
            raise MoveRefused(
                f"Port {port} of {server} still holds P_Key {PKey(held[0])}, as the fabric was last read. Roll its "
                "removal out, or look at the fabric again if that is done.",
                rule="still_held",
            )
        if GUID(port.guid) in stuck:
            raise MoveRefused(
                f"A rollout that gave port {port} of {server} a tenant's key ended stuck, so what the port holds is "
                "not proven. Mark the server clean once another rollout is proven.",
                rule="not_proven",
            )
        if GUID(port.guid) in excused and (reading is None or not reading.is_read):
            raise MoveRefused(
                f"Port {port} of {server} was not on the fabric when its keys were taken away, and "
                f"{excused[GUID(port.guid)]} let that stand: what it holds was never read. Bring its link up, look at "
                "the fabric, then mark the server clean.",
                rule="not_proven",
            )
        if GUID(port.guid) in restored and (reading is None or not reading.is_read):
            raise MoveRefused(
                f"A rollout that gave port {port} of {server} a tenant's key was restored, and the port was not read "
                "since. Look at the fabric while the port is up, then mark the server clean.",
                rule="not_proven",
            )


def _excused(server: Server, guids: Set[GUID]) -> dict[GUID, str]:
    """Those of `guids` that a person let be absent when a rollout was proven, with the name. One query.

    What was cleaned since is clean of it.
    """
    cleaned = Cleaning.objects.filter(port__hca__server=server).aggregate(newest=Max("at"))["newest"]
    accepted = Rollout.objects.filter(subnet=server.subnet, accepted__isnull=False)
    if cleaned is not None:
        accepted = accepted.filter(finished_at__gt=cleaned)
    found: dict[GUID, str] = {}
    for said in accepted.values_list("accepted", flat=True):
        assert said is not None  # noqa: S101  the query asked for those
        found |= {GUID(guid): str(said["by"]) for guid in said["absent"] if GUID(guid) in guids}
    return found


def _refuse_drift(observation: Observation, current: Revision) -> None:
    """A manager host with another file than the current revision stands for may give keys back at its next sweep."""
    wanted = files.Standing.of(current)
    for item in observation.managers:
        if item.get("digest") not in (None, "", wanted.digest):
            raise MoveRefused(
                f"The file of manager host {item['host']} is not {wanted.words}, so it may give a port its key back "
                "at the next sweep. Roll the current revision out there first.",
                rule="not_proven",
            )


def _stuck(current: Revision) -> set[GUID]:
    """The ports that a stuck rollout on the current revision gave a tenant's key.

    The next proof speaks of all of them: what a stuck rollout left on the hosts counts as what it changes.
    """
    ended = Rollout.objects.filter(parent=current, state=Rollout.State.STUCK).values_list("revision__table", flat=True)
    return {guid for table in ended for guid in _given(table)}


def _restored(server: Server, guids: Set[GUID]) -> set[GUID]:
    """Those of `guids` that a rollout which was restored gave a tenant's key, and that no later proof was about.

    A restore and a proof speak for the ports that they could read, and for those alone that they change. What was
    cleaned since is clean of it. One query, and one for the later proofs of each rollout that was restored.
    """
    cleaned = Cleaning.objects.filter(port__hca__server=server).aggregate(newest=Max("at"))["newest"]
    ended = Rollout.objects.filter(subnet=server.subnet, state=Rollout.State.RESTORED)
    if cleaned is not None:
        ended = ended.filter(finished_at__gt=cleaned)
    unproven: set[GUID] = set()
    for table, finished_at in ended.values_list("revision__table", "finished_at"):
        given = guids & _given(table)
        later = Rollout.objects.filter(
            subnet=server.subnet, state=Rollout.State.PROVEN, finished_at__gt=finished_at
        ).select_related("revision", "parent")
        for proof in later if given else ():
            named = {str(guid) for guid in given}
            touched = refusals.held(proof.parent, named) ^ refusals.held(proof.revision, named)
            given -= {GUID(guid) for _, guid, _ in touched}
        unproven |= given
    return unproven


def _given(table: Mapping[str, Any]) -> set[GUID]:
    """The ports that hold a tenant's key by a revision's stored table."""
    return {
        GUID(guid)
        for partition in table["partitions"]
        if partition["tenant"] is not None
        for guid, _ in partition["members"]
    }
