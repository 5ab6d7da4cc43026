"""Which P_Key tables each port has held under the present master's OpenSM process: what index prediction needs.

Every finished observation leaves one row with the tables that changed, so that nobody reads the stored tables of all
observations again. A port's history is whole only if nothing can have been missed: OpenSM remembers every key it ever
placed (ADR 17). The rows are told apart from the story they tell: `_Look` to `_Tale` reach no database.
"""

import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Literal

from django.db.models import Q

from deploy import tables
from deploy.models import AdoptedFile, Observation, Rollout, TableChanges
from inventory.models import ManagerHost, Subnet
from subnet.guid import GUID
from subnet.index import PortHistory
from subnet.observed import ObservedFabric
from subnet.plan import diff

Process = tuple[str, int, int]  # manager host, PID, start
Seen = Mapping[str, int] | Literal["unread"] | None  # index as text → entry; None: the port was not there

MOST_LOOKS: Final = 400  # of a process that was looked at more often nothing is claimed
BASE_EVERY: Final = 50
EARLIER_LOOKS: Final = 50  # so far back freed indexes are told of
_ARMED: Final = {"ARMED", "ACTIVE"}  # the SM sets the keys before it arms the link


@dataclass(frozen=True, slots=True)
class Histories:
    """The history of every port under one OpenSM process; `process` None when it is not known which one is master."""

    process: Process | None = None
    ports: Mapping[GUID, PortHistory] = field(default_factory=dict, repr=False)


def keep(observation: Observation, *, fabric: ObservedFabric, processes: Mapping[str, Sequence[int]]) -> None:
    """Store which tables changed since the last observation; belongs into the transaction that stores `observation`.

    `processes` is host → (PID, start) of the OpenSM there, empty where none runs, without the hosts that were not
    asked. About 25 ms for 4,000 ports.
    """
    Subnet.objects.select_for_update(no_key=True).get(pk=observation.subnet_id)  # one row at a time says what changed
    rows = list(_rows(observation.subnet_id).order_by("-id")[:BASE_EVERY])
    rows = rows[: next((at + 1 for at, row in enumerate(rows) if row.is_base), 0)]
    state: dict[str, Seen] = {}
    for row in reversed(rows):
        state.update(unpacked(row.data))
    now = _seen(fabric)
    is_base = not rows or len(rows) >= BASE_EVERY
    changed = {guid: now.get(guid) for guid in {*state, *now} if is_base or state.get(guid) != now.get(guid)}
    TableChanges.objects.create(
        observation=observation,
        subnet_id=observation.subnet_id,
        master=_master(observation.subnet_id, fabric),
        processes={host: list(process) for host, process in processes.items()},
        is_base=is_base,
        data=zlib.compress(json.dumps(changed).encode(), tables.LEVEL),
    )


def histories(subnet: Subnet, *, until: Observation | None = None, besides: Rollout | None = None) -> Histories:
    """The history of every port up to an observation (default: the newest), under the process that was master then.

    `besides` is a rollout that runs now: what it has placed is what the caller wants to predict. Bounded by
    MOST_LOOKS rows; about 60 ms for 4,000 ports and 100 observations, and 50 µs for each port asked for.
    """
    rows = _rows(subnet.pk)
    if until is not None:
        rows = rows.filter(observation_id__lte=until.pk)
    newest = list(rows.select_related("observation").defer("data").order_by("-id")[:MOST_LOOKS])
    looks = [_look(row) for row in reversed(newest)]
    tale = _Tale(looks, is_cut=len(newest) == MOST_LOOKS)
    if tale.process is None:
        return Histories()
    began = newest[len(newest) - 1 - tale.first].observation.read_at
    rollouts = [
        rollout
        for rollout in Rollout.objects.filter(subnet=subnet)
        .filter(Q(finished_at__isnull=True) | Q(finished_at__gte=began))
        .select_related("revision", "parent", "before", "before__tables")
        if besides is None or rollout.pk != besides.pk
    ]
    is_whole = tale.begins_whole and all(
        earlier.digest and (earlier.digest == later.digest or _was_ours(earlier, later, rollouts))
        for earlier, later in pairwise(looks[tale.first :])
    )
    missed = _missed(rollouts) if is_whole else frozenset()
    base = rows.filter(is_base=True, pk__lte=looks[max(0, tale.first - EARLIER_LOOKS)].row).order_by("-id").first()
    wanted = rows.filter(pk__gte=base.pk if base else 0, pk__lte=looks[-1].row).order_by("id").values_list("id", "data")
    changes = {pk: unpacked(data) for pk, data in wanted}
    ports = _Ports(tale.steps(changes), is_whole=is_whole, missed=missed)
    return Histories(process=tale.process, ports=ports)


@dataclass(frozen=True, slots=True)
class _Look:
    """One row without its tables. `digests` are of each host's file, `digest` of the master's, "" when unknown."""

    row: int
    observation: int
    master: str
    processes: Mapping[str, Sequence[int]]
    digests: Mapping[str, str]

    @property
    def digest(self) -> str:
        return self.digests.get(self.master, "")

    @property
    def process(self) -> Process | None:
        """The master's process; None when it is not known."""
        found = self.processes.get(self.master)
        return (self.master, found[0], found[1]) if found else None


class _Tale:
    """The looks in order, as the story of the process that is master in the last one."""

    def __init__(self, looks: Sequence[_Look], *, is_cut: bool) -> None:
        self.looks = looks
        self.process = looks[-1].process if looks else None
        self.first = next((at for at, look in enumerate(looks) if look.process == self.process), 0)
        self._is_cut = is_cut

    @property
    def begins_whole(self) -> bool:
        """Whether the process began between two looks, and its first tables came of the file that stood there before.

        A standby that was never seen as master counts as one that never was.
        """
        if self.process is None or self._is_cut or self.first == 0:
            return False
        host, *identity = self.process
        met = next(at for at, look in enumerate(self.looks) if list(look.processes.get(host, ())) == identity)
        other_before = any(host in look.processes for look in self.looks[:met])
        before, first = self.looks[self.first - 1], self.looks[self.first]
        files = {before.digest, before.digests.get(host, ""), first.digest}
        return other_before and len(files) == 1 and "" not in files

    def steps(self, changes: Mapping[int, Mapping[str, Seen]]) -> list["_Step"]:
        """What the rows `changes` (row → its tables) are to the process, oldest first."""
        first = self.looks[self.first].row
        rows = {look.row: (look, before) for before, look in zip((None, *self.looks), self.looks, strict=False)}
        steps = []
        for row in sorted(changes):
            look, before = rows.get(row, (None, None))
            is_own = look is not None and look.process == self.process
            steps.append(
                _Step(
                    changes=changes[row],
                    is_kept=row >= first,
                    is_own=is_own,
                    is_same_file=look is not None and before is not None and look.digest == before.digest,
                    is_turn=row >= first and is_own and before is not None and before.process != self.process,
                )
            )
        return steps


@dataclass(frozen=True, slots=True)
class _Step:
    """One row as it is to the process: `is_kept` since it was first master, `is_turn` when it became so (again)."""

    changes: Mapping[str, Seen]
    is_kept: bool
    is_own: bool
    is_same_file: bool
    is_turn: bool


class _Ports(Mapping[GUID, PortHistory]):
    """The history of each port, told when it is asked for: a plan asks for few of many."""

    def __init__(self, steps: Sequence[_Step], *, is_whole: bool, missed: Collection[GUID]) -> None:
        self._steps = steps
        self._is_whole = is_whole
        self._missed = missed

    def __getitem__(self, guid: GUID) -> PortHistory:
        port = _Port()
        for step in self._steps:
            if guid in step.changes:
                port.see(step.changes[guid], step)
            if step.is_turn:
                port.sweep_again()
        if not port.tables:
            raise KeyError(guid)
        return port.history(is_whole=self._is_whole and guid not in self._missed)

    def __iter__(self) -> Iterator[GUID]:
        known = {guid for step in self._steps for guid in step.changes}
        return (GUID(guid) for guid in sorted(known) if GUID(guid) in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Port:
    """One port while the rows are gone through."""

    __slots__ = ("by_others", "earlier", "is_sure", "last", "tables")

    def __init__(self) -> None:
        self.tables: list[Mapping[int, int]] = []
        self.by_others: set[int] = set()
        self.earlier: list[Mapping[int, int]] = []
        self.last: Mapping[int, int] | None = None
        self.is_sure = True

    def see(self, seen: Seen, step: _Step) -> None:
        """Take in what one look found of the port."""
        if seen == "unread":
            self.is_sure = False
            return
        if seen is None:
            # The master forgets a port that is gone, and meets it anew when it is back; one that stands by does not.
            self.earlier += self.tables
            self.is_sure = step.is_own or not self.tables
            self.tables, self.by_others, self.last = [], set(), None
            return
        table = {int(index): number for index, number in seen.items()}
        if table == self.last:
            return
        self.last = table
        if not step.is_kept:
            self.earlier.append(table)
            return
        if not self.tables and not step.is_same_file:
            self.is_sure = False  # it came back, or was first seen, while the file changed
        if not step.is_own:
            self.by_others.add(len(self.tables))
        self.tables.append(table)

    def sweep_again(self) -> None:
        """The process is master (again) and has swept what it found."""
        if self.last is not None and (not self.tables or len(self.tables) - 1 in self.by_others):
            self.tables.append(self.last)

    def history(self, *, is_whole: bool) -> PortHistory:
        return PortHistory(
            tables=tuple(self.tables),
            is_whole=is_whole and self.is_sure,
            by_others=frozenset(self.by_others),
            earlier=tuple(self.earlier),
        )


def _rows(subnet_id: int) -> Any:
    return TableChanges.objects.filter(subnet_id=subnet_id)


def _look(row: TableChanges) -> _Look:
    digests = {manager["host"]: manager["digest"] or "" for manager in row.observation.managers}
    return _Look(row.pk, row.observation_id, row.master, row.processes, digests)


def _was_ours(earlier: _Look, later: _Look, rollouts: Iterable[Rollout]) -> bool:
    """Whether one rollout changed the master's file between two looks: the later is its proof, or it was not proven.

    The ports of one that was not proven are told by `_missed`.
    """
    files = {earlier.digest, later.digest}
    return any(
        files == {rollout.revision.digest, rollout.parent.digest}
        or (files == {rollout.revision.digest, earlier.digest} and _is_adopted(rollout, earlier.digest))
        for rollout in rollouts
        if rollout.state != Rollout.State.PROVEN or rollout.after_id == later.observation
    )


def _is_adopted(rollout: Rollout, digest: str) -> bool:
    """Whether the file with this digest is what was adopted as the rollout's parent."""
    return AdoptedFile.objects.filter(revision_id=rollout.parent_id, digest=digest).exists()


def _missed(rollouts: Iterable[Rollout]) -> frozenset[GUID]:
    """The ports of every revision that was placed and not proven: they may have held tables that nobody saw."""
    missed: set[GUID] = set()
    for rollout in rollouts:
        if rollout.state == Rollout.State.PROVEN or not rollout.outcomes.filter(placed_at__isnull=False).exists():
            continue
        before, fabric = rollout.parent.partition_table(), tables.fabric(rollout.before)
        missed |= diff(before, rollout.revision.partition_table(), fabric).affected
    return frozenset(missed)


def _master(subnet_id: int, fabric: ObservedFabric) -> str:
    """The manager host whose SM is the only master; "" when there is another one, none, or more."""
    if len(fabric.masters) != 1:
        return ""
    hosts = ManagerHost.objects.filter(subnet_id=subnet_id, port_guid=fabric.masters[0].guid)
    return hosts.values_list("name", flat=True).first() or ""


def _seen(fabric: ObservedFabric) -> dict[str, Seen]:
    return dict(_entries(fabric))


def _entries(fabric: ObservedFabric) -> Iterator[tuple[str, Seen]]:
    for guid, port in fabric.ports.items():
        if not port.is_read:
            yield guid, "unread"
        elif port.state in _ARMED:
            yield guid, {str(index): number for index, number in port.pkeys.items()}
        else:
            yield guid, None


def unpacked(data: bytes) -> dict[str, Seen]:
    """What `keep` stored of one look: port GUID → what it found there."""
    changes: dict[str, Seen] = json.loads(zlib.decompress(data))
    return changes
