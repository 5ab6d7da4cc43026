"""The data-plane check: a write between two servers of different tenants that must be dropped.

Made by the worker of queue `probe`. Rights are looked at again before anything is sent, because a check may have
waited while a tenant withdrew its consent or a rollout changed who may talk.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.utils import timezone

from deploy.models import RUNNING, Fence
from inventory.models import Port
from probes import isolation
from probes.attempt import ACK_TIMEOUT, Check, Checked, End, check
from probes.errors import ProbeRefused
from probes.members import may_be_probed, port_choice
from probes.models import IsolationCheck, ProbeHost, ProbeSetMember
from probes.operations.isolation import give_back, not_run, store
from probes.orders import PATIENT_ACK_TIMEOUT
from probes.terms import Outcome, PortChoice
from remote.probe_host import ProbeShell
from subnet.guid import GUID

TAKES_AT_MOST: Final = timedelta(minutes=15)
TRY_TAKES_AT_MOST_S: Final = 60.0
PATIENT_TRY_TAKES_AT_MOST_S: Final = 200.0
State = IsolationCheck.State

type Connect = Callable[[ProbeHost], AbstractContextManager[ProbeShell]]


@dataclass(frozen=True, slots=True)
class Side:
    """One end before it is connected."""

    host: ProbeHost
    port: PortChoice
    pkey: int | None


@dataclass(frozen=True, slots=True)
class Sides:
    """Both ends, the pairs of the positive controls, and how long to wait for an acknowledgement."""

    sender: Side
    target: Side
    controls: tuple[tuple[Side, Side], ...]
    is_patient: bool = False


def run(
    *,
    check_id: int,
    connect: Connect,
    examine: Callable[[Check], Checked] = check,
    clock: Callable[[], datetime] = timezone.now,
) -> None:
    """Make one check, if it waits and no rollout runs. A busy port makes it wait again."""
    row = _begin(check_id, clock())
    if row is None:
        return
    try:
        sides = sides_of(row)
    except ProbeRefused as refusal:
        not_run(row, sentence=str(refusal), now=clock())
        return
    generation = _generation(row)
    with ExitStack() as stack:
        shells: dict[int, ProbeShell] = {}

        def end(side: Side) -> End:
            if side.host.pk not in shells:
                shells[side.host.pk] = stack.enter_context(connect(side.host))
            return End(shells[side.host.pk], side.port, side.pkey)

        found = examine(
            Check(
                sender=end(sides.sender),
                target=end(sides.target),
                controls=[(end(one), end(other)) for one, other in sides.controls],
                ack_timeout=PATIENT_ACK_TIMEOUT if sides.is_patient else ACK_TIMEOUT,
                deadline_s=PATIENT_TRY_TAKES_AT_MOST_S if sides.is_patient else TRY_TAKES_AT_MOST_S,
                is_ethernet_allowed=settings.PROBE_ISOLATION_ON_ETHERNET,
            )
        )
    if _is_busy(found) or _generation(row) != generation:
        give_back([row])
        return
    store(row, judged=found.judged, evidence=found.evidence, now=clock())


def sides_of(row: IsolationCheck) -> Sides:
    """Ports, P_Keys and controls of a check as the current revision has them. Raises ProbeRefused with the reason."""
    hosts = {host.server_id: host for host in _hosts([row.sender_id, row.target_id])}
    if set(hosts) != {row.sender_id, row.target_id}:
        raise ProbeRefused("One of the two servers is no probe host any more.")
    refusal = may_be_probed(list(hosts.values()))
    if refusal:
        raise ProbeRefused(refusal)
    if not row.sender_guid or not row.target_guid:
        return _of_probe_set(hosts[row.sender_id], hosts[row.target_id])
    return _of_partitions(row, hosts)


def _of_probe_set(sender: ProbeHost, target: ProbeHost) -> Sides:
    """Two hosts without a P_Key of their own: the control is the same write, which on Ethernet is all there is."""
    ends = []
    is_patient = False
    for host in (sender, target):
        member = ProbeSetMember.objects.filter(host=host).select_related("probe_set__scope").order_by("pk").first()
        if member is None:
            raise ProbeRefused(f"{host} is in no probe set, and no partition names its port.")
        is_patient = is_patient or member.probe_set.scope.is_patient
        ends.append(Side(host, PortChoice(device=member.device, port=member.port, interface=member.interface), None))
    return Sides(ends[0], ends[1], ((ends[0], ends[1]),), is_patient)


def _of_partitions(row: IsolationCheck, hosts: dict[int, ProbeHost]) -> Sides:
    """Each end with a P_Key of its own; each control a write with another member of that partition."""
    known = isolation.tenancy_now(row.subnet)
    one, other = GUID(row.sender_guid), GUID(row.target_guid)
    if known is None or not known[0].are_strangers(one, other):
        raise ProbeRefused("The two may talk by now, or neither is a tenant’s any more.")
    tenancy = known[0]
    sides, controls = [], []
    for guid, server in ((one, row.sender_id), (other, row.target_id)):
        candidates = {
            member for pkey in tenancy.keys.get(guid, {}) for member in tenancy.members.get(pkey, ()) if member != guid
        }
        ports = isolation.ports_of(row.subnet, {guid, *candidates})
        peers = _usable(ports, candidates, but=server)
        peer = tenancy.peer(guid, among=peers)
        if guid not in ports or peer is None:
            raise ProbeRefused(
                f"No other probe host shares a partition with {hosts[server]}: nothing could show that its port works."
            )
        own = Side(hosts[server], port_choice(ports[guid]), int(peer[1]))
        theirs = Side(peers[peer[0]], port_choice(ports[peer[0]]), int(peer[1]))
        sides.append(own)
        controls.append((own, theirs))
    return Sides(sides[0], sides[1], tuple(controls))


def _usable(ports: dict[GUID, Port], guids: set[GUID], *, but: int) -> dict[GUID, ProbeHost]:
    """The probe hosts that may be reached, by the GUID of their port; not those of server `but`."""
    servers = {guid: ports[guid].hca.server_id for guid in guids if guid in ports and ports[guid].hca is not None}  # type: ignore[union-attr]
    hosts = {host.server_id: host for host in _hosts(list(set(servers.values()) - {but}))}
    allowed = {server: host for server, host in hosts.items() if not may_be_probed([host])}
    return {guid: allowed[server] for guid, server in servers.items() if server in allowed}


def _hosts(servers: list[int]) -> list[ProbeHost]:
    return list(ProbeHost.objects.usable().filter(server__in=servers).select_related("server"))


def _begin(check_id: int, now: datetime) -> IsolationCheck | None:
    """Take the check, unless another worker has it, it is over, or a rollout runs."""
    waiting = IsolationCheck.objects.filter(pk=check_id, state=State.QUEUED, plane=IsolationCheck.Plane.DATA)
    held = Fence.objects.filter(rollout__state__in=RUNNING).values("subnet")
    if not waiting.exclude(subnet__in=held).update(state=State.RUNNING, claimed_until=now + TAKES_AT_MOST):
        return None
    return IsolationCheck.objects.whole().get(pk=check_id)


def _generation(row: IsolationCheck) -> int:
    return Fence.objects.filter(subnet=row.subnet_id).values_list("generation", flat=True).first() or 0


def _is_busy(found: Checked) -> bool:
    """Whether a port was in use by another probe: no finding."""
    tries = [*found.evidence.get("controls_before", []), found.evidence.get("attempt", {})]
    tries += found.evidence.get("controls_after", [])
    return any(tried.get("outcome") == Outcome.BUSY.value for tried in tries)
