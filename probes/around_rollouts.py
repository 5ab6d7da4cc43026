"""Before and after: a rollout that touched a pair has it probed again, and both results stand side by side.

A follower of the trail: at least once and possibly late, so it asks the rows what is so and writes each comparison
once. It only queues the wish; the next tick plans it before everything but a person's own wish.
"""

from collections.abc import Iterable
from typing import Final

from django.utils import timezone

from audit.actions import Action
from audit.models import Event
from deploy.models import Rollout
from partitions.mirror import batches
from probes.members import natural, roll_of
from probes.models import ProbeHost, ProbePair, ProbeRun, ProbeScope, RolloutComparison
from probes.pairing import Pair
from probes.schedule import first_peers
from probes.terms import Kind
from subnet.table import PartitionTable

FOLLOWED: Final = frozenset({Action.ROLLOUT_PROVEN, Action.ROLLOUT_DEGRADED, Action.ROLLOUT_RESTORED})
PEERS: Final = 3  # of each touched host in each scope
MOST: Final = 200  # comparisons of one rollout; a rollout of a whole hall is sampled


def follow(event: Event) -> None:
    """Ask for comparisons around the rollout that the event is about; the follower's function."""
    rollout = Rollout.objects.select_related("revision", "parent", "subnet").filter(public_id=event.subject_key).first()
    if rollout is None or RolloutComparison.objects.filter(rollout=rollout).exists():
        return
    guids = touched(rollout.parent.partition_table(), rollout.revision.partition_table())
    hosts: set[int] = set()
    for batch in batches(sorted(guids)):
        found = ProbeHost.objects.usable().filter(server__hcas__ports__guid__in=batch)
        hosts |= set(found.values_list("pk", flat=True))
    if not hosts:
        return
    is_back = rollout.state == Rollout.State.RESTORED
    table = (rollout.parent if is_back else rollout.revision).partition_table()
    rows: list[RolloutComparison] = []
    for scope in ProbeScope.objects.named().filter(subnet=rollout.subnet, is_enabled=True).order_by("pk"):
        rows += _of_scope(scope, rollout, _members(scope, table), hosts)
    RolloutComparison.objects.bulk_create(rows[:MOST], batch_size=200)


def touched(before: PartitionTable, after: PartitionTable) -> set[str]:
    """The port GUIDs whose explicit P_Keys differ between the two tables."""
    had, has = before.by_port(), after.by_port()
    return {str(guid) for guid in had.keys() | has.keys() if had.get(guid) != has.get(guid)}


def _members(scope: ProbeScope, table: PartitionTable) -> list[int]:
    """The hosts of the scope by name. Of a partition as `table` says, for the board may not have followed it yet."""
    if scope.partition is None:
        return [member.host.pk for member in roll_of(scope).members]
    pkey = scope.partition.pkey
    guids = [str(member.guid) for one in table.partitions if int(one.pkey) == pkey for member in one.members]
    found: dict[int, str] = {}
    for batch in batches(guids):
        rows = ProbeHost.objects.usable().filter(server__hcas__ports__guid__in=batch)
        found |= dict(rows.values_list("pk", "server__hostname"))
    return sorted(found, key=lambda host: natural(found[host]))


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
