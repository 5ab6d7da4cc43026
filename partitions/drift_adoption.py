"""Adopt drift: the differences of a hand-edited file become staged changes, as far as partitions can be changed so.

Staging asks the same rules as the board, so policy may refuse each of them with its reason. What a file can say and a
person cannot stage (keywords, flags, a P_Key that no partition has) is told and left. Nothing is sent; the rollout of
what was staged may overwrite the file that it was taken from.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from deploy import drifting, files, queries
from deploy.drift_models import Drift
from inventory.models import ManagerHost, Port, Server, Subnet
from partitions import staging
from partitions.doer import Doer, as_actor
from partitions.errors import AdoptionRefused, PartitionsError
from partitions.mirror import batches
from partitions.models import MembershipKind, Partition
from partitions.standing import Standing
from subnet.change import Change
from subnet.file_drift import FileDrift, explain_file
from subnet.guid import GUID
from subnet.pkey import Membership, PKey

type Way = tuple[Membership | None, Membership | None]


@dataclass(frozen=True, slots=True)
class DriftAdoption:
    """What became of each difference, as sentences: staged, refused by policy with the reason, or left."""

    staged: tuple[str, ...]
    refused: tuple[str, ...]
    left: tuple[str, ...]


def explain(drift: Drift) -> FileDrift:
    """What OpenSM on its host makes of the file of a FILE row, against the current revision.

    Raises AdoptionRefused when the file is not known, or nothing is current.
    """
    subnet = drift.subnet
    current = queries.current_revision(subnet)
    found = files.contents(subnet, [drift.facts.get("digest") or ""])
    host = ManagerHost.objects.filter(subnet=subnet, name=drift.key).first()
    if current is None or host is None:
        raise AdoptionRefused(f"Subnet {subnet} has no current revision, or no manager host {drift.key} any more.")
    if drift.facts.get("missing") or drift.facts.get("digest") not in found:
        raise AdoptionRefused(f"No bytes of the file on {drift.key} are kept: it is missing, or far too large.")
    observation = queries.latest_observation(subnet)
    ports = ManagerHost.objects.filter(subnet=subnet).values_list("port_guid", flat=True)
    servers = Port.objects.filter(subnet=subnet, hca__isnull=False).values_list("guid", "hca__server__hostname")
    return explain_file(
        current.partition_table(),
        found[drift.facts["digest"]],
        None if observation is None else queries.observed_fabric(observation),
        sm_port=GUID(host.port_guid),
        sm_ports=[GUID(guid) for guid in ports],
        labels={GUID(guid): hostname for guid, hostname in servers},
    )


@transaction.atomic
def adopt_drift(*, drift: Drift, actor: Doer, reason: str = "") -> DriftAdoption:
    """Stage what the file on a manager host says other than the current revision; nothing is sent.

    Each server is staged whole or not at all. Raises AdoptionRefused when OpenSM takes nothing of the file, when it is
    over, or when nothing of it can be staged; the message then says why.
    """
    row = Drift.objects.select_for_update().filter(pk=drift.pk, closed_at=None, kind=Drift.Kind.FILE).first()
    if row is None:
        raise AdoptionRefused("This difference is over by now. Look at the drift page again.")
    explained = explain(row)
    if explained.plan is None:
        raise AdoptionRefused(f"{explained.rejection or explained.unreadable} There is nothing to adopt: put back.")
    left = list(_left(explained))
    staged: list[str] = []
    refused: list[str] = []
    why = reason or f"Found in the partition file on {row.key}"
    for server, changes in _by_server(row.subnet, explained.plan.changes, left):
        try:
            with transaction.atomic():
                staged += _stage(server, changes, actor=actor, reason=why, left=left)
        except PartitionsError as refusal:
            refused.append(f"{server}: {refusal}")
    if not staged:
        sentences = [*refused, *left] or ["OpenSM reads the same out of this file as out of the current revision."]
        raise AdoptionRefused(" ".join(["Nothing of it can be staged.", *sentences[:5], "Put back instead."]))
    drifting.take_over(row, now=timezone.now())
    record(
        action=Action.DRIFT_ADOPT,
        actor=as_actor(actor),
        subject=drifting.subject_of(row),
        after={"host": row.key, "digest": row.facts["digest"], "staged": staged[:20], "refused": refused[:20],
               "left": left[:20]},
        reason=reason,
    )  # fmt: skip
    return DriftAdoption(tuple(staged), tuple(refused), tuple(left))


def _left(explained: FileDrift) -> Iterator[str]:
    """What stands in the file and cannot be staged, whatever policy says."""
    plan = explained.plan
    assert plan is not None  # noqa: S101  asked only with one
    for change in plan.partitions:
        if change.what == "created":
            yield f"Nobody has P_Key {change.pkey} ({change.name_after}): create the partition first, then adopt."
    for word in plan.keywords:
        yield f"Keyword {word.keyword} in {word.partition} ({word.pkey}) cannot be staged."
    for flag in plan.flags:
        yield f"Flag {flag.flag} of {flag.partition} ({flag.pkey}) cannot be staged."
    for mgid in plan.mgids:
        yield f"The multicast groups of {mgid.partition} ({mgid.pkey}) cannot be staged."
    if any(change.pkey.is_default for change in plan.changes):
        yield "Default's exceptions cannot be adopted: change Default on its own page."


def _by_server(
    subnet: Subnet, changes: tuple[Change, ...], left: list[str]
) -> Iterator[tuple[Server, dict[Partition, list[Change]]]]:
    """The changes that can be staged, by server and partition; what cannot is told in `left`."""
    rows = {pkey: row for pkey, row in Partition.objects.filter(subnet=subnet).by_pkey().items() if not row.retired_at}
    wanted = [change for change in changes if not change.pkey.is_default and change.pkey in rows]
    ports: dict[str, Port] = {}
    for batch in batches(sorted({str(change.guid) for change in wanted})):
        found = Port.objects.filter(subnet=subnet, guid__in=batch).select_related("hca__server")
        ports |= {port.guid: port for port in found}
    by_server: dict[Server, dict[Partition, list[Change]]] = defaultdict(lambda: defaultdict(list))
    for change in wanted:
        port = ports.get(change.guid)
        server = None if port is None else port.server
        if server is None:
            left.append(f"Port {change.guid} belongs to no server that has reported: it cannot be staged.")
        else:
            by_server[server][rows[PKey(change.pkey)]].append(change)
    yield from sorted(((server, dict(found)) for server, found in by_server.items()), key=lambda item: str(item[0]))


def _stage(
    server: Server, changes: dict[Partition, list[Change]], *, actor: Doer, reason: str, left: list[str]
) -> Iterator[str]:
    """Stage one server's changes by the board's own operations; a sentence each. Raises MoveRefused."""
    everything = len(Standing.of(server).ports)
    ways: dict[Partition, Way] = {}
    for partition, found in changes.items():
        kinds = {(change.from_membership, change.to_membership) for change in found}
        if len(found) != everything or len(kinds) != 1:
            left.append(
                f"Only {len(found)} of the {everything} ports of {server} change alike in {partition}: a server is "
                "staged whole. Change it by hand on the board, or put back."
            )
            return
        ways[partition] = next(iter(kinds))
    gone = [partition for partition, (_, after) in ways.items() if after is None]
    come = [(partition, after) for partition, (before, after) in ways.items() if before is None and after is not None]
    if len(gone) == 1 and len(come) == 1:
        (target, membership) = come[0]
        staging.stage_move(
            server=server, source=gone[0], target=target, actor=actor, membership=membership, reason=reason
        )
        yield f"{server} moves from {gone[0]} to {target}."
        return
    for partition in gone:
        staging.stage_move(server=server, source=partition, target=None, actor=actor, reason=reason)
        yield f"{server} leaves {partition}."
    for partition, membership in come:
        staging.stage_add(server=server, target=partition, actor=actor, membership=membership, reason=reason)
        yield f"{server} joins {partition}."
    for partition, (before, after) in ways.items():
        if before is not None and after is not None:
            staging.stage_membership(server=server, partition=partition, membership=after, actor=actor, reason=reason)
            yield f"{server} becomes {MembershipKind(after.value).label} in {partition}."
