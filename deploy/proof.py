"""The proof: tables read behind a sweep barrier, compared with what the plan expects, and the verdict on them.

`read_behind_barrier` reaches the hosts; everything else here is pure (ground truth: read-back, 1).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Final

from deploy import second_reading
from deploy.log_lines import CountedLines, counted
from deploy.look import HostView, Look, ManagerHosts, told
from deploy.second_reading import SecondReading
from remote.errors import RemoteError, TablesMoved
from remote.manager_host import HostVerbs, ReloadMark, Settled
from subnet.errors import InvalidListing
from subnet.guid import GUID
from subnet.index import PortHistory, Prediction
from subnet.observed import ObservedFabric, parse_reading
from subnet.pkey import Membership, PKey, split_entry
from subnet.plan import diff
from subnet.readback import CensusProblem, ReadBack, census, compare
from subnet.table import PartitionTable

MOST_READINGS: Final = 5  # a fabric that is swept during each of them cannot be proven now
MOST_SENTENCES: Final = 3
LOG_GONE: Final = b"fabricui-host: the log before the rotation"  # the wrapper's own first line, log_since
# They stand among the hosts' names, which hold no blanks.
TABLES, LOG, SECOND = "the tables", "the log", "the second reading"
SECOND_S: Final = 10.0


class Unseen(Exception):
    """What the fabric holds could not be read; the message says why. Nothing is known, so nothing is restored."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a read-back should find: the table, the fabric before, the ports that may change and to what."""

    wanted: PartitionTable
    before: ObservedFabric = field(repr=False)
    affected: frozenset[GUID]
    predictions: Mapping[GUID, Prediction] = field(repr=False)

    @property
    def named_in_log(self) -> frozenset[GUID]:
        """The affected ports' GUIDs and their nodes': what an error line of OpenSM may name."""
        known = (self.before.ports.get(guid) for guid in self.affected)
        return self.affected | {port.node_guid for port in known if port is not None}


def expect(
    *,
    start: Sequence[PartitionTable],
    wanted: PartitionTable,
    before: ObservedFabric,
    histories: Mapping[GUID, PortHistory] | None = None,
) -> Expectation:
    """What to expect once the files hold `wanted`, when they may have held any of the tables `start` until then.

    `histories` are those of the process that reads `wanted`; without them a new key may land in any free slot.
    About 0.1 s for 4,000 ports.
    """
    plans = [diff(table, wanted, before, history=histories) for table in start]
    affected = frozenset(guid for plan in plans for guid in plan.affected)
    predictions = {
        guid: replace(prediction, new=prediction.acceptable)
        for plan in plans
        for guid, prediction in plan.predictions.items()
    }
    return Expectation(wanted=wanted, before=before, affected=affected, predictions=predictions)


def expect_back(*, passing: Sequence[PartitionTable], wanted: PartitionTable, before: ObservedFabric) -> Expectation:
    """What to expect once the files hold `wanted` again, when they may have held the tables `passing` meanwhile.

    A key that one of those tables took away may come back at another index: OpenSM need not remember the old one.
    """
    plain = expect(start=passing, wanted=wanted, before=before)
    masters = {sm.guid for sm in before.masters}
    ports = dict(before.ports)
    for guid in plain.affected & ports.keys():
        held = [table.keys_of(guid, ports[guid].node_type, is_self=guid in masters) for table in passing]
        stayed = {index: key for index, key in ports[guid].pkeys.items() if _stayed(key, held)}
        ports[guid] = replace(ports[guid], pkeys=stayed)
    thinned = expect(start=passing, wanted=wanted, before=replace(before, ports=ports))
    return replace(plain, predictions=thinned.predictions)


def _stayed(key: int, held: Sequence[Mapping[PKey, Membership]]) -> bool:
    pkey, _ = split_entry(key)
    return all(pkey in keys for keys in held)


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything that was read behind one barrier."""

    settled: Settled
    data: bytes = field(repr=False)
    fabric: ObservedFabric = field(repr=False)
    read_at: datetime
    hosts: Look
    log: bytes | None = field(repr=False)
    log_failure: str = ""
    second: SecondReading = field(default_factory=SecondReading)


def read_behind_barrier(
    hosts: ManagerHosts,
    *,
    master: HostVerbs,
    mark: ReloadMark,
    now: datetime,
    smps_per_s: int,
    deadline_s: float,
    timeout_s: float,
    read_twice: Callable[[], Mapping[GUID, int]] = dict,
    still_mine: Callable[[], None] = lambda: None,
) -> Reading:
    """Wait until the sweep after `mark` is over; then read every table from the master's host, its log, and all files.

    The ports that `read_twice` gives with their LIDs are read by another manager host at the same time, by one that
    answered lately where there is one. All of it is read again when another sweep rewrote the list meanwhile;
    `still_mine` is called before each reading, which takes minutes on a large fabric, to prolong the lease. Raises
    Unseen, and what `still_mine` raises.
    """
    for _ in range(MOST_READINGS):
        still_mine()
        other = hosts.second_reader(master=master.name)
        try:
            settled = master.barrier(mark, timeout_s=deadline_s)
        except RemoteError as error:
            raise Unseen(told(master.name, error)) from error
        asked = read_twice() if other is not None else {}
        calls: dict[str, Callable[[], object]] = {}
        if other is not None and asked:
            calls[SECOND] = partial(other.read_ports, asked, timeout_s=SECOND_S)
        answers = hosts.ask(
            calls
            | {
                TABLES: lambda: master.read_tables(topology="list", smps_per_s=smps_per_s, timeout_s=timeout_s),
                LOG: lambda: master.log_since(mark),
                **{name: host.read for name, host in hosts.hosts.items()},
            }
        )
        data = answers[TABLES]
        if isinstance(data, TablesMoved):
            continue
        if not isinstance(data, bytes):
            raise Unseen(told(master.name, data))
        try:
            fabric = parse_reading(data)
        except InvalidListing as error:
            raise Unseen(told(master.name, error)) from error
        if fabric.list_mtime_ns != settled.list_mtime_ns:
            continue  # the topology is of a later sweep than the one the barrier waited for
        told_by = "" if other is None else other.name
        second = second_reading.compared(told_by, answers.get(SECOND), fabric, master=master.name)
        return _reading(settled, data, fabric, answers, hosts=hosts, master=master.name, now=now, second=second)
    raise Unseen(
        f"Manager host {master.name}: the fabric was swept again during each of {MOST_READINGS} readings. Look for a "
        "link that goes up and down; it is read again by itself."
    )


def _reading(
    settled: Settled,
    data: bytes,
    fabric: ObservedFabric,
    answers: Mapping[str, object],
    *,
    hosts: ManagerHosts,
    master: str,
    now: datetime,
    second: SecondReading,
) -> Reading:
    """Put a reading together. Which SM is what was read from the fabric with the tables, so no host is asked for it."""
    roles = {sm.guid: sm.state for sm in fabric.sms}
    views = []
    for name, host in hosts.hosts.items():
        guid, answer = hosts.registered[name], answers[name]
        views.append(
            HostView(
                host,
                guid,
                file=answer if isinstance(answer, bytes) else None,
                failures=(answer,) if isinstance(answer, RemoteError) else (),
                seen_as=roles.get(guid, ""),
            )
        )
    log = answers[LOG]
    # The tables are the proof: a log that cannot be read is said, and blocks nothing.
    failure = "" if isinstance(log, bytes) else f"The log of manager host {master} was not read: {log}"
    if isinstance(log, bytes) and log.startswith(LOG_GONE):
        failure = f"Of the log of manager host {master} only what came after its rotation was read."
    return Reading(
        settled,
        data,
        fabric,
        now,
        Look(tuple(views)),
        log=log if isinstance(log, bytes) else None,
        log_failure=failure,
        second=second,
    )


class Verdict(StrEnum):
    """What a reading says of a rollout, from best to worst."""

    PROVEN = "PROVEN"
    OWED = "OWED"  # proven on the fabric; a standby's file or SM is not as it must be
    OPEN = "OPEN"  # read; nothing speaks against it, and an affected port is not proven or something else moved
    MISLED = "MISLED"  # some port follows another LID than the master's: a late sweep, or a hidden SM
    UNSEEN = "UNSEEN"  # what counts could not be read
    CONTRARY = "CONTRARY"  # the fabric, or the master's file, says otherwise
    FOREIGN_SM = "FOREIGN_SM"  # somebody else's SM is at work: no file can mend that


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict, the sentence behind it, and the evidence it was drawn from."""

    verdict: Verdict
    cause: str
    reading: Reading
    compared: ReadBack
    problems: tuple[CensusProblem, ...]
    lines: CountedLines
    fresh_mark: bool = False  # whether the next try must reload first: the log since this mark speaks against it


def judge(
    reading: Reading,
    expectation: Expectation,
    *,
    digest: str,
    number: int,
    master: str,
    registered: Mapping[str, GUID],
    excused: Collection[str] = (),
) -> Judgement:
    """Draw the verdict on revision `number`, whose bytes have `digest` and were reloaded on host `master`.

    `excused` are affected ports that a person lets be absent. The bytes behind `digest` were parsed strictly by the
    caller, so a file with that digest is one that parses.
    """
    compared = compare(
        wanted=expectation.wanted,
        before=expectation.before,
        after=reading.fabric,
        affected=expectation.affected,
        predictions=expectation.predictions,
    )
    problems = census(reading.fabric, registered.values())
    lines = counted(reading.log or b"", expectation.named_in_log)
    verdict, cause = _verdict(
        reading,
        compared,
        problems,
        lines,
        digest=digest,
        number=number,
        master=master,
        registered=registered,
        excused=excused,
    )
    return Judgement(
        verdict=verdict,
        cause=cause,
        reading=reading,
        compared=compared,
        problems=problems,
        lines=lines,
        fresh_mark=verdict is Verdict.OPEN and bool(lines.ports),
    )


def _verdict(
    reading: Reading,
    compared: ReadBack,
    problems: tuple[CensusProblem, ...],
    lines: CountedLines,
    *,
    digest: str,
    number: int,
    master: str,
    registered: Mapping[str, GUID],
    excused: Collection[str],
) -> tuple[Verdict, str]:
    """The first thing that stands against PROVEN, the gravest first."""
    views = {view.name: view for view in reading.hosts.views}
    masters = reading.fabric.masters
    foreign = [p for p in problems if p.kind in ("unregistered_sm", "two_masters")]
    if foreign:
        return Verdict.FOREIGN_SM, some([problem.sentence for problem in foreign])
    if not masters:
        return Verdict.UNSEEN, some([problem.sentence for problem in problems if problem.kind == "no_master"])
    if masters[0].guid != registered[master]:
        return Verdict.UNSEEN, (
            f"The master changed while the tables were read: {master} was reloaded, and port {masters[0].guid} is "
            "master now. The new master is read next."
        )
    if views[master].file is None:
        return Verdict.UNSEEN, views[master].failure
    if views[master].digest != digest:
        return Verdict.CONTRARY, (
            f"Manager host {master}: somebody wrote over its partition file after revision {number} was placed "
            f"(SHA-256 {views[master].digest[:12]}…). Find out who."
        )
    if compared.is_contrary:
        return Verdict.CONTRARY, some([d.sentence for d in compared.discrepancies if d.is_contrary])
    if lines.partition:
        return Verdict.CONTRARY, f"OpenSM on {master} refused its partition file: {lines.partition[0]}"
    misled = [problem.sentence for problem in problems if problem.kind == "wrong_master_lid"]
    if misled:
        return Verdict.MISLED, some(misled)
    open_points = [
        *reading.second.differ,
        *(discrepancy.sentence for discrepancy in compared.discrepancies),
        *(
            f"Port {guid} is {_state(compared, guid)}, so what it holds is not proven."
            for guid in compared.owed
            if guid not in excused or guid in reading.fabric.ports
        ),
        *(f"OpenSM on {master} reports an error about an affected port: {line}" for line in lines.ports),
    ]
    if open_points:
        return Verdict.OPEN, some(open_points)
    owed = [sentence for view in reading.hosts.views if view.name != master for sentence in _owes(view, digest)]
    if owed or any(problem.kind == "no_standby" for problem in problems):
        owed = owed or [problem.sentence for problem in problems if problem.kind == "no_standby"]
        return Verdict.OWED, some(owed)
    return Verdict.PROVEN, ""


def _owes(view: HostView, digest: str) -> list[str]:
    """What a standby still owes; an unproven standby can undo everything at the next takeover."""
    if view.failures:
        return [view.failure]
    if view.digest != digest:
        return [
            f"Manager host {view.name}: its partition file is not this revision (SHA-256 {view.digest[:12]}…); it is "
            "placed again by itself."
        ]
    if view.role != "STANDBY":
        is_what = f"is {view.role} and not standby" if view.role else "does not answer on the fabric"
        return [f"Manager host {view.name}: its SM {is_what}. Look at OpenSM there; start it if it does not run."]
    return []


def _state(compared: ReadBack, guid: GUID) -> str:
    verdict = compared.verdicts.get(guid)
    return verdict.value.lower() if verdict is not None else "not on the fabric"


def some(sentences: list[str]) -> str:
    """The first few sentences, and how many more there are."""
    more = len(sentences) - MOST_SENTENCES
    return " ".join(sentences[:MOST_SENTENCES]) + (f" (and {more} more)" if more > 0 else "")
