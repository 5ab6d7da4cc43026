"""Before and after: a rollout that touched a pair has it probed again, and both results stand side by side.

A follower of the trail: at least once and possibly late, so it asks the rows what is so and writes each comparison
once. It only queues the wish; the next tick plans it before everything but a person's own wish.
"""

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Final

from django.utils import timezone

from audit.actions import Action
from audit.models import Event
from deploy.models import Rollout
from inventory.models import Port
from probes.members import natural, roll_of
from probes.models import ProbeHost, ProbePair, ProbeRun, ProbeScope, RolloutComparison
from probes.pairing import Pair
from probes.schedule import first_peers
from probes.terms import Kind
from subnet.guid import GUID
from subnet.member import NodeType
from subnet.pkey import PKey
from subnet.table import PartitionTable

FOLLOWED: Final = frozenset({Action.ROLLOUT_PROVEN, Action.ROLLOUT_DEGRADED, Action.ROLLOUT_RESTORED})
PEERS: Final = 3  # of each touched host in each scope
MOST: Final = 200  # comparisons of one rollout; a rollout of a whole hall is sampled


def follow(event: Event) -> None:
    """Ask for comparisons around the rollout that the event is about; the follower's function."""
    rollout = Rollout.objects.select_related("revision", "parent", "subnet").filter(public_id=event.subject_key).first()
    if rollout is None or RolloutComparison.objects.filter(rollout=rollout).exists():
        return
    before, after = rollout.parent.partition_table(), rollout.revision.partition_table()
    rows_of_ports = ProbeHost.objects.usable().filter(
        server__subnet=rollout.subnet, server__hcas__ports__link_layer=Port.LinkLayer.INFINIBAND
    )
    by_port = {GUID(guid): host for guid, host in rows_of_ports.values_list("server__hcas__ports__guid", "pk")}
    hosts = {by_port[guid] for guid in touched(before, after, by_port)}
    if not hosts:
        return
    is_back = rollout.state == Rollout.State.RESTORED
    table = (rollout.parent if is_back else rollout.revision).partition_table()
    scopes = ProbeScope.objects.named().filter(subnet=rollout.subnet, is_enabled=True).order_by("pk")
    asked = [_of_scope(scope, rollout, _members(scope, table, by_port), hosts) for scope in scopes]
    # Scopes take turns, so that a change of Default, which touches everybody, leaves none of them out.
    rows = [row for turn in zip_longest(*asked) for row in turn if row is not None]
    RolloutComparison.objects.bulk_create(rows[:MOST], batch_size=200)


def touched(before: PartitionTable, after: PartitionTable, ports: Iterable[GUID]) -> set[GUID]:
    """Those of these HCA ports whose P_Keys differ between the tables: by GUID, by keyword, or in Default.

    A port that an SM uses counts as SELF in both, because either of them may be the master.
    """
    asked: list[tuple[GUID, NodeType, bool]] = [
        (guid, "CA", guid in before.sm_ports or guid in after.sm_ports) for guid in ports
    ]
    had, has = before.keys_of_some(asked), after.keys_of_some(asked)
    return {guid for guid, _, _ in asked if had[guid] != has[guid]}


def _members(scope: ProbeScope, table: PartitionTable, by_port: Mapping[GUID, int]) -> list[int]:
    """The hosts of the scope by name. Of a partition as `table` says, for the board may not have followed it yet."""
    if scope.partition is None:
        return [member.host.pk for member in roll_of(scope).members]
    pkey = PKey(scope.partition.pkey)
    held = table.keys_of_some([(guid, "CA", guid in table.sm_ports) for guid in by_port])
    hosts = {by_port[guid] for guid, keys in held.items() if pkey in keys}
    names = dict(
        ProbeHost.objects.usable().filter(server__subnet=scope.subnet_id).values_list("pk", "server__hostname")
    )
    return sorted(hosts & names.keys(), key=lambda host: natural(names[host]))


def _of_scope(scope: ProbeScope, rollout: Rollout, members: list[int], hosts: set[int]) -> list[RolloutComparison]:
    now = timezone.now()
    rows = []
    for sender, target in _pairs(scope, members, [host for host in members if host in hosts]):
        for profile in scope.profiles:
            rows.append(
                RolloutComparison(
                    rollout=rollout, scope=scope, sender_id=sender, target_id=target, profile=profile,
                    before=_last_before(scope, sender, target, profile, rollout), asked_at=now,
                )
            )  # fmt: skip
    return rows


def _pairs(scope: ProbeScope, members: list[int], hosts: list[int]) -> Iterable[Pair]:
    """For each touched host a few pairs: with peers it was measured with before, else with the first ones."""
    chosen: dict[Pair, None] = {}
    for host in hosts:
        known = (
            ProbePair.objects.filter(
                scope=scope, kind=Kind.RDMA, mode=scope.mode, profile=scope.profiles[0], sender=host
            )
            .filter(target__in=members)
            .order_by("-newest_at")
            .values_list("target", flat=True)[:PEERS]
        )
        pairs = [(host, peer) for peer in known] or first_peers(members, host, most=PEERS)
        chosen |= dict.fromkeys(pairs)
    return chosen


def _last_before(scope: ProbeScope, sender: int, target: int, profile: str, rollout: Rollout) -> ProbeRun | None:
    """The last measured run that ended before the rollout was asked for; None is a missing baseline, never guessed."""
    return (
        ProbeRun.objects.filter(
            scope=scope, sender=sender, target=target, profile=profile, kind=Kind.RDMA, mode=scope.mode,
            state=ProbeRun.State.DONE, finished_at__lt=rollout.requested_at,
        )
        .order_by("-finished_at")
        .first()
    )  # fmt: skip
