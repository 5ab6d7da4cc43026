"""What a rollout was told before it began, as values: the two tables, the tables before, and who is registered.

Read once when a worker takes a rollout up; the expensive part is worked out in a thread while the hosts are busy.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Self

from django.conf import settings

from deploy import drifting, evidence, files, putting_back, table_history, tables
from deploy.files import Standing
from deploy.look import HostView, ManagerHosts
from deploy.models import HostOutcome, Revision, Rollout
from deploy.proof import Expectation, Judgement, Unseen, expect, expect_back, judge, read_behind_barrier
from deploy.story import READ_TIMEOUT_S
from inventory.models import ManagerHost
from remote.manager_host import ReloadMark
from remote.watch_verbs import MOST_READ_PORTS
from subnet.census import where
from subnet.guid import GUID
from subnet.index import PortHistory
from subnet.observed import ObservedFabric
from subnet.partitions_conf import ParsedFile, parse_strict
from subnet.table import PartitionTable


@dataclass
class Terms:
    """The terms of one rollout. `accepted` are the digests that a host's file may have when it begins."""

    rollout: Rollout
    registered: Mapping[str, GUID]  # manager host → the port of its SM
    accepted: Mapping[str, int]  # digest → revision number
    known: Mapping[str, int]  # the same of every revision and every adopted file
    parent: Standing  # what goes back on contrary evidence
    left_over: tuple[Revision, ...]  # revisions that a person let go of while they stood on the hosts
    mends: bool  # whether the fabric may be other than the parent says, by a file that somebody put there
    threads: Executor = field(repr=False)
    strict: Future[ParsedFile] = field(repr=False)  # the revision's bytes, read by the strict parser

    @classmethod
    def of(cls, rollout: Rollout, *, threads: Executor) -> Self:
        """Read the terms of `rollout`: six queries."""
        hosts = ManagerHost.objects.filter(subnet=rollout.subnet_id).values_list("name", "port_guid")
        stuck = Rollout.objects.filter(parent=rollout.parent_id, state=Rollout.State.STUCK, released_at__isnull=False)
        left_over = tuple(
            Revision.objects.filter(pk__in=stuck.values("revision")).exclude(pk=rollout.revision_id).order_by("number")
        )
        parent = Standing.of(rollout.parent)
        taken_over = drifting.adopted_digests(rollout.subnet_id)
        return cls(
            rollout=rollout,
            registered={name: GUID(guid) for name, guid in hosts},
            accepted=taken_over
            | {parent.digest: parent.number}
            | {revision.digest: revision.number for revision in (rollout.revision, *left_over)},
            known=files.numbers_by_digest(rollout.subnet_id),
            parent=parent,
            left_over=left_over,
            mends=putting_back.is_put_back(rollout) or bool(taken_over),
            threads=threads,
            strict=threads.submit(parse_strict, bytes(rollout.revision.data)),
        )

    @cached_property
    def data(self) -> bytes:
        """The bytes to place. The strict parser has read them once more, for OpenSM would refuse nothing."""
        self.strict.result()
        return bytes(self.rollout.revision.data)

    @cached_property
    def is_adoption(self) -> bool:
        """Whether this rollout places the adopted table as it is, and so can change no port."""
        return self.parent.is_adopted and self.rollout.parent.table_digest == self.rollout.revision.table_digest

    @cached_property
    def sm_ports(self) -> frozenset[GUID]:
        """The ports that the revision makes full members of Default.

        An adoption leaves a standby's port limited where the hand-written file does: nothing is demanded of it.
        """
        named = frozenset(GUID(text) for text in self.rollout.revision.table["sm_ports"])
        return named | frozenset(self.registered.values()) if self.is_adoption else named

    def place(self, guid: str) -> str:
        """Where a port was plugged when the tables were read before, as the end of a sentence."""
        return where(tables.fabric(self.rollout.before).ports.get(GUID(guid)))

    def foreign_in_before(self) -> str:
        """The sentence for an SM that the tables before show and that is no manager host's; "" when there is none."""
        for row in self.rollout.before.census:
            if GUID(row["guid"]) not in self.registered.values():
                at = f" at leaf {row['leaf']} port {row['leaf_port']}" if row["leaf"] else ""
                return (
                    f"Port {row['guid']}{at} runs a subnet manager ({row['state']}, priority {row['priority']}) that "
                    "is not registered. Stop OpenSM on that host or take its port down at the leaf switch, take a new "
                    "look, then start the rollout again."
                )
        return ""

    def is_marked(self, mark: Mapping[str, Any] | None, master: HostView) -> bool:
        """Whether `mark` was taken from the very process that is the master's now."""
        process = master.identity.process if master.identity is not None else None
        return (
            bool(mark)
            and process is not None
            and mark is not None
            and (mark["host"], mark["pid"], mark["started"]) == (master.name, process.pid, process.started)
        )

    def read_and_judge(
        self,
        managers: ManagerHosts,
        *,
        mark: Mapping[str, Any],
        now: datetime,
        revision: Revision,
        still_mine: Callable[[], None],
    ) -> Judgement:
        """Read the fabric behind the barrier of `mark` and judge it by `revision`, the rollout's or its parent.

        `still_mine` prolongs the lease before each reading. Raises Unseen, and what `still_mine` raises.
        """
        forward = revision.pk == self.rollout.revision_id
        expectation = self._expectation(revision, mark=mark)
        self.strict.result()
        host = managers.hosts.get(mark.get("host", ""))
        if host is None:
            raise Unseen(f"Manager host {mark.get('host')} is registered no more. The present master is read next.")
        reading = read_behind_barrier(
            managers,
            master=host,
            mark=ReloadMark.from_json(dict(mark)),
            now=now,
            smps_per_s=settings.READ_SMPS_PER_S,
            deadline_s=settings.PROOF_DEADLINE_S,
            timeout_s=READ_TIMEOUT_S,
            read_twice=lambda: _some_with_lid(expectation.result()),
            still_mine=still_mine,
        )
        return judge(
            reading,
            expectation.result(),
            digest=revision.digest if forward else self.parent.digest,
            number=revision.number,
            master=host.name,
            registered=self.registered,
            excused=self._accepted.get("absent", ()),
        )

    @property
    def _accepted(self) -> Mapping[str, Any]:
        """What a person takes for granted, see `decisions.accept`."""
        return self.rollout.accepted or {}

    @property
    def without(self) -> tuple[str, ...]:
        """The standbys that it may go without when they cannot be staged."""
        return tuple((self.rollout.without or {}).get("hosts", ()))

    @cached_property
    def never_placed(self) -> frozenset[str]:
        """Those of them on which this rollout has placed nothing, so that nothing need be put back there."""
        if not self.without:
            return frozenset()
        untouched = HostOutcome.objects.filter(rollout=self.rollout, host__name__in=self.without, placed_at=None)
        return frozenset(untouched.values_list("host__name", flat=True))

    def found(self, judgement: Judgement) -> dict[str, Any]:
        """The evidence of a judgement as columns of the rollout and of its hosts' outcomes."""
        evidence_json = evidence.read_back(
            judgement, registered=self.registered.values(), before_at=self.rollout.before.read_at
        )
        return {"read_back": evidence_json, "outcomes": evidence.outcomes(judgement.reading.hosts)}

    def _histories(self, mark: Mapping[str, Any]) -> Mapping[GUID, PortHistory]:
        """What each port held under the very process that reads the revision; nothing when another one does."""
        rollout = self.rollout
        found = table_history.histories(rollout.subnet, until=rollout.before, besides=rollout)
        is_marked = found.process == tuple(mark.get(name) for name in ("host", "pid", "started"))
        return found.ports if is_marked else {}

    def _expectation(self, revision: Revision, *, mark: Mapping[str, Any]) -> Future[Expectation]:
        """Work out in a thread what to find, while the barrier waits."""
        rollout, before = self.rollout, self.rollout.before
        forward = revision.pk == rollout.revision_id
        others = (rollout.parent if forward else rollout.revision, *self.left_over)
        moved = self._accepted.get("moved", {})
        return self.threads.submit(
            _work_out,
            # A digest read back from a host stands for a file that parses: the revision's was read by `strict`.
            standing=None if forward else self.parent,
            wanted=revision.table,
            others=[other.table for other in others],
            before=lambda: _with_accepted(tables.fabric(before), moved),
            forward=forward,
            histories=self._histories(mark) if forward and not self.left_over and not self.mends else {},
            mends=self.mends,
            by_table_alone=putting_back.is_put_back(rollout),
        )


def _some_with_lid(expectation: Expectation) -> dict[GUID, int]:
    """Affected ports, spread over all of them, with the LID they had before: what a second manager host reads too."""
    known = {guid: expectation.before.ports.get(guid) for guid in sorted(expectation.affected)}
    lids = {guid: port.lid for guid, port in known.items() if port is not None and port.lid}
    step = -(-len(lids) // MOST_READ_PORTS) or 1
    return dict(list(lids.items())[::step])


def _with_accepted(before: ObservedFabric, moved: Mapping[str, Sequence[Any]]) -> ObservedFabric:
    """The tables before, with the LIDs and states that a person accepted since."""
    if not moved:
        return before
    ports = dict(before.ports)
    for text, (lid, state) in moved.items():
        port = ports.get(GUID(text))
        if port is not None:
            ports[port.guid] = replace(port, lid=lid, state=state)
    return replace(before, ports=ports)


def _work_out(
    *,
    standing: Standing | None,
    wanted: Mapping[str, Any],
    others: Sequence[Mapping[str, Any]],
    before: Callable[[], ObservedFabric],
    forward: bool,
    histories: Mapping[GUID, PortHistory],
    mends: bool,
    by_table_alone: bool,
) -> Expectation:
    if standing is not None:
        standing.require_sound()
    table = PartitionTable.from_json(wanted)
    tables_between = [PartitionTable.from_json(other) for other in others]
    if forward:
        found = expect(start=tables_between, wanted=table, before=before(), histories=histories)
    else:
        found = expect_back(passing=tables_between, wanted=table, before=before())
    return putting_back.widened(found, by_table_alone=by_table_alone) if mends else found
