"""The control-plane check: the SA refuses a path between strangers, and gives the same asker paths that exist.

Made by the worker of queue `observe`, the only one that reaches manager hosts. It proves the SM's view and nothing
else: what switches and HCAs do with a packet only an attempt shows.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone

from deploy.models import RUNNING, Fence
from inventory.models import ManagerHost, Subnet
from probes import isolation
from probes.models import IsolationCheck
from probes.operations.isolation import give_back, not_run, store
from probes.strangers import Tenancy
from probes.verdict import Isolation, Judged, Path, judge_path
from remote.errors import RemoteError
from remote.path_record import MOST_PAIRS, Answer, PathAnswer, PathAnswers, PathVerbs
from subnet.guid import GUID

AT_ONCE: Final = 64  # checks of one task
CONTROLS_A_PORT: Final = 2  # from the asker, and to a peer; both before and after
TIMEOUT_S: Final = 40.0
TAKES_AT_MOST: Final = timedelta(minutes=10)
State = IsolationCheck.State

type Connect = Callable[[Subnet], AbstractContextManager[Sequence[PathVerbs]]]
_PATHS: Final = {Answer.FOUND: Path.FOUND, Answer.REFUSED: Path.REFUSED, Answer.UNANSWERED: Path.UNANSWERED}


@dataclass(frozen=True, slots=True)
class Told:
    """Who was asked, and all answers of one call: the controls, what was asked, the controls again."""

    host: str
    answers: PathAnswers
    failures: tuple[str, ...] = ()


def run(*, subnet_id: int, connect: Connect, clock: Callable[[], datetime] = timezone.now) -> int:
    """Make the waiting control-plane checks of a subnet; return how many were given a verdict.

    Nothing happens while a rollout runs: the checks wait. If one began meanwhile, what was heard is thrown away.
    """
    subnet = Subnet.objects.get(pk=subnet_id)
    known = isolation.tenancy_now(subnet)
    if known is None or _is_rolling_out(subnet):
        return 0
    tenancy, generation = known
    rows = _claim(subnet, clock())
    if not rows:
        return 0
    registered = {row.name: GUID(str(row.port_guid)) for row in ManagerHost.objects.filter(subnet=subnet)}
    done = 0
    with connect(subnet) as hosts:
        for some in calls(rows):
            done += _some(some, tenancy, hosts, registered, subnet=subnet, generation=generation, clock=clock)
    return done


def calls(rows: Sequence[IsolationCheck]) -> Iterator[list[IsolationCheck]]:
    """The rows in portions that fit into one call with all their controls; both directions of a pair share theirs."""
    some: list[IsolationCheck] = []
    ports: set[str] = set()
    for row in rows:
        wanted = ports | {row.sender_guid, row.target_guid}
        if some and len(some) + 1 + 2 * CONTROLS_A_PORT * len(wanted) > MOST_PAIRS:
            yield some
            some, wanted = [], {row.sender_guid, row.target_guid}
        some, ports = [*some, row], wanted
    if some:
        yield some


def _some(
    rows: list[IsolationCheck],
    tenancy: Tenancy,
    hosts: Sequence[PathVerbs],
    registered: dict[str, GUID],
    *,
    subnet: Subnet,
    generation: int,
    clock: Callable[[], datetime],
) -> int:
    asked = []
    for row in rows:
        if tenancy.are_strangers(GUID(row.sender_guid), GUID(row.target_guid)):
            asked.append(row)
        else:
            not_run(row, sentence="The two may talk by now, or neither is a tenant’s any more.", now=clock())
    if not asked:
        return 0
    pairs = [(GUID(row.sender_guid), GUID(row.target_guid)) for row in asked]
    peers = {guid: _peer(tenancy, guid) for pair in pairs for guid in pair}
    told = _ask(hosts, registered, pairs, peers)
    if _is_rolling_out(subnet) or _generation(subnet) != generation:
        give_back(asked)
        return 0
    for place, row in enumerate(asked):
        judged, evidence = _judge(row, place, pairs, peers, told, registered)
        store(row, judged=judged, evidence=evidence, now=clock())
    return len(asked)


def _ask(
    hosts: Sequence[PathVerbs],
    registered: dict[str, GUID],
    pairs: list[tuple[GUID, GUID]],
    peers: dict[GUID, GUID | None],
) -> Told | list[str]:
    """What the first host that is full in Default was answered; else the last that answered; else why none did."""
    failures: list[str] = []
    limited: Told | None = None
    for host in hosts:
        controls = _controls(registered.get(host.name), peers)
        try:
            answers = host.path_records([*controls, *pairs, *controls], timeout_s=TIMEOUT_S)
        except RemoteError as error:
            failures.append(str(error))
            continue
        told = Told(host.name, answers, tuple(failures))
        if answers.is_asker_full:
            return told
        limited = told
    return limited or failures


def _controls(asker: GUID | None, peers: dict[GUID, GUID | None]) -> list[tuple[GUID, GUID]]:
    """Paths that exist, about every port that is asked about: from the asker itself, and to a peer of its own."""
    found = [(asker, guid) for guid in peers if asker is not None and asker != guid]
    return found + [(guid, peer) for guid, peer in peers.items() if peer is not None]


def _judge(
    row: IsolationCheck,
    place: int,
    pairs: list[tuple[GUID, GUID]],
    peers: dict[GUID, GUID | None],
    told: Told | list[str],
    registered: dict[str, GUID],
) -> tuple[Judged, dict[str, Any]]:
    if isinstance(told, list):
        why = " ".join(told) or "The subnet has no manager host."
        sentence = f"No manager host could ask the SA. {why}"
        return Judged(Isolation.INCONCLUSIVE, False, sentence), {"failures": told}
    answers = told.answers.answers
    count = (len(answers) - len(pairs)) // 2
    answer = answers[count + place]
    mine = set(pairs[place])
    before, after = (
        [one for one in some if _is_about(one, mine, told)] for some in (answers[:count], answers[-count:])
    )
    judged = judge_path(
        asked=_PATHS[answer.answer],
        before=_counted(before, told.answers.asker),
        after=_counted(after, told.answers.asker),
        is_asker_full=told.answers.is_asker_full,
        is_sm_known=told.answers.sm_guid in registered.values(),
        pkey=answer.pkey,
    )
    return judged, {
        "asked_from": told.host, "asker": str(told.answers.asker), "asker_default_entry": told.answers.default_entry,
        "sm_lid": told.answers.sm_lid, "sm": told.answers.sm_guid, "answer": _facts(answer),
        "controls_before": [_facts(one) for one in before], "controls_after": [_facts(one) for one in after],
        "not_asked": list(told.failures),
    }  # fmt: skip


def _counted(controls: Sequence[PathAnswer], asker: GUID) -> list[Path]:
    """The controls that count: from the asker to both ports, and one between two others if there are such.

    One peer that is down says nothing about the two; only if no peer is reached is something wrong.
    """
    own = [_PATHS[one.answer] for one in controls if one.source == asker]
    others = [_PATHS[one.answer] for one in controls if one.source != asker]
    if Path.FOUND in others:
        others = [Path.FOUND]
    return own + others


def _is_about(control: PathAnswer, ports: set[GUID], told: Told) -> bool:
    """Whether a control is about one of the two ports: the asker to it, or it to its own peer."""
    return control.source in ports or (control.source == told.answers.asker and control.target in ports)


def _facts(answer: PathAnswer) -> dict[str, Any]:
    found = {"source": str(answer.source), "target": str(answer.target), "answer": answer.answer.value}
    if answer.answer is Answer.FOUND:
        return found | {"pkey": answer.pkey, "slid": answer.slid, "dlid": answer.dlid}
    return found | ({"why": answer.why} if answer.why else {})


def _peer(tenancy: Tenancy, guid: GUID) -> GUID | None:
    found = tenancy.peer(guid)
    return None if found is None else found[0]


def _claim(subnet: Subnet, now: datetime) -> list[IsolationCheck]:
    """Take the waiting checks, oldest first, both directions of a pair together."""
    waiting = IsolationCheck.objects.filter(subnet=subnet, plane=IsolationCheck.Plane.CONTROL, state=State.QUEUED)
    ids = list(waiting.order_by("asked_at", "pk").values_list("pk", flat=True)[:AT_ONCE])
    taken = []
    for pk in ids:
        if IsolationCheck.objects.filter(pk=pk, state=State.QUEUED).update(
            state=State.RUNNING, claimed_until=now + TAKES_AT_MOST
        ):
            taken.append(pk)
    return list(IsolationCheck.objects.whole().filter(pk__in=taken).order_by("asked_at", "pk"))


def _is_rolling_out(subnet: Subnet) -> bool:
    return Fence.objects.filter(subnet=subnet, rollout__state__in=RUNNING).exists()


def _generation(subnet: Subnet) -> int:
    return Fence.objects.filter(subnet=subnet).values_list("generation", flat=True).first() or 0
