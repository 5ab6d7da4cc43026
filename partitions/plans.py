"""Draw up a plan: what a selection of staged changes does to the current revision, to each file and each port.

A plan is drawn anew each time it is looked at; nothing is stored. Its digest names what the person looked at, so
that the rollout can tell whether it is still that.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from django.db.models import Max

from deploy.files import Standing
from deploy.models import Observation, Revision
from deploy.queries import current_revision, latest_observation, observed_fabric, port_histories
from inventory.models import ManagerHost, Server, Subnet
from partitions import handover, mirror, quotas, refusals
from partitions.desired import wanted_table
from partitions.errors import NoRevision
from partitions.handover import Waiting
from partitions.models import Replacement, StagedChange, StagedDefault
from partitions.ownership import unconfirmed
from partitions.replacement import without_their_replacement
from partitions.selection import Selection
from people.models import User
from subnet import partitions_conf, policy
from subnet.guid import GUID
from subnet.observed import ObservedFabric
from subnet.plan import DefaultChange, Plan, diff, unified_diff
from subnet.policy import Limits, Violation
from subnet.table import PartitionTable

PART = 16  # hex digits of each part of a plan's digest
ASSUMED_CAPACITY = 32  # P_Keys a port is sure to hold when nobody has read how many (ground truth: OpenSM, 5)


@dataclass(frozen=True, slots=True)
class FileChange:
    """The file of one manager host: what stands in it, as far as was read, and what will."""

    host: str
    before: bytes | None  # None: it holds bytes that are no revision of ours, or was never read
    diff: str  # unified; empty when `before` is None
    note: str  # a sentence when the file is not what it should be now; else empty


@dataclass(frozen=True)
class DrawnPlan:
    """All that the plan page shows and the rollout needs."""

    subnet: Subnet
    selection: Selection
    changes: tuple[StagedChange, ...]  # those that go into the revision
    waiting: tuple[Waiting, ...]  # selected too, and left for a later one: second halves of moves between tenants
    default: StagedDefault | None
    replaced: tuple[Replacement, ...]  # ports that have another GUID since their HCA was replaced
    parent: Revision
    observation: Observation | None
    current: PartitionTable
    table: PartitionTable
    number: int  # of the revision that this will be
    data: bytes  # its bytes
    plan: Plan
    violations: tuple[Violation, ...]
    managers: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether no port's P_Key table would change."""
        return self.plan.is_empty

    @property
    def is_idle(self) -> bool:
        """Whether nothing that people staged would go out with it."""
        return self.is_empty and not self.changes and self.default is None and not self.replaced

    @property
    def refusals(self) -> tuple[Violation, ...]:
        """The violations that stop it."""
        return tuple(violation for violation in self.violations if violation.severity == "refuse")

    @cached_property
    def digest(self) -> str:
        """Hex digits that name what the person looks at: one part a question, so that a stale one says what changed."""
        return "".join(self._parts().values())

    def differs_in(self, digest: str) -> frozenset[str]:
        """In which of parent, changes, table, observation and ports a plan with this digest differs from this one.

        *ports* is what reaches them: each change, and each affected port's table with its prediction.
        """
        parts = self._parts()
        return frozenset(name for at, name in enumerate(parts) if digest[at * PART : (at + 1) * PART] != parts[name])

    def stands_on(self, digest: str, revision: Revision) -> bool:
        """Whether the plan with this digest was drawn on `revision`."""
        at = list(self._parts()).index("parent") * PART
        return digest[at : at + PART] == _part(revision.digest)

    def _parts(self) -> dict[str, str]:
        selected = (*self.changes, *(waiting.change for waiting in self.waiting))
        changes = sorted((change.pk, change.kind_from or "", change.kind_to or "") for change in selected)
        going = sorted(change.pk for change in self.changes)
        default = None if self.default is None else (self.default.pk, self.default.at.isoformat())
        return {
            "parent": _part(self.parent.digest),
            "changes": _part([changes, going, default, sorted(row.pk for row in self.replaced)]),
            "table": _part(partitions_conf.table_digest(self.table)),
            "observation": _part(None if self.observation is None else self.observation.public_id),
            "ports": _part(self.plan.digest),
        }

    @cached_property
    def servers(self) -> tuple[Server, ...]:
        """The servers whose ports are in the selection, by hostname."""
        servers = {change.port.hca.server for change in self.changes if change.port.hca is not None}
        return tuple(sorted(servers, key=lambda server: server.hostname))

    @cached_property
    def people(self) -> tuple[str, ...]:
        """Whose changes these are."""
        people = {str(change.by) for change in self.changes} | {str(row.by) for row in self.replaced}
        return tuple(sorted(people if self.default is None else people | {str(self.default.by)}))

    @property
    def by_hand(self) -> int:
        """The manual actions that a person would need for the same."""
        return self.plan.by_hand(len(self.managers))

    @cached_property
    def files(self) -> tuple[FileChange, ...]:
        """What happens to each manager host's file. One query for the bytes that were read there."""
        return tuple(_files(self))

    @property
    def sentence(self) -> str:
        """The plan in one sentence for somebody who knows no P_Keys."""
        if self.is_empty:
            nothing = "Nothing would change on the fabric."
            return f"{nothing} {self._waits}" if self.waiting and not self.changes else nothing
        ports = len(self.plan.affected)
        change = {0: "no port changes its P_Keys", 1: "1 port changes its P_Keys"}.get(
            ports, f"{ports} ports change their P_Keys"
        )
        moves = self._moves
        what = [*([moves] if moves else []), *self._replacing, *_of_default(self.plan.default)]
        if self._replacing and not moves:
            return f"{_listed(what)}: {change}."
        if not moves:
            found = self.plan.found
            settings = len(
                {k.pkey for k in found.keywords} | {f.pkey for f in found.flags} | {m.pkey for m in found.mgids}
            )
            what = what or [f"what {settings} partition{'' if settings == 1 else 's'} can do changes"]
            return f"No server moves, but {' and '.join(what)}: {change}."
        rest = "" if self.plan.keywords else f", {_THE_REST}"
        return f"{_listed(what)}: {change}{rest}."

    @property
    def _replacing(self) -> list[str]:
        """Whose HCA was replaced, as at most one part of the sentence."""
        if not self.replaced:
            return []
        servers = sorted({str(row.port.server or row.port) for row in self.replaced})
        who = servers[0] if len(servers) == 1 else f"{len(servers)} servers"
        ports = len(self.replaced)
        keeps = "1 port keeps its partitions" if ports == 1 else f"{ports} ports keep their partitions"
        return [f"{who} {'has' if len(servers) == 1 else 'have'} another HCA, and {keeps} under a new GUID"]

    @property
    def _moves(self) -> str:
        """Who moves, and where; empty when nobody does."""
        ways = _ways(self.changes)
        servers = len(self.servers)
        loose = len({row.port_id for row in self.changes if row.port.hca is None})
        who = f"{self.servers[0]}" if servers == 1 else f"{servers} servers" if servers else ""
        if loose and who:
            who = f"{who} and {loose} port{'' if loose == 1 else 's'} that no server has reported"
        elif loose:
            who = f"{loose} port{'' if loose == 1 else 's'} that no server has reported"
        if not who:
            return ""
        if len(ways) > 1:
            return f"{who} change in {len({row.partition_id for row in self.changes})} partitions"
        return f"{who} moves {ways[0]}" if servers + loose == 1 else f"{who} move {ways[0]}"

    @property
    def _waits(self) -> str:
        servers = sorted({waiting.server.hostname for waiting in self.waiting})
        who = f"{servers[0]} waits" if len(servers) == 1 else f"{len(servers)} servers wait"
        return f"{who} to be marked clean before joining anything new."


def draw_up_plan(
    *, subnet: Subnet, selection: Selection, user: User, observation: Observation | None = None
) -> DrawnPlan:
    """Draw the plan of `selection` on what is current now; `observation` is the latest finished one by default.

    Reads rows only; nothing is recorded. Raises NoRevision.
    """
    parent = current_revision(subnet)
    if parent is None:
        raise NoRevision(
            f"Subnet {subnet} has no first revision yet. Record what stands on its manager hosts before you plan."
        )
    looked = latest_observation(subnet) if observation is None else observation
    if looked is not None and looked.state != Observation.State.DONE:
        looked = None
    fabric = None if looked is None else observed_fabric(looked)
    histories = None if looked is None else port_histories(subnet, until=looked)
    selected = tuple(selection.of(subnet=subnet, user=user).whole().order_by("pk"))
    current = parent.partition_table()
    changes, waiting = handover.split(selected, current)
    default = selection.default(subnet=subnet, user=user)
    replaced = tuple(
        selection.replacements(subnet=subnet, user=user).select_related("port__hca__server", "by").order_by("pk")
    )
    table = wanted_table(subnet=subnet, current=current, changes=changes, default=default, replaced=replaced)
    plan = diff(current, table, fabric, history=histories)
    number = (Revision.objects.filter(subnet=subnet).aggregate(newest=Max("number"))["newest"] or 0) + 1
    header = partitions_conf.Header(
        subnet=subnet.name, revision=number, parent=parent.digest, layout=partitions_conf.NEWEST
    )
    return DrawnPlan(
        subnet=subnet,
        selection=selection,
        changes=changes,
        waiting=waiting,
        default=default,
        replaced=replaced,
        parent=parent,
        observation=looked,
        current=current,
        table=table,
        number=number,
        data=partitions_conf.render(table, header),
        plan=plan,
        violations=(
            *_each_once(
                policy.check(table, limits(fabric, table), sm_ports_registered=table.sm_ports, standing=current),
                handover.overtaking(plan, current, table),
            ),
            *_left_behind(selected, changes, current),
            *_into_retired(changes),
            *unconfirmed(changes),
            *without_their_replacement(changes, replaced),
            *quotas.too_many(changes, table, current, subnet),
        ),
        managers=tuple(ManagerHost.objects.filter(subnet=subnet).order_by("name").values_list("name", flat=True)),
    )


def _each_once(first: Iterable[Violation], then: Iterable[Violation]) -> Iterable[Violation]:
    """All of `first`, and what `then` adds: the table alone shows some of what the rows of servers show."""
    told = set()
    for violation in first:
        told.add((violation.rule, violation.where))
        yield violation
    for violation in then:
        if (violation.rule, str(violation.where)) not in told:
            yield violation


def limits(fabric: ObservedFabric | None, table: PartitionTable) -> Limits:
    """How many P_Keys each port holds, as read; a careful guess for the ports that were not."""
    if fabric is None:
        return Limits(capacity=ASSUMED_CAPACITY)
    capacity: dict[GUID, int] = dict.fromkeys(table.by_port(), ASSUMED_CAPACITY)
    capacity |= {guid: reading.capacity for guid, reading in fabric.end_ports.items()}
    return Limits(capacity=capacity)


def _left_behind(
    selected: Iterable[StagedChange], going: Iterable[StagedChange], current: PartitionTable
) -> Iterable[Violation]:
    """A port goes out with all that is staged on it or not at all: half a move would leave it nowhere.

    Only what waits for its server to be clean is left by rights. One query, two when something was left.
    """
    going = tuple(going)
    ports = {change.port_id for change in going}
    taken = {change.pk for change in selected}
    rows: list[StagedChange] = []
    for batch in mirror.batches(sorted(ports)):
        ids = set(StagedChange.objects.filter(port__in=batch).values_list("pk", flat=True)) - taken
        rows += StagedChange.objects.filter(pk__in=ids).whole().order_by("-at") if ids else ()
    # Beside what goes, because a server that leaves by this plan takes nothing more for now.
    beside, _ = handover.split([*rows, *going], current) if rows else ((), ())
    left = [change for change in beside if change.pk not in taken]
    told: set[str] = set()
    for change in left:
        server = change.port if change.port.hca is None else change.port.hca.server
        if str(server) in told:
            continue
        told.add(str(server))
        yield Violation(
            rule="not_selected",
            severity="refuse",
            where=str(change.port.guid),
            sentence=f"{change.by} has also staged {server} {refusals.way([change])} at "
            f"{refusals.moment(change.at)}, and that is not in this selection. Roll out all changes, or wait until "
            f"{change.by} has rolled out or discarded it.",
        )


def _into_retired(changes: Iterable[StagedChange]) -> Iterable[Violation]:
    """Nothing joins a retired partition: by its P_Key the port would land in whichever partition has that now."""
    for change in changes:
        if change.kind_to is not None and change.partition.retired_at is not None:
            yield Violation(
                rule="retired",
                severity="refuse",
                where=str(change.port.guid),
                sentence=f"Port {change.port} is staged into {change.partition.name}, which was retired at "
                f"{refusals.moment(change.partition.retired_at)}. Discard that change.",
            )


def _part(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:PART]


def _files(drawn: DrawnPlan) -> Iterable[FileChange]:
    seen = {} if drawn.observation is None else {item["host"]: item for item in drawn.observation.managers}
    digests = {item.get("digest") for item in seen.values()}
    known: dict[str, bytes] = {
        digest: bytes(data)
        for digest, data in Revision.objects.filter(subnet=drawn.subnet, digest__in=digests - {None}).values_list(
            "digest", "data"
        )
    }
    for host in drawn.managers:
        item = seen.get(host)
        if item is None:
            before, note = bytes(drawn.parent.data), f"The file of {host} was not read; this is how it should be."
        elif item.get("error"):
            before, note = None, f"The file of {host} could not be read: {item['error']}"
        elif item["digest"] not in known:
            before, note = None, _unknown(host, item["digest"], drawn.parent)
        else:
            before, note = known[item["digest"]], ""
            if item["digest"] != drawn.parent.digest:
                note = f"The file of {host} is not the current one. Roll the current revision out there first."
        yield FileChange(host, before, "" if before is None else _shown(before, drawn.data, host), note)


def _unknown(host: str, digest: str, parent: Revision) -> str:
    """What to say of a file that is none of our revisions: the adopted one must be placed in our words first."""
    standing = Standing.of(parent)
    if standing.is_adopted and digest == standing.digest:
        return f"The file of {host} is {standing.words}. Place it in FabricUI's words first, on the adoption page."
    return f"The file of {host} is none of FabricUI's revisions. Look at it before it is replaced."


def _shown(before: bytes, after: bytes, host: str) -> str:
    """The change as people know it from `diff -u`, without the lines that only change their place.

    Earlier revisions stand in another order (ADR 16). They are shown in the new one, so that the diff says what
    changes and not that everything has moved.
    """
    header = partitions_conf.Header.of(before)
    if header.layout != partitions_conf.NEWEST:
        table = partitions_conf.parse_strict(before).table
        before = partitions_conf.render(table, replace(header, layout=partitions_conf.NEWEST))
    return unified_diff(before, after, host)


_THE_REST: Final = "and every other port keeps what it has"


def _listed(what: Sequence[str]) -> str:
    """What happens, one after the other; each part by itself, as pages translate them."""
    return ", ".join([*what[:1], *(f"and {part}" for part in what[1:])])


def _of_default(change: DefaultChange | None) -> list[str]:
    """What becomes of Default in words for somebody who knows no P_Keys; nothing when it says the same."""
    if change is None or not change.reaches_ports:
        return []
    if change.before == change.after:
        return ["the manager hosts have changed"]
    verb = "closes" if change.closes else "opens" if change.opens else "changes"
    return [f"Default, everybody's partition, {verb}"]


def _ways(changes: Iterable[StagedChange]) -> list[str]:
    """The different ways of the servers, and of the ports without one, in words, each once."""
    by_place: dict[tuple[str, int], list[StagedChange]] = defaultdict(list)
    for change in changes:
        place = ("port", change.port_id) if change.port.hca is None else ("server", change.port.hca.server_id)
        by_place[place].append(change)
    return sorted({refusals.way(rows) for rows in by_place.values()})
