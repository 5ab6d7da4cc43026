"""A rollout from the drag to the proof: what was wanted, planned, written, done, read back, and shown."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from audit.actions import Action
from audit.models import Event
from console.evidence import Evidence, closing, evidence
from console.review import rollout_subjects, words
from deploy.models import HostOutcome, Revision, Rollout, RolloutStep
from subnet.change import difference
from subnet.errors import SubnetError
from subnet.pkey import DEFAULT
from subnet.plan import unified_diff
from subnet.table import PartitionTable

SHOWN = 200  # changes by port
MOST_EVENTS = 500


@dataclass(frozen=True, slots=True)
class PortLine:
    """One membership that the revision changed."""

    guid: str
    label: str
    partition: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the rollout's story; `event` is the number of the chained event that says the same, if one does."""

    at: datetime
    host: str
    text: str
    event: int | None
    by: str = ""  # who did it, where `text` is but the action


@dataclass(frozen=True, slots=True)
class ProofStory:
    """The parts in order. Events are None where the trail has none (yet)."""

    staged: tuple[Mapping[str, Any], ...]  # as `partitions.going_out.makings` told them
    proposed: Event | None
    ports: tuple[PortLine, ...]
    ports_in_all: int
    settings: tuple[str, ...]  # sentences about Default, flags, keywords
    file_diff: str
    steps: tuple[Step, ...]
    outcomes: tuple[HostOutcome, ...]
    evidence: Evidence | None
    closing: str
    ended: Event | None
    mirrored: Event | None
    trouble: str  # why the plan cannot be shown, if it cannot


def story(rollout: Rollout) -> ProofStory:
    """Everything about `rollout` from rows and the chain. About ten queries."""
    revision = rollout.revision
    found = _events(rollout)
    proposed = _first(found, Action.REVISION_PROPOSE, Action.REVISION_ADOPT)
    mirrored = _first(found, Action.MEMBER_SETTLE)
    own = [event for event in found if event.subject_kind == "rollout"]
    ended = None
    if rollout.state != Rollout.State.QUEUED:
        ended = next((event for event in own if event.action == Action.of_rollout(rollout.state)), None)
    ports, trouble, settings = _changes(rollout.parent, revision)
    read = evidence(rollout)
    return ProofStory(
        staged=_staged(proposed),
        proposed=proposed,
        ports=tuple(ports[:SHOWN]),
        ports_in_all=len(ports),
        settings=settings,
        file_diff=unified_diff(bytes(rollout.parent.data), bytes(revision.data), "partitions.conf"),
        steps=_steps(rollout, own),
        outcomes=tuple(rollout.outcomes.select_related("host").order_by("host__name")),
        evidence=read,
        closing=closing(rollout, read),
        ended=ended,
        mirrored=mirrored,
        trouble=trouble,
    )


def _events(rollout: Rollout) -> tuple[Event, ...]:
    """What was done, newest first; who looked at it is told in the timeline."""
    subjects = (subject.split(":") for subject in rollout_subjects(rollout.public_id))
    ways = [{"subject_kind": kind, "subject_key": key} for kind, key in subjects]
    done = Event.objects.matching_any([*ways, {"rollout_key": rollout.public_id}]).exclude(action=Action.EVIDENCE_READ)
    return tuple(done.newest_first()[:MOST_EVENTS])


def _first(events: tuple[Event, ...], *actions: Action) -> Event | None:
    """The oldest of these actions."""
    return next((event for event in reversed(events) if event.action in actions), None)


def _staged(proposed: Event | None) -> tuple[Mapping[str, Any], ...]:
    if proposed is None or not isinstance(proposed.after, dict):
        return ()
    told = proposed.after.get("staged", ())
    return tuple(_timed(item) for item in told if isinstance(item, dict)) if isinstance(told, list) else ()


def _timed(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """The item, its moment as one: an event holds JSON, and the page shows times in the reader's zone."""
    at = item.get("at")
    try:
        return {**item, "at": datetime.fromisoformat(at)} if isinstance(at, str) else item
    except ValueError:
        return {**item, "at": None}


def _steps(rollout: Rollout, events: list[Event]) -> tuple[Step, ...]:
    """The steps, each with the event of the move into its state, told once."""
    numbers: dict[str, list[Event]] = {}
    for event in reversed(events):
        numbers.setdefault(event.action, []).append(event)
    steps = []
    for row in RolloutStep.objects.filter(rollout=rollout).order_by("at", "pk"):
        # A move's last step and its event are written in one transaction, at the same moment of the rollout's clock.
        moves = numbers.get(str(Action.of_rollout(row.state)), []) if row.state != "QUEUED" else []
        moves = moves or (numbers.get(str(Action.ROLLOUT_START), []) if row.state == "QUEUED" else [])
        number = moves.pop(0).number if moves else None
        steps.append(Step(row.at, row.host, row.text, number))
    rest = [event for left in numbers.values() for event in left]
    steps += [Step(event.at, "", words(event.action), event.number, by=event.actor_name) for event in rest]
    return tuple(sorted(steps, key=lambda step: step.at))


def _changes(parent: Revision, revision: Revision) -> tuple[list[PortLine], str, tuple[str, ...]]:
    try:
        before, after = parent.partition_table(), revision.partition_table()
    except (SubnetError, KeyError, TypeError, ValueError):
        return [], "A stored table cannot be read: it was altered. Verify the trail.", ()
    found = difference(before, after)
    names = {**before.labels, **after.labels}
    ports = [
        PortLine(
            guid=str(change.guid),
            label=names.get(change.guid, ""),
            partition=f"{change.partition} ({change.pkey})",
            before=str(change.from_membership or "no member"),
            after=str(change.to_membership or "no member"),
        )
        for change in found.changes
        if change.pkey != DEFAULT
    ]
    return ports, "", tuple(_settings(found, before, after))


def _settings(found: Any, before: PartitionTable, after: PartitionTable) -> list[str]:
    told = []
    if found.default is not None and found.default.reaches_ports:
        was, now = before.default, after.default
        told.append(
            f"Default: keywords {_listed(was.keywords)} with {len(was.members)} exceptions became "
            f"{_listed(now.keywords)} with {len(now.members)}."
        )
    became = {
        "created": "gets its first members", "retired": "has no members any more", "renamed": "has another name",
        "passed on": "belongs to another tenant",
    }  # fmt: skip
    told += [
        f"Partition {one.name_after or one.name_before} ({one.pkey}) {became[one.what]}." for one in found.partitions
    ]
    told += [f"{one.partition} ({one.pkey}): flag {one.flag} changed." for one in found.flags]
    return told


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items)) or "none"
